"""A model's layers as a tree of addresses, with equal numbered components (`layer.0`, `layer.1`, ...) shown once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from archspec.analysis.count.select import Selection
from archspec.core.addresses.tree import AddressTree, Node, TreeRow
from archspec.core.record import Record
from archspec.ir.table import Table, Tensor


class CountRow(Record):
    """One row of the tree, `level` 0 outermost.

    `label` is the address relative to the parent row, `address` the full address; a collapsed number is `*`, or a list
    if other numbers differ (`0,3,6`). `times` is the number of equal components that the row represents. `each` is the
    parameter count of one component, `total` that of all in all enclosing repetitions. `shapes` are the shapes of the
    tensors owned and counted here; `frozen` and `tied` are whether some of them are. `role` is their common role.
    """

    level: int
    label: str
    address: str
    type: str
    times: int
    each: int
    total: int
    shapes: tuple[tuple[int, ...], ...]
    frozen: bool
    tied: bool
    role: str | None


def count_tree(table: Table, selection: Selection, depth: int | None = None) -> list[CountRow]:
    """Return the rows of the tree, down to layers and to tensors that blocks own directly.

    `depth` limits the nesting. The `total` of the outermost rows sums to the total of the selection.
    """
    return [_count_row(row) for row in build_address_tree(table, selection).rows(depth)]


NodeContent: TypeAlias = tuple[Tensor, int, str]
"""A tensor, the parameters counted for it, and its name within the node."""


def build_address_tree(table: Table, selection: Selection) -> AddressTree[NodeContent, int]:
    """Build the tree with equal numbered components joined; the sum of a node is its parameter count."""
    tree: AddressTree[NodeContent, int] = AddressTree(0)
    is_whole = all(selection.chosen)
    repeats = {repeat.start: repeat for repeat in table.repeats} if is_whole else {}
    tensors = iter(table.tensors.distinct if is_whole else table.tensors)
    layers = {module.address for module in table.modules if module.kind == "layer"}
    position = 0
    while position < len(table.tensors):
        repeat = repeats.get(position)
        if repeat is not None:
            tree.repeat(repeat.address, repeat.of)
            position = repeat.stop
            continue
        tensor, params = next(tensors), selection.params[position]
        if selection.chosen[position]:
            home = tensor.layer if tensor.layer in layers else tensor.name
            tree.get_or_create(home).own.append((tensor, params, tensor.name[len(home) :]))
        position += 1
    for module in table.modules:
        node = tree.find(module.address)
        if node is not None:
            node.type = module.type
    tree.compute_sums(_compute_sum, fold=True)
    return tree


def _compute_sum(node: Node[NodeContent, int]) -> Hashable:
    for _, params, _ in node.own:
        node.total += params
    for child in node.children.values():
        node.total += child.total * child.times
    return tuple(
        [
            (name, tensor.shape, params, tensor.trainable, tensor.tied_to is None, tensor.role)
            for tensor, params, name in node.own
        ]
    )


def _count_row(row: TreeRow[NodeContent, int]) -> CountRow:
    node = row.node
    owned = [(tensor, params) for tensor, params, _ in node.own]
    return CountRow(
        level=row.level,
        label=row.label,
        address=row.address,
        type=node.type or ("parameter" if any(not name for _, _, name in node.own) else ""),
        times=row.times,
        each=node.total,
        total=node.total * row.times * row.copies,
        shapes=tuple(tensor.shape for tensor, params in owned if params or not tensor.tied_to),
        frozen=any(not tensor.trainable for tensor, _ in owned),
        tied=any(tensor.tied_to is not None for tensor, _ in owned),
        role=owned[0][0].role if len({tensor.role for tensor, _ in owned}) == 1 else None,
    )
