"""Which tensors of a checkpoint are buffers, as far as types and names show."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.addresses import last, parent
from archspec.checkpoints.entries import Entry

STATISTICS = ("running_mean", "running_var")
"""The buffers of batch normalization in PyTorch."""


def buffer_names(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the names of the tensors that are taken for buffers: integers, booleans and statistics."""
    names = {entry.name for entry in entries}
    return frozenset(
        entry.name
        for entry in entries
        if entry.dtype.startswith(("bool", "int", "uint"))
        or (last(entry.name) in STATISTICS and all(f"{parent(entry.name)}.{other}" in names for other in STATISTICS))
    )
