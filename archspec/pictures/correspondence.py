"""Which nodes of the plans of several models correspond: by keys of addresses, and by order inside of such nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from archspec.pictures.plan import Node, Plan

KeyOf = Callable[[int, Node], Hashable]


class Correspondence:
    """Corresponding nodes have the same key.

    The roots correspond, and so do inputs and outputs with the same name. Nodes with an address have the key that they
    are given, or None. Operations, functions and tensors without one correspond in order, within corresponding nodes.
    """

    def __init__(self, plans: Sequence[Plan], key_of: KeyOf) -> None:
        self.plans = plans
        self.keys: list[dict[int, Hashable]] = [{} for _ in plans]
        for own, plan in enumerate(plans):
            for node in plan.nodes:
                key = _given(own, node, key_of)
                if key is not None:
                    self.keys[own][node.id] = key
        shared = Counter(key for keys in self.keys for key in {*keys.values()})
        self._nodes: dict[Hashable, list[tuple[int, int]]] = {}
        for own, keys in enumerate(self.keys):
            self.keys[own] = {id: key for id, key in keys.items() if shared[key] > 1}
            for id, key in self.keys[own].items():
                self._nodes.setdefault(key, []).append((own, id))
        self._match_inside()

    def node(self, own: int, id: int, other: int) -> Node | None:
        """Return the first node of another model that corresponds to a node of one."""
        key = self.keys[own].get(id)
        if key is None:
            return None
        return next((self.plans[other].nodes[found] for model, found in self._nodes[key] if model == other), None)

    def is_shared(self, own: int, id: int) -> bool:
        """Whether a node corresponds to one of another model."""
        key = self.keys[own].get(id)
        return key is not None and any(model != own for model, _ in self._nodes[key])

    def keys_inside(self, own: int, id: int) -> Iterator[Hashable]:
        """Yield the keys of a node and of what is inside it, as far as it has no corresponding node itself."""
        if self.is_shared(own, id):
            yield self.keys[own][id]
            return
        for child in self.plans[own].children(self.plans[own].nodes[id]):
            yield from self.keys_inside(own, child.id)

    def is_around(self, own: int, node: Node) -> bool:
        """Whether a node has no corresponding one, but something inside has: it only groups."""
        if self.is_shared(own, node.id):
            return False
        return any(
            self.is_shared(own, child.id) or self.is_around(own, child) for child in self.plans[own].children(node)
        )

    def _match_inside(self) -> None:
        waiting = [*self._nodes]
        done: set[Hashable] = set()
        while waiting:
            key = waiting.pop(0)
            if key in done:
                continue
            done.add(key)
            (first, reference), *others = self._nodes[key]
            for own, id in others:
                waiting += self._match(first, reference, own, id)

    def _match(self, first: int, reference: int, own: int, id: int) -> list[Hashable]:
        """Give keys to what corresponds inside of two nodes; return those that are new."""
        ours, theirs = [*self._inside(first, reference)], [*self._inside(own, id)]
        found: list[Hashable] = []
        tokens = [[self._token(model, node) for node in nodes] for model, nodes in ((first, ours), (own, theirs))]
        weights = [_weight(node) for node in ours]
        pairs = common(tokens[0], tokens[1], weights)
        for one, other in [(ours[i], theirs[j]) for i, j in [*pairs, *_only(tokens[0], tokens[1], pairs)]]:
            if other.id in self.keys[own]:
                continue
            key = self.keys[first].setdefault(one.id, ("inside", first, one.id))
            if key not in self._nodes:
                self._nodes[key] = [(first, one.id)]
                found.append(key)
            self.keys[own][other.id] = key
            self._nodes[key].append((own, other.id))
        return found

    def _inside(self, own: int, id: int) -> Iterator[Node]:
        """Yield the children of a node, in place of those without a key that contain others."""
        plan = self.plans[own]
        for child in plan.children(plan.nodes[id]):
            if child.kind in ("period", "group", "block") and not self.is_shared(own, child.id):
                yield from self._inside(own, child.id)
            else:
                yield child

    def _token(self, own: int, node: Node) -> Hashable:
        """Return what two nodes that correspond have in common."""
        key = self.keys[own].get(node.id)
        if key is not None:
            return key
        if node.kind in ("op", "fn"):
            return (node.kind, node.type)
        return (node.kind, node.role) if node.kind == "layer" else (node.kind, node.title)


def common(ours: Sequence[Hashable], theirs: Sequence[Hashable], weights: Sequence[int]) -> list[tuple[int, int]]:
    """Return the positions of the common subsequence with the largest sum of weights."""
    best = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in reversed(range(len(ours))):
        for j in reversed(range(len(theirs))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1])
            if ours[i] == theirs[j]:
                best[i][j] = max(best[i][j], best[i + 1][j + 1] + weights[i])
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(ours) and j < len(theirs):
        if ours[i] == theirs[j] and best[i][j] == best[i + 1][j + 1] + weights[i]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return found


def _only(ours: Sequence[Hashable], theirs: Sequence[Hashable], done: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the positions of operations that are left over and the only ones of their type on both sides."""
    left = [{*range(len(side))} - {pair[own] for pair in done} for own, side in enumerate((ours, theirs))]
    counts = [Counter(side[place] for place in places) for side, places in zip((ours, theirs), left, strict=True)]
    for place in sorted(left[0]):
        token = ours[place]
        if isinstance(token, tuple) and token[0] in ("op", "fn") and counts[0][token] == counts[1][token] == 1:
            yield place, next(other for other in left[1] if theirs[other] == token)


def _weight(node: Node) -> int:
    """Return how much it matters that a node has a counterpart: layers more than operations."""
    return 4 if node.form == "box" else 1


def _given(own: int, node: Node, key_of: KeyOf) -> Hashable:
    if node.kind == "root":
        return "root"
    if node.kind in ("input", "output"):
        return (node.kind, node.title)
    return key_of(own, node) if node.address is not None and node.addresses else None


def key_from(addresses: Mapping[str, Hashable], node: Node, pattern: Callable[[str], str]) -> Hashable:
    """Return the key of the first address of a node that has one, literally or else as a pattern."""
    own = node.addresses or ()
    literal = next((addresses[address] for address in own if address in addresses), None)
    return literal if literal is not None else next((addresses.get(pattern(address)) for address in own[:1]), None)
