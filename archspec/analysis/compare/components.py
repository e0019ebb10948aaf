"""The components of models, and the alignment of corresponding components.

Components are aligned by address, by role and by structure: the numbers of matrices per role and of norms. No names
of definitions or addresses are built in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from archspec.analysis.count.select import select
from archspec.analysis.count.tree import NodeContent, address_tree
from archspec.core.addresses import ANY_INDEX, ends_with, join, parent, prefixes, relative
from archspec.core.addresses.tree import Node
from archspec.ir.table import Table

Structure: TypeAlias = Counter[tuple[str | None, str]]
"""The numbers of norms and matrices in a component: per role, those that widen, narrow or keep the feature count."""


class Component(NamedTuple):
    """A component of a model: a layer, a block, or a stack of them.

    `address` has `*` for an index, or the indices as text if not all of the stack are equal. There are `times` of it,
    with `each` parameters (None for layers that are not all equal), and `total` in all, in all repetitions around it.
    `roles` counts elements by role. `numbered` is whether it has an index, even if it is the only one. `parts` are the
    components inside it.
    """

    address: str
    type: str
    times: int
    each: int | None
    total: int
    numbered: bool
    roles: Counter[str | None]
    pattern: Structure
    parts: tuple[Component, ...]

    @property
    def role(self) -> str | None:
        """The role of the majority of its elements."""
        return _majority(self.roles)


Group: TypeAlias = tuple[Component, ...]
"""Components of one model that together correspond to those of another; () for none."""


class Alignment(NamedTuple):
    """Components that correspond: a group for each model, empty if it has none. `level` 0 is outermost.

    `by` is how each model's were matched: "address", "structure" (the same matrices and norms), "role", or "" for the
    first model that has them, and those that have none.
    """

    level: int
    groups: tuple[Group, ...]
    by: tuple[str, ...]


def components(table: Table) -> Group:
    """Return the components of a model. A module that only contains a stack and its neighbours is not a component."""
    root = address_tree(table, select(table)).root
    if root.own:
        return (_component(root, "", 1, False),)
    return tuple(_stacked([*_opened(root, "", 1)]))


def align(models: Sequence[Group], depth: int) -> list[Alignment]:
    """Align the components of models, expanded to a depth: in the order of the first model, then of the others."""
    return [*_level(models, [""] * len(models), 0, depth)]


# Components of one model ----------------------------------------------------------------------------------------------


def _opened(node: Node[NodeContent, int], address: str, copies: int) -> Iterator[Component]:
    for child in node.children.values():
        name, times = child.segment, child.times
        numbered = child.numbered
        while not child.type and not child.own and len(child.children) == 1:
            (child,) = child.children.values()
            name = join(name, child.segment)
            times *= child.times
            numbered = numbered or child.numbered
        inner = join(address, name)
        if not numbered and not child.own and _has_numbered(child):
            yield from _opened(child, inner, copies)
        else:
            part = _component(child, inner, copies * times, numbered)
            yield part._replace(times=times)


def _component(node: Node[NodeContent, int], address: str, copies: int, numbered: bool) -> Component:
    parts = [*_opened(node, address, copies)]
    roles = _roles(parts)
    pattern: Structure = Counter()
    for part in parts:
        pattern.update({kind: number * part.times for kind, number in part.pattern.items()})
    norms: set[str] = set()
    for tensor, _, _ in node.own:
        roles[tensor.role] += tensor.size * copies
        if tensor.role == "norm":
            norms.add(tensor.layer)
        elif len(tensor.shape) > 1:
            pattern[tensor.role, _direction(tensor.shape)] += 1
    if norms:
        pattern["norm", ""] += len(norms)
    return Component(
        address, node.type, 1, node.each, node.each * copies, numbered, roles, pattern, tuple(_stacked(parts))
    )


def _stacked(parts: Sequence[Component]) -> Iterator[Component]:
    """Combine the layers of a stack into one component even if they are not all equal: the first may lack a norm, or
    own a table for all. Such layers are numbered, at one address, by one definition, and contain several roles.
    """
    stacks: dict[tuple[str, str], list[Component]] = {}
    for part in parts:
        alone = part.address if not part.type or not _several_roles(part) else ""
        stacks.setdefault((alone or parent(part.address), part.type), []).append(part)
    for (address, _), layers in stacks.items():
        times = sum(part.times for part in layers)
        yield _joined(layers, join(address, ANY_INDEX), times) if len(layers) > 1 else layers[0]


def _joined(layers: Sequence[Component], address: str, times: int) -> Component:
    """Combine unequal components into one, and recursively those at the same addresses within them."""
    usual = max(layers, key=lambda layer: layer.times)
    inside: dict[str, list[Component]] = {}
    for layer in (usual, *(layer for layer in layers if layer is not usual)):
        for part in layer.parts:
            inside.setdefault(relative(part.address, layer.address), []).append(part)
    joined = [
        _joined(parts, join(address, name), parts[0].times if len({part.times for part in parts}) == 1 else 1)
        for name, parts in inside.items()
    ]
    return usual._replace(
        address=address,
        times=times,
        each=usual.each if len({layer.each for layer in layers}) == 1 else None,
        total=sum(layer.total for layer in layers),
        roles=_roles(layers),
        parts=tuple(joined),
    )


def _direction(shape: tuple[int, ...]) -> str:
    """Classify a matrix by its effect on the feature count; a kernel of width 1 is a matrix, a wider one also mixes."""
    way = "widens" if shape[0] > shape[1] else "narrows" if shape[0] < shape[1] else "keeps"
    return way if all(size == 1 for size in shape[2:]) else f"{way} and mixes"


def _has_numbered(node: Node[NodeContent, int]) -> bool:
    return any(child.numbered or _has_numbered(child) for child in node.children.values())


def _roles(parts: Iterable[Component]) -> Counter[str | None]:
    return sum((part.roles for part in parts), Counter[str | None]())


def _majority(roles: Counter[str | None]) -> str | None:
    return roles.most_common(1)[0][0] if roles else None


# Components of several models -----------------------------------------------------------------------------------------


def _level(models: Sequence[Group], around: Sequence[str], level: int, depth: int) -> Iterator[Alignment]:
    for row in _matched(models, around, level):
        yield row
        parts = [_parts(group) for group in row.groups]
        if level + 1 < depth and any(parts):
            inner = [group[0].address if len(group) == 1 else "" for group in row.groups]
            yield from _level(parts, inner, level + 1, depth)


def _parts(group: Group) -> Group:
    return group if len(group) > 1 else tuple([part for component in group for part in component.parts])


def _matched(models: Sequence[Group], around: Sequence[str], level: int) -> list[Alignment]:
    """Align the components of the first model with those of the others, then the remaining ones."""
    rows: list[_OpenAlignment] = []

    def address(part: Component, model: int) -> str:
        return relative(part.address, around[model])

    def structure(part: Component, model: int) -> object:
        return (frozenset(part.pattern.items()), part.address in behind[model]) if part.pattern else ()

    stacked = all(any(part.numbered for part in parts) for parts in models)
    behind = [_behind_a_stack(parts) if stacked else set[str]() for parts in models]
    for model, parts in enumerate(models):
        left = [*parts]
        lines = [*rows]
        for by, pairs in (
            ("address", _same(address)),
            ("address", _behind_prefix),
            ("structure", _same(structure)),
            ("structure", _same(lambda part, _: _several_roles(part), alone=True)),
        ):
            alone = [line for line in lines if len(line.first) == 1]
            for line, part in pairs(alone, left, model):
                line.take(model, (part,), by)
                lines.remove(line)
                left.remove(part)
        for role in dict.fromkeys(part.role for part in left if part.role is not None):
            same = [line for line in lines if line.role == role]
            if same and not (len(same) > 1 and any(line.is_shared for line in same)):
                for other in same[1:]:
                    same[0].join(other)
                    rows.remove(other)
                same[0].take(model, tuple(part for part in left if part.role == role), "role")
                lines = [line for line in lines if line not in same]
                left = [part for part in left if part.role != role]
        rows += [_OpenAlignment(model, part, len(models)) for part in left]
    return [Alignment(level, tuple(line.groups), tuple(line.by)) for line in rows]


def _behind_a_stack(parts: Sequence[Component]) -> set[str]:
    """Return the components that follow the numbered ones nearest to them by address, such as a stack's final norm."""
    found: set[str] = set()
    stacks = [(place, part) for place, part in enumerate(parts) if part.numbered]
    for place, part in enumerate(parts):
        shared = [len({*prefixes(part.address)} & {*prefixes(stack.address)}) for _, stack in stacks]
        near = [other for (other, _), length in zip(stacks, shared, strict=True) if length == max(shared)]
        if not part.numbered and any(other < place for other in near):
            found.add(part.address)
    return found


class _OpenAlignment:
    """A row under construction."""

    def __init__(self, home: int, part: Component, models: int) -> None:
        self.home = home
        self.groups: list[Group] = [()] * models
        self.groups[home] = (part,)
        self.by = [""] * models

    @property
    def first(self) -> Group:
        return self.groups[self.home]

    @property
    def role(self) -> str | None:
        return _majority(_roles(self.first))

    @property
    def is_shared(self) -> bool:
        return sum(bool(group) for group in self.groups) > 1

    def take(self, model: int, group: Group, by: str) -> None:
        self.groups[model], self.by[model] = group, by

    def join(self, other: _OpenAlignment) -> None:
        self.groups = [ours + theirs for ours, theirs in zip(self.groups, other.groups, strict=True)]


_Pairs: TypeAlias = list[tuple[_OpenAlignment, Component]]


def _same(
    key: Callable[[Component, int], object], *, alone: bool = False
) -> Callable[[Sequence[_OpenAlignment], Sequence[Component], int], _Pairs]:
    """Pair rows and components with the same key, in order, if both have equally many of them; or one (`alone`)."""

    def pairs(lines: Sequence[_OpenAlignment], parts: Sequence[Component], model: int) -> _Pairs:
        ours: dict[object, list[_OpenAlignment]] = {}
        theirs: dict[object, list[Component]] = {}
        for line in lines:
            ours.setdefault(key(line.first[0], line.home), []).append(line)
        for part in parts:
            theirs.setdefault(key(part, model), []).append(part)
        found: _Pairs = []
        for shared, those in theirs.items():
            these = ours.get(shared, [])
            if shared and len(these) == len(those) and not (alone and len(those) > 1):
                found += zip(these, those, strict=True)
        return [(line, part) for line, part in found if _agree(line.first[0], part)]

    return pairs


def _agree(a: Component, b: Component) -> bool:
    """Whether no known fact about two components prevents them from corresponding."""
    return a.role == b.role or a.role is None or b.role is None


def _behind_prefix(lines: Sequence[_OpenAlignment], parts: Sequence[Component], _model: int) -> _Pairs:
    """Yield rows and components whose addresses differ only by a prefix of one of them, if the pairing is unique."""
    found: _Pairs = []
    for line in lines:
        ours = line.first[0]
        those = [part for part in parts if _is_behind(ours.address, part.address) and _agree(ours, part)]
        if len(those) == 1:
            others = [other.first[0] for other in lines if other is not line]
            if not any(_is_behind(other.address, those[0].address) and _agree(other, those[0]) for other in others):
                found.append((line, those[0]))
    return found


def _is_behind(a: str, b: str) -> bool:
    return ends_with(a, b) or ends_with(b, a)


def _several_roles(part: Component) -> frozenset[str | None]:
    """Return the roles in a numbered component with several of them, such as a layer with attention and norms."""
    roles = frozenset(role for role, _ in part.pattern)
    return roles if part.numbered and len(roles) > 1 else frozenset()
