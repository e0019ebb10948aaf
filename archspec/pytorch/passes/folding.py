"""Values that a program computes from nothing but constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from archspec.pytorch.calls.values import operation_name
from archspec.pytorch.passes.programs import nodes_of, schema_of

if TYPE_CHECKING:
    from torch import Tag, Tensor
    from torch.export import ExportedProgram
    from torch.fx import Node


def fold_constants(program: ExportedProgram) -> dict[Node, Tensor]:
    """Return the reals that nodes of an exported program compute from constants alone, where other nodes use them."""
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    tensors = cast("Mapping[str, Tensor]", program.constants)
    known: dict[Node, Tensor] = {}
    for node in nodes_of(program.graph):
        if node.op == "placeholder" and node.name in constants:
            known[node] = tensors[constants[node.name]]
        elif node.op == "call_function":
            value = _filled(node)
            if value is None and all(item in known for item in node.all_input_nodes):
                value = compute_constant(node, known.__getitem__)
            if value is not None:
                known[node] = value
    return {
        node: value
        for node, value in known.items()
        if value.dtype.is_floating_point and any(user not in known for user in node.users)
    }


FILLED = {"new_zeros": 0, "zeros_like": 0, "new_ones": 1, "ones_like": 1}
"""The number with which operations fill a tensor that only has its type, or its shape, from another one."""


def _filled(node: Node) -> Tensor | None:
    """Return the tensor that an operation fills with one number; None if it does something else, or has any size."""
    import torch

    number = FILLED.get(operation_name(node))
    shape = getattr(node.meta.get("val"), "shape", ())
    if number is None or not all(isinstance(size, int) for size in shape):
        return None
    return torch.full(tuple(shape), number, dtype=node.meta["val"].dtype)


def compute_constant(node: Node, known: Callable[[Node], Tensor | int]) -> Tensor | None:
    """Return the tensor that an operation computes of known values; None if it is another one each time."""
    import torch
    from torch.fx.node import map_arg

    schema = schema_of(node)
    if schema is None or schema.is_mutable or torch.Tag.nondeterministic_seeded in tags_of(node):
        return None
    operation = cast("Callable[..., object]", node.target)
    with torch.no_grad():
        try:
            found = operation(*map_arg(node.args, known), **map_arg(node.kwargs, known))
        except RuntimeError:  # such as on a device that is not there
            return None
    return found if isinstance(found, torch.Tensor) and found.device.type == "cpu" else None


def tags_of(node: Node) -> Sequence[Tag]:
    """Return the tags of the operation of a node."""
    return getattr(node.target, "tags", ())
