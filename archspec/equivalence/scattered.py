"""Numbers that a program puts at indices along the last axis, as sums over these indices.

If no two of the indices are the same, as those of the largest scores, then each place gets one number or none. What is
added there may have any indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.equivalence.calls.values import operation_of
from archspec.equivalence.matches import are_different
from archspec.equivalence.programs import added, is_node, nodes_of, tensor_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node

_ZEROS = ("zeros", "zeros_like", "new_zeros")


def without_scattered(program: ExportedProgram) -> None:
    """Have a program compute sums where it puts numbers at different indices, or adds numbers there."""
    import torch

    aten = torch.ops.aten
    for node in nodes_of(program.graph):
        if node.target not in (aten.scatter.src, aten.scatter_add.default) or node.kwargs or len(node.args) != 4:
            continue
        x, axis, index, source = node.args
        if not is_node(x) or not is_node(index) or not is_node(source) or not _are_rows(x, axis, index, source):
            continue
        is_added = node.target is aten.scatter_add.default
        if is_added or are_different(index):
            with program.graph.inserting_before(node):
                found = _summed(program.graph, x, index, source, is_added)
            node.replace_all_uses_with(found)
            program.graph.erase_node(node)


def _are_rows(x: Node, axis: object, index: Node, source: Node) -> bool:
    """Whether indices along the last axis, and what is put there, have the other axes of what it is put in."""
    shape, indices = tensor_of(x).shape, tensor_of(index).shape
    is_last = axis in (-1, len(shape) - 1) and len(shape) == len(indices)
    return is_last and indices[:-1] == shape[:-1] and tensor_of(source).shape == indices


def _summed(graph: Graph, x: Node, index: Node, source: Node, is_added: bool) -> Node:
    """Return what a tensor is after numbers are put at indices, or are added there."""
    import torch

    aten = torch.ops.aten
    count = tensor_of(x).shape[-1]
    places = added(graph, aten.arange.default, count, like=index, found=tensor_of(x).new_empty(count, dtype=torch.long))
    hits = added(graph, aten.eq.Tensor, added(graph, aten.unsqueeze.default, index, -1), places)
    numbers = added(graph, aten.unsqueeze.default, source, -1)
    zero = added(graph, aten.zeros_like.default, numbers)
    found = added(graph, aten.sum.dim_IntList, added(graph, aten.where.self, hits, numbers, zero), [-2])
    if operation_of(x) in _ZEROS:
        return found
    if is_added:
        return added(graph, aten.add.Tensor, x, found)
    return added(graph, aten.where.self, added(graph, aten.any.dim, hits, -2), found, x)
