"""The number that RMS norms add where a module has none: it depends on the precision of the module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import TYPE_CHECKING

from archspec.pytorch.patches.intercepting import Function, intercept_mode

if TYPE_CHECKING:
    from torch import nn


def keep_epsilon(module: nn.Module) -> None:
    """Give RMS norms without an `eps` that of float32, in a module that was made in float64 in place of it."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.nn.RMSNorm) and part.eps is None:
            part.eps = torch.finfo(torch.float32).eps


def with_epsilon_of(module: nn.Module) -> AbstractContextManager[object]:
    """Return the mode in which RMS norms without an `eps` have that of the element type of their input, as in PyTorch;
    for float64 that of the module, which may have been converted to it.
    """
    import torch

    tensors = chain(module.parameters(), module.buffers())
    dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)

    def call(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
        if getattr(func, "__name__", "") != "rms_norm" or [*args[3:], named.get("eps")][0] is not None:
            return func(*args, **named)
        x = args[0] if args else named["input"]
        assert isinstance(x, torch.Tensor)
        of_type = dtype if x.dtype is torch.float64 else x.dtype
        return func(*args[:3], **{**named, "eps": torch.finfo(of_type).eps})

    return intercept_mode(call)
