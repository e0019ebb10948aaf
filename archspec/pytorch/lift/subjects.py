"""Subjects from a module and example inputs: which of its sizes are free is found by trying."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.pytorch.lift.calling import call_exception
from archspec.pytorch.lift.subject import Subject

if TYPE_CHECKING:
    import torch
    from torch import nn


def subject_of(module: nn.Module, inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor]) -> Subject:
    """Return what is to be lifted for a module and inputs, by argument of `forward` or in its order."""
    names = list(inspect.signature(module.forward).parameters)
    given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    ordered = {name: given[name] for name in names if name in given} | given
    config = getattr(module, "config", None)
    numbers: Mapping[str, object] = config.to_dict() if config is not None and hasattr(config, "to_dict") else {}
    return Subject(module, ordered, _others(module, ordered), numbers=numbers)


def _others(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
    """Return inputs with as many other sizes as the module accepts: the batch, and one more axis."""
    for axes in ((0, 1), (0,)):
        found = {name: _resized(tensor, axes) for name, tensor in inputs.items()}
        if call_exception(module, found) is None:
            return found
    return None


def _resized(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """Return a tensor with one more element along axes: axis 1 only of ids and sequences."""
    for axis in axes:
        if (axis == 0 and tensor.dim()) or (
            axis == 1 and (tensor.dim() == 3 or (tensor.dim() == 2 and not tensor.dtype.is_floating_point))
        ):
            tensor = tensor.new_zeros([size + (at == axis) * (1 + axis) for at, size in enumerate(tensor.shape)])
    return tensor
