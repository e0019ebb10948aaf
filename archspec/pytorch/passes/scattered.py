"""Numbers that a program puts at indices along an axis, as sums over these indices.

If no two of the indices are the same, as those of the largest scores, then each place gets one number or none. What is
added there may have any indices.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from archspec.pytorch.calls.values import operation_name
from archspec.pytorch.passes.matches import are_different
from archspec.pytorch.passes.ones import allow_size_one
from archspec.pytorch.passes.programs import add_node, is_node, nodes_of, tensor_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node

_ZEROS = ("zeros", "zeros_like", "new_zeros")


def rewrite_scatter(program: ExportedProgram) -> None:
    """Have a program compute sums where it puts numbers at different indices, or adds numbers there."""
    import torch

    aten = torch.ops.aten
    for node in nodes_of(program.graph):
        if node.target not in (aten.scatter.src, aten.scatter_add.default, aten.index_add.default):
            continue
        x, axis, index, source = [*node.args, *[None] * 4][:4]
        if node.kwargs or not is_node(x) or not is_node(index) or not is_node(source) or not isinstance(axis, int):
            continue
        axis %= max(1, tensor_of(x).dim())
        if node.target is aten.scatter.src and not are_different(index, axis):
            continue
        shape = tensor_of(source).shape
        indices = shape[axis : axis + 1] if node.target is aten.index_add.default else shape
        if _are_rows(x, axis, source) and tensor_of(index).shape == indices:
            with program.graph.inserting_before(node), allow_size_one():
                found = _summed(program.graph, node, x, axis, index, source)
            node.replace_all_uses_with(found)
            program.graph.erase_node(node)


def _are_rows(x: Node, axis: int, source: Node) -> bool:
    """Whether what is put along an axis has the other axes of what it is put in."""
    sizes, others = tensor_of(x).shape, tensor_of(source).shape
    if not sizes or len(sizes) != len(others):
        return False
    return all(size == other for at, (size, other) in enumerate(zip(sizes, others, strict=True)) if at != axis)


def _summed(graph: Graph, node: Node, x: Node, axis: int, index: Node, source: Node) -> Node:
    """Return what a tensor is after numbers are put at indices along an axis, or are added there, by a node."""
    import torch

    aten = torch.ops.aten
    new = partial(add_node, graph, like=node)
    count = tensor_of(x).shape[axis]
    size = new(aten.sym_size.int, x, axis)
    places = new(aten.arange.default, size, found=tensor_of(x).new_empty(count, dtype=torch.long))
    rest = range(axis + 1, tensor_of(x).dim())
    for _ in rest:
        places = new(aten.unsqueeze.default, places, -1)
    if node.target is aten.index_add.default:
        index = new(aten.unsqueeze.default, index, 1)
        for _ in rest:
            index = new(aten.unsqueeze.default, index, -1)
    else:
        index = new(aten.unsqueeze.default, index, axis + 1)
    hits = new(aten.eq.Tensor, index, places)
    numbers = new(aten.unsqueeze.default, source, axis + 1)
    found = new(
        aten.sum.dim_IntList, new(aten.where.self, hits, numbers, new(aten.zeros_like.default, numbers)), [axis]
    )
    if operation_name(x) in _ZEROS:
        return found
    if node.target is aten.scatter.src:
        return new(aten.where.self, new(aten.any.dim, hits, axis), found, x)
    return new(aten.add.Tensor, x, found)
