"""Tensors that a module also keeps elsewhere, such as in a list, which `torch.export` takes for constants there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard, cast

from archspec.pytorch.calls.values import UntranslatableError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram


def read_stored_tensors(program: ExportedProgram) -> None:
    """Read parameters and stored buffers by their names wherever a program has them as constants.

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
