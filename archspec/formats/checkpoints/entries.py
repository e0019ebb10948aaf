"""Checkpoint contents as plain data: tensor metadata without the elements."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import NamedTuple, TypeGuard

from archspec.core.algebra import MAX_SIZE
from archspec.core.diagnostics import ArchError, Diagnostic, make_error


class Entry(NamedTuple):
    """A stored tensor.

    `bytes` is the size of its distinct elements. They start at byte `start` of `storage` in `file`; `storage` is "" if
    the file is a single storage. `strides` count elements, and are None for a contiguous row-major layout. A `dtype` in
    capitals is a quantized type: `shape` is logical, and `bytes` includes scales. `offset` is that of `storage` in
    `file`, None if it is unknown.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    file: str
    storage: str
    start: int
    strides: tuple[int, ...] | None = None
    offset: int | None = None

    @property
    def elements(self) -> int:
        """The number of elements; 1 for a scalar."""
        return prod(self.shape)

    @property
    def stop(self) -> int:
        """The offset of the byte after the last element."""
        if self.strides is None or not self.bytes:
            return self.start + self.bytes
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.start + (last + 1) * BITS[self.dtype] // 8

    @property
    def storage_key(self) -> tuple[object, ...]:
        """A key that is equal for two names of one stored tensor, and unique for a tensor without elements."""
        if not self.bytes:
            return (self.name,)
        return self.file, self.storage, self.start, self.shape, self.strides, self.dtype


class Checkpoint(NamedTuple):
    """The tensors of one file, or of all shards. Names in `entries` are distinct.

    `label` names the checkpoint in messages. `total_size` is the size in bytes stated in the index, if any. `notes`
    describe contents other than tensors. `format` is "gguf" for a file with the names and layouts of llama.cpp.
    If quantized weights are stored in several tensors, `entries` has one logical tensor for each of them, and
    `packed_entries` the tensors of the files. `flat_names` are the names of logical tensors of unknown shape.
    """

    label: str
    entries: tuple[Entry, ...]
    files: int = 1
    total_size: int | None = None
    notes: tuple[str, ...] = ()
    format: str = ""
    packed_entries: tuple[Entry, ...] = ()
    flat_names: frozenset[str] = frozenset()

    @property
    def stored(self) -> tuple[Entry, ...]:
        """The tensors of the files."""
        return self.packed_entries or self.entries


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
"""Dtypes, named as in PyTorch where it has them, by their names in safetensors files."""

BITS = {
    dtype: 8 if dtype == "bool" else int(re.findall("[0-9]+", dtype)[0])
    for dtype in (*DTYPES.values(), "complex32", "complex128")
}
"""Bits per element by dtype."""

MAX_NAME_LENGTH = 10_000
MAX_DIMENSIONS = 64


def is_size(value: object) -> TypeGuard[int]:
    """Whether a value is a valid size, offset or stride: an integer from 0 to 2^63 - 1, not a bool."""
    return type(value) is int and 0 <= value <= MAX_SIZE


def bits_per_element(bytes: int, elements: int) -> str:
    """Format the average size of an element, to follow a size in bytes; "" without elements."""
    return f", {8 * bytes / elements:.2f} bits per element" if elements else ""


# Defects --------------------------------------------------------------------------------------------------------------


class DefectCollector:
    """Collector of the defects of one file: the first of each kind, and the number of others."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._first: dict[str, str] = {}
        self._counts = Counter[str]()

    def add(self, kind: str, message: str) -> None:
        """Record a defect. Messages show the first of each `kind`, and count the others."""
        self._first.setdefault(kind, message)
        self._counts[kind] += 1

    def has_name(self, name: str) -> bool:
        """Whether a tensor name is valid; records a defect if it is not."""
        if len(name) > MAX_NAME_LENGTH:
            self.add("long name", f"tensor name of {len(name):,} characters exceeds the limit of {MAX_NAME_LENGTH:,}")
            return False
        if name.isascii():
            return True
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:  # an unpaired surrogate
            self.add("name", f"tensor name {name!a} is not valid Unicode")
            return False
        return True

    def check(self) -> None:
        """Raise ArchError if defects were recorded."""
        if self._first:
            raise ArchError([self._diagnostic(kind, message) for kind, message in self._first.items()])

    def _diagnostic(self, kind: str, message: str) -> Diagnostic:
        others = self._counts[kind] - 1
        suffix = f" (and {others:,} more like it)" if others else ""
        return Diagnostic("bad-checkpoint", f"{self.label}: {message}{suffix}")


def damaged(label: str, message: str, help: str | None = None) -> ArchError:
    """Return the error to raise for a defect that prevents reading the rest of a file."""
    return make_error("bad-checkpoint", f"{label}: {message}", help=help)
