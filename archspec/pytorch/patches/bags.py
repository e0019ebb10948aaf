"""Sums and means of embeddings of PyTorch, as those of rows of the table: `torch.export` has an operation of its own
for them, which takes all bags one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from archspec.pytorch.patches.intercepting import Function, intercept_mode

if TYPE_CHECKING:
    from torch import Tensor

UNSUPPORTED_ARGUMENTS = ("per_sample_weights", "max_norm", "padding_idx", "offsets")
"""Arguments without which the bags are rows of a matrix of ids, all of which count."""


def embedding_bag_mode() -> AbstractContextManager[object]:
    """Return the mode in which bags that are the rows of a matrix of ids are looked up and reduced."""
    return intercept_mode(_looked_up)


def _looked_up(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    import torch

    if func is not torch.nn.functional.embedding_bag:
        return func(*args, **named)
    ids, weight = cast("Sequence[Tensor]", args)  # PyTorch passes all others by name
    if ids.dim() != 2 or any(named.get(name) is not None for name in UNSUPPORTED_ARGUMENTS):
        return func(*args, **named)
    rows = torch.nn.functional.embedding(ids, weight)
    mode = str(named["mode"])
    return rows.amax(1) if mode == "max" else getattr(rows, mode)(1)
