"""Lengths of tensors as sizes: `len(x)` is always a number, and would be fixed in the exported program."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Generator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn


@contextmanager
def free_lengths(module: nn.Module) -> Generator[None]:
    """Let `len` return the size of the first axis of a tensor in the files that the classes of a module are from."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    names = {kind.__module__ for kind in kinds if kind.__module__.partition(".")[0] not in ("builtins", "torch")}
    files = [vars(sys.modules[name]) for name in sorted(names) if name in sys.modules]
    changed = [file for file in files if "len" not in file]
    for file in changed:
        file["len"] = _length
    try:
        yield
    finally:
        for file in changed:
            del file["len"]


def _length(item: Sized | torch.Tensor) -> int:
    import torch

    return item.shape[0] if isinstance(item, torch.Tensor) and item.dim() else builtins.len(item)
