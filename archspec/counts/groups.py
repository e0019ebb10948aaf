"""Parameters summed by layer, block or role, and what can be said of a total: heads, poolers, ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from archspec.addresses import first, join, prefixes, relative
from archspec.counts.select import Selection
from archspec.table import Table, Tensor


class Subtotal(NamedTuple):
    """Tensors summed: the `name` they have in common (an address, or a role), their number, their parameters.

    `type` is the definition's name where `name` is an address, else "". `trainable` is the part of `params` that is so.
    """

    name: str
    type: str
    tensors: int
    params: int
    trainable: int


class RoleComponent(NamedTuple):
    """A head or a pooler: where it is, what is directly in it (() for a layer), the parameters counted in it."""

    address: str
    members: tuple[str, ...]
    params: int


def by_layer(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """A group for each layer or block that owns tensors; what is nested deeper than `depth` adds to what it is in."""
    return _by_module(table, selection, depth, {module.address for module in table.modules})


def by_block(table: Table, selection: Selection, depth: int | None = None) -> list[Subtotal]:
    """A group for each block: its tensors and those of its layers, without those of a block in it (up to `depth`)."""
    return _by_module(table, selection, depth, {m.address for m in table.modules if m.kind == "block"})


def by_role(table: Table, selection: Selection) -> list[Subtotal]:
    """A group for each role, under "" for the tensors that have none."""
    groups: dict[str, Subtotal] = {}
    for tensor, params in _chosen(table, selection):
        _add(groups, tensor.role or "", "", tensor, params)
    return list(groups.values())


def components_of_role(table: Table, role: str) -> list[RoleComponent]:
    """The largest parts of the model that are there for the role, in program order.

    All their tensors have the role, but for those of norms, which say what they are wherever they stand.
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
    """Moves the segments that all names share into the address."""
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
