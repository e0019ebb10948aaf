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
def symbolic_len(module: nn.Module) -> Generator[None]:
    """Let `len` return the size of the first axis of a tensor in the files that the classes of a module are from."""
    changed = [names for names in namespaces(module) if "len" not in names]
    for file in changed:
        file["len"] = _length
    try:
        yield
    finally:
        for file in changed:
            del file["len"]


def namespaces(module: nn.Module) -> list[dict[str, object]]:
    """Return the global names of the files that the classes of a module are from, except for those of PyTorch.

    A file that a user names is not imported as a module.
    """
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    found: list[dict[str, object]] = [getattr(vars(kind).get("forward"), "__globals__", {}) for kind in kinds]
    found += [vars(sys.modules[kind.__module__]) for kind in kinds if kind.__module__ in sys.modules]
    own = {id(names): (str(names.get("__name__", "")), names) for names in found}  # a file may have the name of another
    named = sorted(own.values(), key=lambda item: item[0])
    return [names for name, names in named if name.partition(".")[0] not in ("", "builtins", "torch")]


def _length(item: Sized | torch.Tensor) -> int:
    import torch

    return item.shape[0] if isinstance(item, torch.Tensor) and item.dim() else builtins.len(item)
