"""Reading the header of a `.safetensors` file.

A file consists of the header length (8 bytes, little-endian), the header (a JSON object with `dtype`, `shape` and
`data_offsets` of each tensor), and the data of the tensors without gaps:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import os
from math import prod
from typing import BinaryIO, TypeGuard, cast

from archspec.core.diagnostics import ArchError, Source
from archspec.core.reports.text import number
from archspec.formats.checkpoints.entries import BITS, DTYPES, MAX_DIMENSIONS, DefectCollector, Entry, damaged, is_size
from archspec.formats.strict_json import read_data

MAX_HEADER_BYTES = 100_000_000
"""Maximum header size that the format allows."""


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
    header = parse_json(text, label, "the header", f"header of {os.path.basename(label)}")
    defects = DefectCollector(label)
    _check_metadata(header.pop("__metadata__", {}), defects)
    entries = [entry for name, info in header.items() if (entry := _parse_entry(name, info, label, defects))]
    defects.check()
    _check_layout(entries, size - 8 - length, defects)
    defects.check()
    return [entry._replace(offset=8 + length) for entry in entries]


def _check_metadata(metadata: object, defects: DefectCollector) -> None:
    if not isinstance(metadata, dict) or any(
        not isinstance(value, str) for value in cast("dict[str, object]", metadata).values()
    ):
        defects.add("metadata", "expected a mapping of strings to strings in `__metadata__`")


def _parse_entry(name: str, info: object, label: str, defects: DefectCollector) -> Entry | None:
    if not defects.has_name(name):
        return None
    fields = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if dtype is None or shape is None or offsets is None:
        defects.add("fields", f"missing `dtype`, `shape` or `data_offsets` of `{name}`")
    elif not isinstance(dtype, str) or dtype not in DTYPES:
        defects.add("dtype", f"unknown dtype of `{name}`: {_format_value(dtype)}")
    elif not _is_sizes(shape):
        defects.add("shape", f"invalid shape of `{name}`: {_format_value(shape)}")
    elif len(shape) > MAX_DIMENSIONS:
        defects.add("rank", f"too many axes in the shape of `{name}`: the limit is {MAX_DIMENSIONS}")
    elif not _is_pair(offsets):
        defects.add("offsets", f"invalid data_offsets of `{name}`: {_format_value(offsets)}")
    else:
        bits = prod(shape) * BITS[DTYPES[dtype]]
        start, stop = offsets
        if bits != 8 * (stop - start):
            expected = f"{bits // 8:,}" if bits % 8 == 0 else f"{bits / 8:,}"
            tensor = f"{dtype} of shape {_format_value(shape)}"
            defects.add("size", f"`{name}`: expected {expected} bytes for {tensor}, found {stop - start:,}")
        return Entry(name, tuple(shape), DTYPES[dtype], stop - start, label, "", start)
    return None


def _is_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(map(is_size, cast("list[object]", value)))


def _is_pair(offsets: object) -> TypeGuard[list[int]]:
    return _is_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]


def _check_layout(entries: list[Entry], size: int, defects: DefectCollector) -> None:
    """Check that every one of the `size` bytes after the header belongs to exactly one tensor."""
    end, previous = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.bytes)):
        if entry.start < end:
            defects.add("overlap", f"`{entry.name}` starts at byte {entry.start:,}, inside `{previous}`")
        elif entry.start > end:
            defects.add("gap", f"bytes {end:,} to {entry.start:,} belong to no tensor")
        if entry.start + entry.bytes >= end:
            end, previous = entry.start + entry.bytes, entry.name
    if end > size:
        defects.add("short", f"file is truncated: expected {end:,} bytes of tensors, found {size:,}")
    elif end < size:
        defects.add("rest", f"found {number(size - end, 'byte')} after the last tensor")


def _format_value(value: object) -> str:
    """Format a value from the header for a message."""
    try:
        text = f"{value!a:.60}" if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        return "a number with thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


# JSON -----------------------------------------------------------------------------------------------------------------

MAX_ITEMS = 4_000_000


def parse_json(data: bytes, label: str, noun: str, source_label: str | None = None) -> dict[str, object]:
    """Parse the JSON object in `data`, which messages call `noun`. Raises ArchError if it is invalid.

    Untrusted files may not have duplicate names, NaN, deep nesting or too many items. `source_label` names the text in
    locations (default: `label`, the file).
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_ITEMS:
        raise damaged(label, f"too many items in {noun}: the limit is {MAX_ITEMS:,}")
    try:
        value = read_data(Source(source_label or label, data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise damaged(label, f"{noun} is not UTF-8 text: invalid byte at offset {error.start}") from None
    except ArchError as error:
        (diagnostic,) = error.diagnostics
        message = f"{label}: cannot read {noun}: {diagnostic.message}"
        raise ArchError([diagnostic._replace(code="bad-checkpoint", message=message)]) from None
    if not isinstance(value, dict):
        raise damaged(label, f"{noun} is not a JSON object")
    return cast("dict[str, object]", value)
