"""Parameters by layer, block or role, and the components with a role (heads, poolers)."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.addresses import first, join, prefixes, relative
from archspec.counts.select import Selection
from archspec.record import Record
from archspec.table import Table, Tensor


class Subtotal(Record):
    """A sum over tensors: their common `name` (an address or a role), their number, and their parameters.

    `type` is the name of the definition if `name` is an address, otherwise "". `trainable` is the trainable part of
    `params`.
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


def by_layer(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """Sum the parameters of each layer or block that owns tensors; those deeper than `depth` add to their ancestor."""
    return _by_module(table, selection, depth, {module.address for module in table.modules})


def by_block(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """Sum the parameters of each block and its layers, without those of nested blocks (up to `depth`)."""
    return _by_module(table, selection, depth, {m.address for m in table.modules if m.kind == "block"})


def by_role(table: Table, selection: Selection) -> list[Subtotal]:
    """Sum the parameters of each role; "" is for tensors without a role."""
    groups: dict[str, Subtotal] = {}
    for tensor, params in _chosen(table, selection):
        _add(groups, tensor.role or "", "", tensor, params)
    return list(groups.values())


def components_of_role(table: Table, role: str) -> list[RoleComponent]:
    """Return the largest components with a role, in program order.

    All their tensors have the role, except those of norms, whose role is `norm` everywhere.
    """
    roles: dict[str, set[str | None]] = {}
    for tensor in table.tensors:
        for address in prefixes(tensor.name):
            roles.setdefault(address, set()).add(tensor.role)
    params: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for tensor in table.tensors:
        top = next((a for a in prefixes(tensor.name) if role in roles[a] and roles[a] <= {role, "norm"}), None)
        if top is not None:
            params[top] = params.get(top, 0) + tensor.params
            names.setdefault(top, []).append(relative(tensor.name, top))
    return [_part(address, names[address], total) for address, total in params.items()]


def _part(address: str, names: list[str], params: int) -> RoleComponent:
    """Move the segments that all names share into the address."""
    heads = list(dict.fromkeys(map(first, names)))
    while len(heads) == 1 and all("." in name for name in names):
        address = join(address, heads[0])
        names = [relative(name, heads[0]) for name in names]
        heads = list(dict.fromkeys(map(first, names)))
    return RoleComponent(address, tuple(heads) if any("." in name for name in names) else (), params)


def _by_module(table: Table, selection: Selection, depth: int | None, addresses: set[str]) -> list[Subtotal]:
    owners: dict[str, str] = {}
    groups: dict[str, Subtotal] = {}
    for tensor, params in _chosen(table, selection):
        owner = owners.get(tensor.layer)
        if owner is None:
            enclosing = ["", *(address for address in prefixes(tensor.layer) if address in addresses)]
            owner = owners[tensor.layer] = enclosing[-1 if depth is None else min(depth, len(enclosing) - 1)]
        _add(groups, owner, "", tensor, params)
    types = {"": "", **{module.address: module.type for module in table.modules}}
    return [groups[address]._replace(type=type) for address, type in types.items() if address in groups]


def _chosen(table: Table, selection: Selection) -> Iterator[tuple[Tensor, int]]:
    for tensor, chosen, params in zip(table.tensors, selection.chosen, selection.params, strict=True):
        if chosen:
            yield tensor, params


def _add(groups: dict[str, Subtotal], name: str, type: str, tensor: Tensor, params: int) -> None:
    old = groups.get(name) or Subtotal(name, type, 0, 0, 0)
    trains = params if tensor.trainable else 0
    groups[name] = Subtotal(name, type, old.tensors + 1, old.params + params, old.trainable + trains)
