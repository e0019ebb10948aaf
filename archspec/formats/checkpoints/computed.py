"""Recognition of tensors that old versions of libraries store, although they are computed from the configuration.

`transformers` stored causal masks (as in GPT-2), positions (as in CLIP) and the frequencies of rotary embeddings as
buffers. Their elements are compared where they can be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import unpack

from archspec.core.addresses import last_segment
from archspec.formats.checkpoints.elements import CHUNK_BYTES, has_only_zeros, read_elements
from archspec.formats.checkpoints.entries import BITS, Entry

_MASKS = ("bias", "mask", "causal_mask", "attn_mask")
_MAX_MASK_BYTES, _MAX_VECTOR_BYTES = 1 << 28, 1 << 20
_TOLERANCES = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 2e-2}
"""Relative tolerances of frequencies, which libraries compute in different ways."""


def find_computed(entries: Iterable[Entry]) -> dict[str, str]:
    """Return descriptions of the computed tensors, by name."""
    return {entry.name: kind for entry in entries if (kind := _describe(entry))}


def _describe(entry: Entry) -> str:
    last, shape = last_segment(entry.name), entry.shape
    if not entry.bytes or entry.dtype not in BITS or BITS[entry.dtype] < 8:
        return ""
    if last in _MASKS and len(shape) == 4 and shape[:2] == (1, 1) and shape[2] == shape[3]:
        return _describe_mask(entry)
    if entry.bytes > _MAX_VECTOR_BYTES:
        return ""
    if last == "position_ids" and entry.dtype == "int64" and shape[:-1] in ((), (1,)):
        return _describe_vector(entry, "positions", _are_positions(entry))
    if last == "masked_bias" and entry.dtype in _TOLERANCES and entry.elements == 1:
        return _describe_vector(entry, "the score of masked positions", _is_negative(entry))
    if last == "inv_freq" and entry.dtype in _TOLERANCES and len(shape) == 1:
        return _describe_vector(entry, "the frequencies of rotary embeddings", _are_frequencies(entry))
    return ""


def _describe_vector(entry: Entry, kind: str, is_computed: bool | None) -> str:
    return f"{kind} (by name; elements were not read)" if is_computed is None else kind if is_computed else ""


def _describe_mask(entry: Entry) -> str:
    """Describe a mask, which may be limited to a window (GPT-Neo); "" for other elements.

    A row has an element for masked positions, and one for the others; one of both is zero.
    """
    size, width = entry.shape[-1], BITS[entry.dtype] // 8
    row = size * width
    last = read_elements(entry, row * (size - 1))
    first = read_elements(entry, 0, min(2 * width, row))
    if first is None or last is None or entry.bytes > _MAX_MASK_BYTES:
        return "causal mask (by name and shape; elements were not read)"
    seen, masked = last[-width:], first[-width:]
    if seen == masked or (any(seen) and any(masked)):
        return "mask of zeros" if not any(first) and has_only_zeros(entry) else ""
    window = 1
    while window < size and last[-(window + 1) * width :][:width] == seen:
        window += 1
    rows = max(CHUNK_BYTES // row, 1)
    for start in range(0, size, rows):
        stop = min(start + rows, size)
        expected = b"".join(
            masked * max(i + 1 - window, 0) + seen * min(i + 1, window) + masked * (size - 1 - i)
            for i in range(start, stop)
        )
        if read_elements(entry, start * row, (stop - start) * row) != expected:
            return ""
    return "causal mask" if window == size else f"causal mask of {window:,} positions"


def _are_positions(entry: Entry) -> bool | None:
    data = read_elements(entry)
    return None if data is None else unpack(f"<{entry.elements}q", data) == tuple(range(entry.elements))


def _is_negative(entry: Entry) -> bool | None:
    values = _read_reals(entry)
    return None if values is None else values[0] <= 0


def _are_frequencies(entry: Entry) -> bool | None:
    """Whether the elements fall from 1 by a constant factor; None if they cannot be read."""
    values = _read_reals(entry)
    if values is None:
        return None
    if len(values) < 2 or not 0 < values[-1] < 1:
        return False
    factor, tolerance = values[-1] ** (1 / (len(values) - 1)), _TOLERANCES[entry.dtype]
    return all(abs(value - factor**i) <= tolerance * factor**i for i, value in enumerate(values))


def _read_reals(entry: Entry) -> tuple[float, ...] | None:
    data = read_elements(entry)
    if data is not None and entry.dtype == "bfloat16":  # the upper two bytes of a float32
        data = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
    return None if data is None else unpack(f"<{entry.elements}{'e' if entry.dtype == 'float16' else 'f'}", data)
