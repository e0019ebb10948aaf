"""The memory of quantized weights as they are stored, and of adapters beside the weights."""

from __future__ import annotations

import os
from collections.abc import Sequence

from archspec.analysis.adapter.adapter import adapter
from archspec.analysis.cost.dtypes import byte_count
from archspec.analysis.cost.quantized import stored_bytes
from archspec.analysis.fit.fit import MemoryLine
from archspec.core.diagnostics import make_error
from archspec.pipeline.model import Compilation, Model


def stored_line(compilation: Compilation, note: str) -> MemoryLine:
    """Return the memory of quantized weights. Raises ArchError (`unsupported`) if their layout is not supported."""
    quantization = compilation.unit.quantization
    assert quantization is not None
    stored = stored_bytes(compilation.table, quantization)
    if stored.unknown:
        help = "state the type of the weights with `dtype`, or --dtype"
        raise make_error("unsupported", f"the bytes of the weights are unknown: {stored.unknown}", help=help)
    return MemoryLine(f"weights, as stored ({stored.method})", stored.total, "exact", note)


def adapter_lines(
    sources: Sequence[str | os.PathLike[str]], model: Model, dtype: str, is_divided: bool
) -> list[MemoryLine]:
    """Return the memory of adapters of a model. Raises ArchError as `archspec.adapter` does."""
    lines: list[MemoryLine] = []
    for source in sources:
        loaded = adapter(source, base=model)
        bytes = byte_count(loaded.stored.params.total, dtype)
        kind, note = ("at most", "whole on each device") if is_divided else ("exact", "")
        lines.append(MemoryLine(f"adapter {loaded.name}, {dtype}", bytes, kind, note))
    return lines
