"""The components of models, and the alignment of corresponding components.

Components are aligned by address, by role and by structure: the numbers of matrices per role and of norms. The
alignment uses no built-in names of definitions or addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from archspec.analysis.count.select import select
from archspec.analysis.count.tree import NodeContent, build_address_tree
from archspec.core.addresses import ANY_INDEX, ends_with, join, parent, prefixes, relative
from archspec.core.addresses.tree import Node
from archspec.ir.table import Table

Structure: TypeAlias = Counter[tuple[str | None, str]]
"""Numbers of norms and matrices in a component: per role, of matrices that widen, narrow or keep the feature count."""


class Component(NamedTuple):
    """A component of a model: a layer, a block, or a stack of them.

    `address` has `*` for an index, or the indices as text if not all layers of the stack are equal. The component is
    repeated `times` times with `each` parameters (None for unequal layers), and has `total` parameters in all
    repetitions of its parents. `roles` counts elements by role. `numbered` is whether it has an index, even a single
    one. `parts` are the nested components.
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
        """The most frequent role of its elements."""
        return _majority(self.roles)


Group: TypeAlias = tuple[Component, ...]
"""Components of one model that correspond to a group of another model; () for none."""


class Alignment(NamedTuple):
    """Corresponding components: a group for each model, empty if it has none. `level` 0 is outermost.

    `by` is the criterion by which each group was matched: "address", "structure" (equal matrices and norms), "role", or
    "" for the first group and for empty groups.
    """

    level: int
    groups: tuple[Group, ...]
    by: tuple[str, ...]


def find_components(table: Table) -> Group:
    """Return the components of a model. A module that only contains a stack and its neighbours is not a component."""
    root = build_address_tree(table, select(table)).root
    if root.own:
        return (_build_component(root, "", 1, False),)
    return tuple(_combine_stacks([*_iter_components(root, "", 1)]))


def align(models: Sequence[Group], depth: int) -> list[Alignment]:
    """Align the components of models, expanded to `depth`: in the order of the first model, then of the others."""
    return [*_align_level(models, [""] * len(models), 0, depth)]


# Components of one model ----------------------------------------------------------------------------------------------


def _iter_components(node: Node[NodeContent, int], address: str, copies: int) -> Iterator[Component]:
    for child in node.children.values():
        name, times = child.segment, child.times
        numbered = child.numbered
        while not child.type and not child.own and len(child.children) == 1:
            (child,) = child.children.values()
            name = join(name, child.segment)
            times *= child.times
            numbered = numbered or child.numbered
        child_address = join(address, name)
        if not numbered and not child.own and _has_numbered(child):
            yield from _iter_components(child, child_address, copies)
        else:
            part = _build_component(child, child_address, copies * times, numbered)
            yield part._replace(times=times)


def _build_component(node: Node[NodeContent, int], address: str, copies: int, numbered: bool) -> Component:
    parts = [*_iter_components(node, address, copies)]
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
        address, node.type, 1, node.total, node.total * copies, numbered, roles, pattern, tuple(_combine_stacks(parts))
    )


def _combine_stacks(parts: Sequence[Component]) -> Iterator[Component]:
    """Combine the layers of a stack into one component.

    The layers may differ: the first may lack a norm, or own a table for all. Layers of a stack are numbered, at one
    address, of one definition, and contain several roles.
    """
    stacks: dict[tuple[str, str], list[Component]] = {}
    for part in parts:
        own_address = part.address if not part.type or not _layer_roles(part) else ""
        stacks.setdefault((own_address or parent(part.address), part.type), []).append(part)
    for (address, _), layers in stacks.items():
        times = sum(part.times for part in layers)
        yield _combine_layers(layers, join(address, ANY_INDEX), times) if len(layers) > 1 else layers[0]


def _combine_layers(layers: Sequence[Component], address: str, times: int) -> Component:
    """Combine unequal components into one, and recursively their components at equal relative addresses."""
    most_frequent = max(layers, key=lambda layer: layer.times)
    parts_by_name: dict[str, list[Component]] = {}
    for layer in (most_frequent, *(layer for layer in layers if layer is not most_frequent)):
        for part in layer.parts:
            parts_by_name.setdefault(relative(part.address, layer.address), []).append(part)
    combined = [
        _combine_layers(parts, join(address, name), parts[0].times if len({part.times for part in parts}) == 1 else 1)
        for name, parts in parts_by_name.items()
    ]
    return most_frequent._replace(
        address=address,
        times=times,
        each=most_frequent.each if len({layer.each for layer in layers}) == 1 else None,
        total=sum(layer.total for layer in layers),
        roles=_roles(layers),
        parts=tuple(combined),
    )


def _direction(shape: tuple[int, ...]) -> str:
    """Classify a matrix by its effect on the feature count. A kernel wider than 1 also mixes positions."""
    effect = "widens" if shape[0] > shape[1] else "narrows" if shape[0] < shape[1] else "keeps"
    return effect if all(size == 1 for size in shape[2:]) else f"{effect} and mixes"


def _has_numbered(node: Node[NodeContent, int]) -> bool:
    return any(child.numbered or _has_numbered(child) for child in node.children.values())


def _roles(parts: Iterable[Component]) -> Counter[str | None]:
    return sum((part.roles for part in parts), Counter[str | None]())


def _majority(roles: Counter[str | None]) -> str | None:
    return roles.most_common(1)[0][0] if roles else None


# Components of several models -----------------------------------------------------------------------------------------


def _align_level(models: Sequence[Group], parents: Sequence[str], level: int, depth: int) -> Iterator[Alignment]:
    for row in _match_components(models, parents, level):
        yield row
        parts = [_nested_components(group) for group in row.groups]
        if level + 1 < depth and any(parts):
            addresses = [group[0].address if len(group) == 1 else "" for group in row.groups]
            yield from _align_level(parts, addresses, level + 1, depth)


def _nested_components(group: Group) -> Group:
    return group if len(group) > 1 else tuple([part for component in group for part in component.parts])


def _match_components(models: Sequence[Group], parents: Sequence[str], level: int) -> list[Alignment]:
    """Align the components of the first model with the other models, then the remaining components."""
    rows: list[_OpenAlignment] = []

    def address(part: Component, model: int) -> str:
        return relative(part.address, parents[model])

    def structure(part: Component, model: int) -> object:
        return (frozenset(part.pattern.items()), part.address in after_stacks[model]) if part.pattern else ()

    all_have_stacks = all(any(part.numbered for part in parts) for parts in models)
    after_stacks = [_find_after_stacks(parts) if all_have_stacks else set[str]() for parts in models]
    for model, parts in enumerate(models):
        unmatched = [*parts]
        open_rows = [*rows]
        for criterion, pairs in (
            ("address", _pair_by_key(address)),
            ("address", _pair_by_suffix),
            ("structure", _pair_by_key(structure)),
            ("structure", _pair_by_key(lambda part, _: _layer_roles(part), single=True)),
        ):
            single_rows = [row for row in open_rows if len(row.first) == 1]
            for row, part in pairs(single_rows, unmatched, model):
                row.assign(model, (part,), criterion)
                open_rows.remove(row)
                unmatched.remove(part)
        for role in dict.fromkeys(part.role for part in unmatched if part.role is not None):
            rows_of_role = [row for row in open_rows if row.role == role]
            if rows_of_role and not (len(rows_of_role) > 1 and any(row.is_shared for row in rows_of_role)):
                for extra_row in rows_of_role[1:]:
                    rows_of_role[0].merge(extra_row)
                    rows.remove(extra_row)
                rows_of_role[0].assign(model, tuple(part for part in unmatched if part.role == role), "role")
                open_rows = [row for row in open_rows if row not in rows_of_role]
                unmatched = [part for part in unmatched if part.role != role]
        rows += [_OpenAlignment(model, part, len(models)) for part in unmatched]
    return [Alignment(level, tuple(row.groups), tuple(row.by)) for row in rows]


def _find_after_stacks(parts: Sequence[Component]) -> set[str]:
    """Return the addresses of components that follow their nearest stack by address, such as its final norm."""
    addresses: set[str] = set()
    stacks = [(index, part) for index, part in enumerate(parts) if part.numbered]
    for index, part in enumerate(parts):
        common_lengths = [len({*prefixes(part.address)} & {*prefixes(stack.address)}) for _, stack in stacks]
        nearest_stacks = [
            stack_index
            for (stack_index, _), length in zip(stacks, common_lengths, strict=True)
            if length == max(common_lengths)
        ]
        if not part.numbered and any(stack_index < index for stack_index in nearest_stacks):
            addresses.add(part.address)
    return addresses


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

    def assign(self, model: int, group: Group, criterion: str) -> None:
        self.groups[model], self.by[model] = group, criterion

    def merge(self, row: _OpenAlignment) -> None:
        self.groups = [ours + theirs for ours, theirs in zip(self.groups, row.groups, strict=True)]


_Pairs: TypeAlias = list[tuple[_OpenAlignment, Component]]


def _pair_by_key(
    key: Callable[[Component, int], object], *, single: bool = False
) -> Callable[[Sequence[_OpenAlignment], Sequence[Component], int], _Pairs]:
    """Return a function that pairs rows and components with equal keys, in order.

    A key is used only if the numbers of rows and components are equal, and with `single` only if they are 1.
    """

    def pair(rows: Sequence[_OpenAlignment], parts: Sequence[Component], model: int) -> _Pairs:
        rows_by_key: dict[object, list[_OpenAlignment]] = {}
        parts_by_key: dict[object, list[Component]] = {}
        for row in rows:
            rows_by_key.setdefault(key(row.first[0], row.home), []).append(row)
        for part in parts:
            parts_by_key.setdefault(key(part, model), []).append(part)
        pairs: _Pairs = []
        for shared_key, parts_of_key in parts_by_key.items():
            rows_of_key = rows_by_key.get(shared_key, [])
            if shared_key and len(rows_of_key) == len(parts_of_key) and not (single and len(parts_of_key) > 1):
                pairs += zip(rows_of_key, parts_of_key, strict=True)
        return [(row, part) for row, part in pairs if _have_compatible_roles(row.first[0], part)]

    return pair


def _have_compatible_roles(a: Component, b: Component) -> bool:
    """Whether two components have the same role, or the role of one is unknown."""
    return a.role == b.role or a.role is None or b.role is None


def _pair_by_suffix(rows: Sequence[_OpenAlignment], parts: Sequence[Component], _model: int) -> _Pairs:
    """Pair rows and components whose addresses differ only by a prefix, if the pairing is unique."""
    pairs: _Pairs = []
    for row in rows:
        component = row.first[0]
        matches = [
            part
            for part in parts
            if _is_suffix(component.address, part.address) and _have_compatible_roles(component, part)
        ]
        if len(matches) == 1:
            other_components = [candidate.first[0] for candidate in rows if candidate is not row]
            if not any(
                _is_suffix(candidate.address, matches[0].address) and _have_compatible_roles(candidate, matches[0])
                for candidate in other_components
            ):
                pairs.append((row, matches[0]))
    return pairs


def _is_suffix(a: str, b: str) -> bool:
    return ends_with(a, b) or ends_with(b, a)


def _layer_roles(part: Component) -> frozenset[str | None]:
    """Return the roles in a numbered component with several roles, such as a layer with attention and norms."""
    roles = frozenset(role for role, _ in part.pattern)
    return roles if part.numbered and len(roles) > 1 else frozenset()
