"""Values that a program computes from constants alone, and constants that are tensors of the module.

    # before                                        # after
    angles = arange(0, 8, 2); x * exp(-angles)      x * table            fold_constants
    constant = self.layers[0].weight; x @ constant  x @ layers.0.weight  read_stored_tensors

Masks of shifted windows that each call computes, and tables that the spec has as formulas, need the first
rewriting; modules that also keep layers in a plain list need the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

from archspec.pytorch.passes.programs import nodes_of, schema_of
from archspec.pytorch.values.arguments import UntranslatableError, operation_name

if TYPE_CHECKING:
    from torch import Tag, Tensor
    from torch.export import ExportedProgram
    from torch.fx import Node


def read_stored_tensors(program: ExportedProgram) -> None:
    """Replace constants that are parameters or stored buffers by reads of the named tensors.

    Raises Untranslatable for a constant that is a part of one: it changes with that.
    """
    from torch.export.graph_signature import InputKind

    signature = program.graph_signature
    buffers, constants = {*signature.buffers}, cast("Mapping[str, object]", program.constants)
    stored: defaultdict[int, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in cast("Mapping[str, Tensor]", program.state_dict).items():
        if _has_values(tensor):
            stored[tensor.untyped_storage().data_ptr()][name] = tensor
    for spec in signature.input_specs:
        value = constants.get(spec.target or "")
        if not _has_values(value):
            continue
        alike = stored[value.untyped_storage().data_ptr()]
        name = next((name for name, tensor in alike.items() if _is_same(value, tensor)), None)
        if name is not None:
            is_buffer = name in buffers
            spec.kind, spec.target = InputKind.BUFFER if is_buffer else InputKind.PARAMETER, name
            spec.persistent = True if is_buffer else None
        elif alike:
            raise UntranslatableError(f"it reads a part of its `{next(iter(alike))}` that was taken before the call")


def _has_values(value: object) -> TypeGuard[Tensor]:
    from torch import Tensor
    from torch._subclasses import FakeTensor

    return isinstance(value, Tensor) and not isinstance(value, FakeTensor) and not value.is_meta and value.numel() > 0


def _is_same(value: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same elements of a storage, in the same order."""
    places = [(item.data_ptr(), item.shape, item.stride(), item.dtype) for item in (value, other)]
    return places[0] == places[1]


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
