"""Values that a program computes from nothing but constants."""

from __future__ import annotations

from typing import Any

from archspec.equivalence.calls.values import operation_of


def folded_constants(program: Any) -> dict[Any, Any]:
    """Return what the nodes of an exported program are that compute reals from constants, for nodes that do not."""
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    known: dict[Any, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in constants:
            known[node] = program.constants[constants[node.name]]
        elif node.op == "call_function":
            value = _filled(node)
            if value is None and all(item in known for item in node.all_input_nodes):
                value = _computed(node, known)
            if value is not None:
                known[node] = value
    return {
        node: value
        for node, value in known.items()
        if value.dtype.is_floating_point and any(user not in known for user in node.users)
    }


FILLED = {"new_zeros": 0, "zeros_like": 0, "new_ones": 1, "ones_like": 1}
"""What operations fill a tensor with that take but the type, or the shape, from another one."""


def _filled(node: Any) -> Any:
    """Return the tensor that an operation fills with one number; None if it does something else, or has any size."""
    import torch

    number = FILLED.get(operation_of(node))
    shape = getattr(node.meta.get("val"), "shape", ())
    if number is None or not all(isinstance(size, int) for size in shape):
        return None
    return torch.full(tuple(shape), number, dtype=node.meta["val"].dtype)


def _computed(node: Any, known: dict[Any, Any]) -> Any:
    """Return the tensor that an operation on known tensors computes; None if that is another one each time."""
    import torch
    from torch.fx.node import map_arg

    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags:
        return None
    with torch.no_grad():
        try:
            found = node.target(*map_arg(node.args, known.__getitem__), **map_arg(node.kwargs, known.__getitem__))
        except RuntimeError:  # such as on a device that is not there
            return None
    return found if isinstance(found, torch.Tensor) and found.device.type == "cpu" else None
