"""Buckets of numbers that a program computes of constants alone, and rounds as PyTorch does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.core.algebra import Dim
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.stored import MAX_LISTED, rows
from archspec.pytorch.passes.folding import compute_constant, tags_of
from archspec.pytorch.passes.programs import formula_of, is_node, nodes_of, schema_of
from archspec.pytorch.values.arguments import UntranslatableError, as_list, operation_name
from archspec.pytorch.values.numbers import is_counted_exactly
from archspec.pytorch.values.values import Value

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.fx import Node

_MAKING = {"ones", "zeros", "full", "new_ones", "new_zeros", "new_full"}
"""What operations make of sizes, and one number."""

_VIEWING = {"view", "reshape", "_unsafe_view", "expand"}
"""What operations make of a tensor, and sizes."""

_BY_ITEM = {"unsqueeze", "select", "slice", "sum", "_to_copy", "to", "clone", "alias", "bucketize"}
"""What other operations do to each item of a batch, if the batch is the first axis before and after them."""


class Buckets(NamedTuple):
    """Nodes by what they compute for an item of a batch, and the nodes that nothing but these needs."""

    found: Mapping[Node, Tensor]
    unneeded: frozenset[Node]


def buckets_of(program: ExportedProgram) -> Buckets:
    """Return the buckets of known numbers between bounds that are rounded."""
    known: dict[Node, Tensor] = {}
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    tensors = cast("Mapping[str, Tensor]", program.constants)
    for node in nodes_of(program.graph):
        value = tensors[constants[node.name]] if node.name in constants else _of_one(node, known)
        if value is not None:
            known[node] = value
    buckets = [node for node in known if operation_name(node) == "bucketize"]
    found = {node: known[node] for node in buckets if _is_rounded(node.args[1])}
    unneeded: set[Node] = set()
    for node in reversed(nodes_of(program.graph) if found else []):
        is_known = node in known and node not in found and node.op == "call_function"
        if is_known and all(user in found or user in unneeded for user in node.users):
            unneeded.add(node)
    return Buckets(found, frozenset(unneeded))


def bucket_table(builder: SpecBuilder, value: Tensor, shape: Sequence[Dim]) -> Value:
    """Return buckets as a list of numbers, for a batch of any size if that is an axis of the shape."""
    is_batched = bool(shape) and not isinstance(shape[0], int)
    row = value[0] if is_batched else value
    if row.numel() > MAX_LISTED:
        raise UntranslatableError("it has more buckets with rounded bounds than can be written")
    return builder.spread(builder.op("table", values=rows(row)), tuple(shape))


def _is_rounded(node: object) -> bool:
    """Whether a node counts in steps that PyTorch rounds."""
    return is_node(node) and operation_name(node) == "arange" and not is_counted_exactly(node.args)


def _of_one(node: Node, known: Mapping[Node, Tensor]) -> Tensor | None:
    """Return what a node computes for one item, if that is the same for each item of a batch; None if it is not."""
    import torch

    if schema_of(node) is None or not isinstance(node.meta.get("val"), torch.Tensor) or not _is_by_item(node, known):
        return None
    return compute_constant(node, lambda other: known.get(other, 1))


def _is_by_item(node: Node, known: Mapping[Node, Tensor]) -> bool:
    """Whether a node does the same to each item of a batch, which is the first axis, if there is one."""
    import torch

    name, inputs = operation_name(node), node.all_input_nodes
    sizes = [item for item in inputs if not isinstance(item.meta.get("val"), torch.Tensor)]
    tensors = [item for item in inputs if item not in sizes]
    if any(item not in known for item in tensors):
        return False
    batches = {_batch(item.meta["val"]) for item in (node, *tensors)} | {str(item.meta.get("val")) for item in sizes}
    if batches == {""}:
        return True
    if len(batches - {""}) > 1 or not _batch(node.meta["val"]) or "?" in batches:
        return False
    if name in _MAKING or name in _VIEWING:
        return all(item in _sizes_of(node, name) for item in sizes)
    return not sizes and (name in _BY_ITEM or torch.Tag.pointwise in tags_of(node))


def _sizes_of(node: Node, name: str) -> list[object]:
    """Return the sizes that an operation is given."""
    takes_tensor = name in _VIEWING or name.startswith("new_")
    return as_list(node.args[takes_tensor]) if len(node.args) > takes_tensor else []


def _batch(value: Tensor) -> str:
    """Return the size of the first axis, if it may be any; `?` if others may be; empty if none may be."""
    free = [axis for axis, size in enumerate(value.shape) if formula_of(size) is not None]
    return "" if not free else str(value.shape[0]) if free == [0] else "?"
