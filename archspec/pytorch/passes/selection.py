"""Rows that a mask selects, in exported programs: `x[mask]`, what is computed of each row, and its way back.

How many rows that are depends on the data, so the language has no size for it. A program that only applies something to
each row by itself, and puts the rows back where they come from, computes the same if it takes all rows, and puts back
those for which the mask is true.

    # before                      # after
    rows = linear(x[mask], w)     rows = linear(x, w)
    index_put(x, [mask], rows)    where(mask.unsqueeze(-1), rows, x)

Experts of selected tokens (mistral-inference) and layers for one kind of tokens (CogVLM) need it.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from archspec.pytorch.passes.matches import are_different
from archspec.pytorch.passes.programs import (
    IDENTITY_OPERATIONS,
    VIEWS,
    SymPyExpression,
    add_node,
    allow_size_one,
    formula_of,
    is_node,
    node_in,
    nodes_of,
    schema_of,
    size_of,
    tensor_of,
    tensors_of,
)
from archspec.pytorch.values.arguments import UntranslatableError, as_list, operation_name

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node


# Numbers that a program puts at indices along an axis, as sums over these indices.
#
# If no two of the indices are the same, as those of the largest scores, then each place gets one number or none. What
# is added there may have any indices.
#
#     # before                          # after
#     index = topk(scores, 2)[1]        hits = index.unsqueeze(2) == arange(n)
#     scatter(zeros, 1, index, y)       sum(where(hits, y.unsqueeze(2), 0), [1])
#
# A router of one expert (transformers), histograms of tokens by expert, and messages in graph networks need it.

_ZEROS = ("zeros", "zeros_like", "new_zeros")


def rewrite_scatter(program: ExportedProgram) -> None:
    """Rewrite `scatter` to distinct indices, and `scatter_add`, as sums."""
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


_VECTOR_OPERATIONS = ("linear", "layer_norm", "rms_norm", "matmul")
_ALONG_AXES = (
    "sum", "mean", "amax", "softmax", "_softmax", "unsqueeze", "squeeze", "cat", "split", "split_with_sizes", "chunk",
    "slice", "select", "transpose",
)  # fmt: skip
_AXES = ("dim", "dim0", "dim1")

Rows: TypeAlias = "dict[Node, Hashable]"
"""Nodes whose first axis are the rows that a mask selects, and the mask."""


def rewrite_row_selection(program: ExportedProgram) -> dict[str, Node]:
    """Rewrite row selection by a mask as a computation on all rows. Return the masks by the symbols of their numbers.

    Raises Untranslatable if it does anything else with them than with each row by itself.
    """
    import torch

    masks: dict[str, Node] = {}
    rows: Rows = {}
    for node in nodes_of(program.graph):
        mask = _selecting(node)
        if mask is not None:
            masks[str(_sizes(node)[0])] = mask
            rows[node] = _form(mask)
            node.target, node.args = torch.ops.aten.reshape.default, (node.args[0], [])
            continue
        given = [item for item in node.all_input_nodes if item in rows]
        if given and _is_put_back(node, rows):
            _choose(program.graph, node)
        elif given and _is_rowwise(node, rows) and _keeps_rows(node, given[0]) and len({*map(rows.get, given)}) == 1:
            rows[node] = rows[given[0]]
        elif masks and _depends_on_others(node, given, {*masks}):
            raise UntranslatableError("it selects rows by a mask, and computes something of several rows")
    return masks


def _sizes(node: Node) -> tuple[int | SymPyExpression, ...]:
    """Return the sizes of a tensor, as numbers and expressions of PyTorch."""
    return _sizes_of(tensor_of(node))


def _sizes_of(tensor: Tensor) -> tuple[int | SymPyExpression, ...]:
    return tuple([size_of(size) for size in tensor.shape])


def _selecting(node: Node) -> Node | None:
    """Return the mask of leading axes by which a node selects rows; None for any other node."""
    import torch

    if node.op != "call_function" or operation_name(node) != "index":
        return None
    indices: list[object] = as_list(node.args[1])
    if len(indices) != 1 or not is_node(mask := indices[0]) or tensor_of(mask).dtype != torch.bool:
        return None
    return mask


def _form(mask: Node) -> Hashable:
    """Return what a mask is, without axes at its end along which it does not change: equal ones select the same."""
    name = operation_name(mask)
    source = mask.args[0] if mask.args else None
    if not is_node(source):
        return mask
    if name == "unsqueeze" and mask.args[1] in (-1, len(_sizes(source))):
        return _form(source)
    if name in IDENTITY_OPERATIONS and tensor_of(source).dtype == tensor_of(mask).dtype:
        return _form(source)
    return ("not", _form(source)) if name in ("bitwise_not", "logical_not") else mask


def _is_put_back(node: Node, rows: Rows) -> bool:
    """Whether a node puts rows where a mask selects them, and has what is computed of the same ones."""
    if operation_name(node) not in ("index_put", "masked_scatter") or len(node.args) != 3:
        return False
    if len(as_list(node.args[1])) != 1:
        return False
    x, mask, value = [node_in(item) for item in node.args]
    if x in rows or rows.get(value) != _form(mask):
        return False
    leading, wide = len(_sizes(x)) - len(_sizes(value)) + 1, _sizes(mask)
    if operation_name(node) == "masked_scatter" and len(wide) != len(_sizes(x)):
        return False
    is_whole = wide[:leading] == _sizes(x)[:leading] and all(size == 1 for size in wide[leading:])
    return is_whole and _sizes(value)[1:] == _sizes(x)[leading:]


def _choose(graph: Graph, node: Node) -> None:
    """Take the rows where the mask is true, and the others elsewhere."""
    import torch

    x, mask, value = [node_in(item) for item in node.args]

    with graph.inserting_before(node):
        while len(_sizes(mask)) < len(_sizes(x)):
            mask = add_node(graph, torch.ops.aten.unsqueeze.default, mask, -1, like=node)
        value = add_node(graph, torch.ops.aten.reshape.default, value, [], like=node, found=tensor_of(x))
        chosen = add_node(graph, torch.ops.aten.where.self, mask, value, x, like=node, found=tensor_of(node))
    node.replace_all_uses_with(chosen)
    graph.erase_node(node)


def _is_rowwise(node: Node, rows: Rows) -> bool:
    """Whether a node computes each row of its results of the same row of its arguments, and of nothing else."""
    import torch

    name, first = operation_name(node), as_list(node.args[0])[0]
    if node.target is operator.getitem or name in VIEWS:
        return True  # if it keeps the rows
    if not all(hasattr(item.meta.get("val"), "shape") for item in node.all_input_nodes):
        return False  # a number, which may be that of the rows
    if torch.Tag.pointwise in getattr(node.target, "tags", ()):
        rank = len(_sizes(node))
        return all(
            len(_sizes(item)) == rank if item in rows else len(_sizes(item)) < rank or _sizes(item)[0] == 1
            for item in node.all_input_nodes
        )
    if not is_node(first):
        return False  # an equation
    rank = len(_sizes(first))
    if name in _VECTOR_OPERATIONS:
        others = [item for item in node.all_input_nodes if item is not first]
        count = len(as_list(node.args[1])) if name.endswith("norm") else 1
        return first in rows and count < rank and all(item not in rows and len(_sizes(item)) < 3 for item in others)
    rank = len(_sizes(node)) if name == "unsqueeze" else rank
    return name in IDENTITY_OPERATIONS or (name in _ALONG_AXES and all(axis % rank for axis in _axes(node)))


def _keeps_rows(node: Node, given: Node) -> bool:
    """Whether the first axes of all results are the rows."""
    (count,) = _counts(given)
    return _counts(node) == {count}


def _counts(node: Node) -> set[tuple[int | SymPyExpression, ...]]:
    """Return the sizes of the first axes of a tensor, or of each tensor of a list."""
    return {_sizes_of(value)[:1] for value in tensors_of(node)}


def _axes(node: Node) -> list[int]:
    """Return the axes that a node works along, as far as it names them."""
    schema = schema_of(node)
    names = [parameter.name for parameter in schema.arguments] if schema is not None else []
    given: dict[str, object] = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return [axis for name in _AXES for axis in as_list(given.get(name)) if isinstance(axis, int)]


def _depends_on_others(node: Node, given: list[Node], numbers: set[str]) -> bool:
    """Whether rows, or how many there are, make a difference to a tensor or output that is not computed row by row."""
    if node.op != "call_function":
        return bool(given)
    results = tensors_of(node)
    sizes: list[object] = [size for value in results for size in value.shape]
    sizes += [item.meta.get("val") for item in node.all_input_nodes]
    return bool(results) and (bool(given) or any(_symbols(size) & numbers for size in sizes))


def _symbols(size: object) -> set[str]:
    """Return the names of the symbols in a size; none for a tensor."""
    formula = formula_of(size)
    return set() if formula is None else {str(symbol) for symbol in formula.free_symbols}
