"""Reading the header of a `.safetensors` file.

A file consists of the header length (8 bytes, little-endian), the header (a JSON object with `dtype`, `shape` and
`data_offsets` of each tensor), and the data of the tensors without gaps:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

from math import prod
from typing import BinaryIO, TypeGuard, cast

from archspec.core.reports.text import number
from archspec.formats.checkpoints import strictjson
from archspec.formats.checkpoints.entries import BITS, DTYPES, MAX_DIMENSIONS, DefectCollector, Entry, damaged, is_size

MAX_HEADER_BYTES = 100_000_000
"""The limit of the format itself, in bytes."""


def read(file: BinaryIO, size: int, label: str) -> list[Entry]:
    """Return the tensors of a file of `size` bytes, in header order. Raises ArchError for an invalid file."""
    if size < 8:
        raise damaged(label, "not a safetensors file: it is too short for a header")
    length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER_BYTES:
        message = f"not a safetensors file: header of {length:,} bytes exceeds the limit of {MAX_HEADER_BYTES:,}"
        raise damaged(label, message)
    if 8 + length > size:
        raise damaged(label, f"file is truncated: expected a header of {length:,} bytes, but the file has {size:,}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise damaged(label, "not a safetensors file: the header does not start with `{`")
    header = strictjson.parse(text, label, "the header")
    faults = DefectCollector(label)
    _check_metadata(header.pop("__metadata__", {}), faults)
    entries = [entry for name, info in header.items() if (entry := _entry(name, info, label, faults))]
    faults.check()
    _check_layout(entries, size - 8 - length, faults)
    faults.check()
    return entries


def _check_metadata(metadata: object, faults: DefectCollector) -> None:
    if not isinstance(metadata, dict) or any(
        not isinstance(value, str) for value in cast("dict[str, object]", metadata).values()
    ):
        faults.add("metadata", "expected a mapping of strings to strings in `__metadata__`")


def _entry(name: str, info: object, label: str, faults: DefectCollector) -> Entry | None:
    if not faults.has_name(name):
        return None
    fields = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if dtype is None or shape is None or offsets is None:
        faults.add("fields", f"missing `dtype`, `shape` or `data_offsets` of `{name}`")
    elif not isinstance(dtype, str) or dtype not in DTYPES:
        faults.add("dtype", f"unknown dtype of `{name}`: {_shown(dtype)}")
    elif not _is_sizes(shape):
        faults.add("shape", f"invalid shape of `{name}`: {_shown(shape)}")
    elif len(shape) > MAX_DIMENSIONS:
        faults.add("rank", f"too many axes in the shape of `{name}`: the limit is {MAX_DIMENSIONS}")
    elif not _is_pair(offsets):
        faults.add("offsets", f"invalid data_offsets of `{name}`: {_shown(offsets)}")
    else:
        bits = prod(shape) * BITS[DTYPES[dtype]]
        start, stop = offsets
        if bits != 8 * (stop - start):
            needs = f"{bits // 8:,}" if bits % 8 == 0 else f"{bits / 8:,}"
            shown = f"{dtype} of shape {_shown(shape)}"
            faults.add("size", f"`{name}`: expected {needs} bytes for {shown}, found {stop - start:,}")
        return Entry(name, tuple(shape), DTYPES[dtype], stop - start, label, "", start)
    return None


def _is_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(map(is_size, cast("list[object]", value)))


def _is_pair(offsets: object) -> TypeGuard[list[int]]:
    return _is_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]


def _check_layout(entries: list[Entry], size: int, faults: DefectCollector) -> None:
    """Check that every one of the `size` bytes after the header belongs to exactly one tensor."""
    end, before = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.bytes)):
        if entry.start < end:
            faults.add("overlap", f"`{entry.name}` starts at byte {entry.start:,}, inside `{before}`")
        elif entry.start > end:
            faults.add("gap", f"bytes {end:,} to {entry.start:,} belong to no tensor")
        if entry.start + entry.bytes >= end:
            end, before = entry.start + entry.bytes, entry.name
    if end > size:
        faults.add("short", f"file is truncated: expected {end:,} bytes of tensors, found {size:,}")
    elif end < size:
        faults.add("rest", f"found {number(size - end, 'byte')} after the last tensor")


def _shown(value: object) -> str:
    """Format a value from the header for a message."""
    try:
        text = f"{value!a:.60}" if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        return "a number with thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
