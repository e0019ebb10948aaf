"""Sums of parameters by layer, block or role, and the components with a role (heads, poolers)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from archspec.analysis.count.select import Selection
from archspec.core.addresses import first_segment, join, prefixes, relative
from archspec.core.record import Record
from archspec.ir.table import Table, Tensor


class Subtotal(Record):
    """A sum over tensors: their common `name` (an address or a role), tensor count and parameter count.

    `type` is the name of the definition if `name` is an address, otherwise "". `trainable` is the number of trainable
    parameters.
    """

    name: str
    type: str
    tensors: int
    params: int
    trainable: int


class RoleComponent(Record):
    """A head or a pooler: its address, its direct members (() for a layer), and the parameters counted in it."""

    address: str
    members: tuple[str, ...]
    params: int


def count_by_layer(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """Sum the parameters of each layer or block that owns tensors; modules below `depth` are added to an ancestor."""
    return _count_by_module(table, selection, depth, {module.address for module in table.modules})


def count_by_block(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """Sum the parameters of each block and its layers, excluding nested blocks (up to `depth`)."""
    return _count_by_module(table, selection, depth, {m.address for m in table.modules if m.kind == "block"})


def count_by_role(table: Table, selection: Selection) -> list[Subtotal]:
    """Sum the parameters of each role; "" is for tensors without a role."""
    return list(_sum_by_name(table, selection, lambda tensor: tensor.role or "").values())


def find_role_components(table: Table, role: str) -> list[RoleComponent]:
    """Return the largest components with a role, in program order.

    All tensors of such a component have the role, except tensors of norms, whose role is `norm` everywhere.
    """
    top_segments = {first_segment(tensor.name) for tensor in table.tensors.distinct if tensor.role == role}
    if not top_segments:
        return []
    is_repeated = any(
        first_segment(of) in top_segments or first_segment(address) in top_segments for address, of, *_ in table.repeats
    )
    tensors = table.tensors if is_repeated else table.tensors.distinct
    of_role = [tensor.name for tensor in tensors if tensor.role == role]
    roles: dict[str, set[str | None]] = {address: set() for name in of_role for address in prefixes(name)}
    top_segments.update(map(first_segment, of_role))
    candidates = [tensor for tensor in tensors if first_segment(tensor.name) in top_segments]
    for tensor in candidates:
        for address in prefixes(tensor.name):
            if address not in roles:
                break
            roles[address].add(tensor.role)
    pure_addresses = {address for address, roles_below in roles.items() if roles_below <= {role, "norm"}}
    params: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for tensor in candidates:
        for address in prefixes(tensor.name):
            if address in pure_addresses:
                params[address] = params.get(address, 0) + tensor.params
                names.setdefault(address, []).append(relative(tensor.name, address))
            if address in pure_addresses or address not in roles:
                break
    return [_role_component(address, names[address], total) for address, total in params.items()]


def _role_component(address: str, names: list[str], params: int) -> RoleComponent:
    """Move the segments that all names share into the address."""
    first_segments = list(dict.fromkeys(map(first_segment, names)))
    while len(first_segments) == 1 and "." in names[0]:
        address = join(address, first_segments[0])
        names = [relative(name, first_segments[0]) for name in names]
        first_segments = list(dict.fromkeys(map(first_segment, names)))
    return RoleComponent(address, tuple(first_segments) if any("." in name for name in names) else (), params)


def _count_by_module(table: Table, selection: Selection, depth: int | None, addresses: set[str]) -> list[Subtotal]:
    @cache
    def owner(layer: str) -> str:
        enclosing = ["", *(address for address in prefixes(layer) if address in addresses)]
        return enclosing[-1 if depth is None else min(depth, len(enclosing) - 1)]

    groups = _sum_by_name(table, selection, lambda tensor: owner(tensor.layer))
    types = {"": "", **{module.address: module.type for module in table.modules}}
    return [groups[address]._replace(type=type) for address, type in types.items() if address in groups]


def _sum_by_name(table: Table, selection: Selection, name_of: Callable[[Tensor], str]) -> dict[str, Subtotal]:
    """Sum the parameters of the selected tensors by name; `type` is left empty."""
    groups: dict[str, Subtotal] = {}
    for tensor, chosen, params in zip(table.tensors, selection.chosen, selection.params, strict=True):
        if chosen:
            name = name_of(tensor)
            old = groups.get(name) or Subtotal(name, "", 0, 0, 0)
            trains = params if tensor.trainable else 0
            groups[name] = Subtotal(name, "", old.tensors + 1, old.params + params, old.trainable + trains)
    return groups
