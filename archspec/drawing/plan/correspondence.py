"""Corresponding nodes of the plans of several models: by keys of addresses, and by order inside of such nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from archspec.drawing.plan.plan import Node, Plan

KeyOf = Callable[[int, Node], Hashable]


class Correspondence:
    """Corresponding nodes have the same key.

    The roots correspond, and so do inputs and outputs with the same name. Nodes with an address have the key that they
    are given, or None. Others correspond in order, within corresponding nodes: layers with the same role, operations of
    the same type.
    """

    def __init__(self, plans: Sequence[Plan], key_of: KeyOf) -> None:
        self.plans = plans
        self._given: list[dict[int, Hashable]] = []
        for own, plan in enumerate(plans):
            keys = {node.id: _fixed_key(own, node, key_of) for node in plan.nodes}
            self._given.append({id: key for id, key in keys.items() if key is not None})
        models = Counter(key for keys in self._given for key in {*keys.values()})
        self._keys = [{id: key for id, key in keys.items() if models[key] > 1} for keys in self._given]
        self._nodes: list[dict[Hashable, list[int]]] = [{} for _ in plans]
        for own, keys in enumerate(self._keys):
            for id, key in keys.items():
                self._nodes[own].setdefault(key, []).append(id)
        self._match_inside()

    def node(self, own: int, id: int, other: int) -> Node | None:
        """Return the node of another model that corresponds to a node of one; if there are several, the one in its
        place among those of its model.
        """
        key = self._keys[own].get(id)
        found = self._nodes[other].get(key, ())
        if not found:
            return None
        place = self._nodes[own][key].index(id)
        return self.plans[other].nodes[found[min(place, len(found) - 1)]]

    def key(self, own: int, id: int) -> Hashable:
        """Return the key of a node; None for one that corresponds to no other."""
        return self._keys[own].get(id)

    def only_groups(self, own: int, node: Node, others: Sequence[int]) -> bool:
        """Whether a node without a counterpart contains nodes that have one, and so is only a group."""
        if any(self.node(own, node.id, other) is not None for other in others):
            return False
        children = self.plans[own].children(node)
        return any(self.node(own, child.id, other) is not None for child in children for other in others) or any(
            self.only_groups(own, child, others) for child in children
        )

    def _match_inside(self) -> None:
        waiting = [*dict.fromkeys(key for nodes in self._nodes for key in nodes)]
        done: set[Hashable] = set()
        while waiting:
            key = waiting.pop(0)
            if key in done:
                continue
            done.add(key)
            (first, reference), *others = [
                (own, id) for own, nodes in enumerate(self._nodes) for id in nodes.get(key, ())
            ]
            for own, id in others:
                waiting += self._match(first, reference, own, id)

    def _match(self, first: int, reference: int, own: int, id: int) -> list[Hashable]:
        """Give keys to what corresponds inside of two nodes; return these keys."""
        ours, theirs = [*self._inside(first, reference, own)], [*self._inside(own, id, first)]
        tokens = [self._token(first, node, own) for node in ours], [self._token(own, node, first) for node in theirs]
        pairs = common(*tokens, [_weight(node) for node in ours])
        found: list[Hashable] = []
        for i, j in [*pairs, *_only(*tokens, pairs)]:
            if theirs[j].id not in self._keys[own]:
                key = self._keys[first].get(ours[i].id, ("inside", first, ours[i].id))
                self._give(first, ours[i].id, key)
                self._give(own, theirs[j].id, key)
                found.append(key)
        return found

    def _give(self, own: int, id: int, key: Hashable) -> None:
        if id not in self._keys[own]:
            self._keys[own][id] = key
            self._nodes[own].setdefault(key, []).append(id)

    def _inside(self, own: int, id: int, other: int) -> Iterator[Node]:
        """Yield the children of a node, in place of blocks without a counterpart in another model."""
        plan = self.plans[own]
        for child in plan.children(plan.nodes[id]):
            has_counterpart = self._given[own].get(child.id) in self._nodes[other]
            if child.kind in ("period", "group") or (child.kind == "block" and not has_counterpart):
                yield from self._inside(own, child.id, other)
            else:
                yield child

    def _token(self, own: int, node: Node, other: int) -> Hashable:
        """Return what a node has in common with one of another model that corresponds to it."""
        key = self._given[own].get(node.id)
        if key is not None and key in self._nodes[other]:
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


def _only(
    ours: Sequence[Hashable], theirs: Sequence[Hashable], done: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
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


def _fixed_key(own: int, node: Node, key_of: KeyOf) -> Hashable:
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
