"""The header of a `.safetensors` file.

A file is the length of the header (8 bytes, little-endian), the header (a JSON object: for each tensor its `dtype`,
`shape` and `data_offsets`), and the tensors' bytes, one tensor after the other without gaps:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

from math import prod
from typing import BinaryIO, TypeGuard, cast

from archspec.checkpoints import strictjson
from archspec.checkpoints.entries import BITS, MOST_DIMENSIONS, Entry, is_size
from archspec.checkpoints.faults import Faults, bytes_of, damaged

LARGEST_HEADER = 100_000_000
"""Bytes: the limit of the format itself."""

DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F4": "float4_e2m1fn",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}


def read(file: BinaryIO, size: int, label: str) -> list[Entry]:
    """The tensors of a file of `size` bytes, in the order of the header. Raises ArchError for whatever is wrong."""
    if size < 8:
        raise damaged(label, "is no safetensors file: it ends before its header begins")
    length = int.from_bytes(file.read(8), "little")
    if length > LARGEST_HEADER:
        raise damaged(
            label, f"is no safetensors file: a header of {length:,} bytes, where {LARGEST_HEADER:,} are allowed"
        )
    if 8 + length > size:
        raise damaged(label, f"is cut short: a header of {length:,} bytes in a file of {size:,}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise damaged(label, "is no safetensors file: its header does not begin with `{`")
    header = strictjson.parse(text, label, "the header")
    faults = Faults(label)
    _check_metadata(header.pop("__metadata__", {}), faults)
    entries = [entry for name, info in header.items() if (entry := _entry(name, info, label, faults))]
    faults.check()
    _check_layout(entries, size - 8 - length, faults)
    faults.check()
    return entries


def _check_metadata(metadata: object, faults: Faults) -> None:
    if not isinstance(metadata, dict) or any(
        not isinstance(value, str) for value in cast("dict[str, object]", metadata).values()
    ):
        faults.add("metadata", "`__metadata__` is no mapping of strings to strings")


def _entry(name: str, info: object, label: str, faults: Faults) -> Entry | None:
    if not faults.has_name(name):
        return None
    fields = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    dtype, shape, offsets = (fields.get(key) for key in ("dtype", "shape", "data_offsets"))
    if dtype is None or shape is None or offsets is None:
        faults.add("fields", f"`{name}` lacks one of `dtype`, `shape`, `data_offsets`")
    elif not isinstance(dtype, str) or dtype not in DTYPES:
        faults.add("dtype", f"`{name}` is of a type that the format does not have: {_shown(dtype)}")
    elif not _is_sizes(shape):
        faults.add("shape", f"`{name}` has a shape that is none: {_shown(shape)}")
    elif len(shape) > MOST_DIMENSIONS:
        faults.add("rank", f"`{name}` has {len(shape)} dimensions, more than {MOST_DIMENSIONS}")
    elif not _is_pair(offsets):
        faults.add("offsets", f"`{name}` has offsets that are none: {_shown(offsets)}")
    else:
        bits = prod(shape) * BITS[DTYPES[dtype]]
        start, stop = offsets
        if bits != 8 * (stop - start):
            needs = f"{bits // 8:,}" if bits % 8 == 0 else f"{bits / 8:,}"
            shown = f"{dtype} of shape {_shown(shape)}"
            faults.add("size", f"`{name}` takes up {bytes_of(stop - start)}, and {shown} needs {needs}")
        return Entry(name, tuple(shape), DTYPES[dtype], stop - start, label, "", start)
    return None


def _is_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(map(is_size, cast("list[object]", value)))


def _is_pair(offsets: object) -> TypeGuard[list[int]]:
    return _is_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]


def _check_layout(entries: list[Entry], size: int, faults: Faults) -> None:
    """The bytes of all tensors are the `size` bytes after the header, each in one tensor."""
    end, before = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.bytes)):
        if entry.start < end:
            faults.add("overlap", f"`{entry.name}` begins at byte {entry.start:,}, within `{before}`")
        elif entry.start > end:
            faults.add("gap", f"bytes {end:,} to {entry.start:,} belong to no tensor")
        if entry.start + entry.bytes >= end:
            end, before = entry.start + entry.bytes, entry.name
    if end > size:
        faults.add("short", f"is cut short: its tensors take up {end:,} bytes, of which {size:,} are there")
    elif end < size:
        faults.add("rest", f"its last {bytes_of(size - end)} belong to no tensor")


def _shown(value: object) -> str:
    """A value from the header, for a message."""
    try:
        text = f"{value!a:.60}" if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
