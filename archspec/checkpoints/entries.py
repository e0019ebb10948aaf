"""What a checkpoint holds, as plain data: its tensors, without their elements."""

from __future__ import annotations

from math import prod
from typing import NamedTuple, TypeGuard


class Entry(NamedTuple):
    """A stored tensor. `bytes` are those its elements take up, repeated ones once; `file` is the file it is in.

    Its elements lie in `storage` of that file ("" where a file is one storage), from byte `start` on; `strides` count
    elements, and are None where these lie in row-major order without gaps.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    file: str
    storage: str
    start: int
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """Their number; 1 for a tensor without dimensions."""
        return prod(self.shape)

    @property
    def stop(self) -> int:
        """The byte after its last element; no less than `start`."""
        if self.strides is None or not self.bytes:
            return self.start + self.bytes
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.start + (last + 1) * BITS[self.dtype] // 8

    @property
    def place(self) -> tuple[object, ...]:
        """What two names of one stored tensor have in common; of a tensor without elements its name."""
        if not self.bytes:
            return (self.name,)
        return self.file, self.storage, self.start, self.shape, self.strides, self.dtype


class Checkpoint(NamedTuple):
    """One file, or several that belong together. `label` is what a person knows it by; names in `entries` are distinct.

    `total_size` is the number of bytes that its index claims, None where it claims nothing. `notes` are sentences: what
    was found beside the tensors.
    """

    label: str
    entries: tuple[Entry, ...]
    files: int = 1
    total_size: int | None = None
    notes: tuple[str, ...] = ()


BITS = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "uint16": 16,
    "int16": 16,
    "uint32": 32,
    "int32": 32,
    "uint64": 64,
    "int64": 64,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex32": 32,
    "complex64": 64,
    "complex128": 128,
}
"""Bits an element takes up, by the name of its type (those of PyTorch, where it has one)."""

LONGEST_NAME = 10_000
MOST_DIMENSIONS = 64
LARGEST = 2**63 - 1


def is_size(value: object) -> TypeGuard[int]:
    """Whether a value is a number that a dimension, an offset or a stride can be: 0 to 2^63 - 1, and no bool."""
    return type(value) is int and 0 <= value <= LARGEST
