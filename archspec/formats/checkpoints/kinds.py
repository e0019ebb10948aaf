"""The buffers among the tensors of a checkpoint, as far as types and names show them."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.addresses import last_segment, parent
from archspec.formats.checkpoints.entries import Entry

STATISTICS = ("running_mean", "running_var")
"""The buffers of batch normalization in PyTorch."""

ROTARY = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""The tensors that conversions to GGUF compute from a configuration."""


def buffer_names(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the names of the tensors that are taken for buffers: integers, booleans, statistics and rotary factors."""
    names = {entry.name for entry in entries}
    return frozenset(
        entry.name
        for entry in entries
        if entry.dtype.startswith(("bool", "int", "uint"))
        or entry.name in ROTARY
        or (
            last_segment(entry.name) in STATISTICS
            and all(f"{parent(entry.name)}.{other}" in names for other in STATISTICS)
        )
    )
