"""Reading the header of a GGUF file, the format of llama.cpp.

A file consists of the header (magic bytes, version, the numbers of tensors and of metadata entries), the metadata, the
name, dimensions, type and offset of each tensor, and the data of the tensors:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from struct import Struct
from typing import BinaryIO, NamedTuple

from archspec.core.algebra import MAX_SIZE
from archspec.core.diagnostics import make_error, open_regular_file
from archspec.formats.checkpoints import gguf
from archspec.formats.checkpoints.entries import Checkpoint, DefectCollector, Entry, damaged

# Reading a model in GGUF: one file, or all the files into which `llama-gguf-split` divided it.

MAX_PARTS = 10_000

_PART = re.compile(r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf")


def is_one_model(names: Sequence[str]) -> bool:
    """Whether files are the parts of one model, by their names."""
    parts = [_PART.fullmatch(name) for name in names]
    return all(parts) and len({(part["stem"], part["count"]) for part in parts if part}) == 1


def read_gguf(path: str, read: Callable[[str], gguf.Header] | None = None) -> Checkpoint:
    """Return the tensors of a file, and of the other parts of the model beside it. Raises ArchError.

    `read` returns the header of a file, which may be somewhere else; by default, it opens local files.
    """
    header = (read or _header)(path)
    count = _number(header.metadata, "split.count", path) or 1
    if count == 1:
        return Checkpoint(
            path, tuple(header.entries), notes=tuple(_notes(header.entries, header.metadata)), format="gguf"
        )
    if count > MAX_PARTS:
        raise damaged(path, f"too many parts: {count:,}, the limit is {MAX_PARTS:,}")
    part = _PART.fullmatch(path)
    if part is None or int(part["count"]) != count:
        message = f"one of {count:,} parts, whose name does not end in `-of-{count:05}.gguf`"
        raise damaged(path, message, help="give the parts the names that `llama-gguf-split` gives them")
    paths = [f"{part['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [path for path in paths if read is None and not os.path.exists(path)]
    if missing:
        more = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        raise make_error("missing-file", f"file not found: {missing[0]}{more}, one of the {count:,} parts of the model")
    headers = [(read or _header)(each) for each in paths]
    faults = DefectCollector(path)
    entries: dict[str, Entry] = {}
    for number, each in enumerate(headers):
        found = _number(each.metadata, "split.no", path), _number(each.metadata, "split.count", path)
        if found != (number, count):
            faults.add("part", f"{paths[number]} is not part {number + 1:,} of {count:,}")
        for entry in each.entries:
            if entries.setdefault(entry.name, entry) is not entry:
                faults.add("duplicate", f"`{entry.name}` is in two parts, {entries[entry.name].file} and {entry.file}")
    expected = _number(header.metadata, "split.tensors.count", path)
    if expected is not None and expected != len(entries):
        faults.add("count", f"expected {expected:,} tensors in all parts, found {len(entries):,}")
    faults.check()
    notes = _notes(entries.values(), headers[0].metadata)
    return Checkpoint(path, tuple(entries.values()), count, notes=tuple(notes), format="gguf")


def _header(path: str) -> gguf.Header:
    with open_regular_file(path, path) as file:
        return gguf.read(file, os.fstat(file.fileno()).st_size, path)


def _number(metadata: Mapping[str, object], key: str, path: str) -> int | None:
    value = metadata.get(key)
    if value is not None and (type(value) is not int or value < 0):
        raise damaged(path, f"invalid `{key}`: expected a number")
    return value


def _notes(entries: Iterable[Entry], metadata: Mapping[str, object]) -> list[str]:
    """Describe the architecture, and an output layer that shares the embeddings."""
    names = {entry.name for entry in entries}
    architecture = metadata.get("general.architecture")
    notes: list[str] = []
    if isinstance(architecture, str) and architecture.isprintable():
        notes.append(f"GGUF, architecture `{architecture:.60}`")
    embeds = f"{architecture}.pooling_type" in metadata
    causal = metadata.get(f"{architecture}.attention.causal", True)
    if {"token_embd.weight", "output_norm.weight"} <= names and "output.weight" not in names and causal and not embeds:
        notes.append("no `output.weight`: llama.cpp ties the output layer to `token_embd.weight`")
    return notes


MAGIC = b"GGUF"
VERSIONS = (2, 3)

MAX_HEADER_BYTES = 200_000_000
"""The limit on the bytes before the data of the tensors; vocabularies take a few tens of millions."""

MAX_TENSORS = 200_000
MAX_VALUES = 100_000
MAX_STRINGS = 5_000_000
MAX_DIMENSIONS = 4
MAX_KEY_LENGTH = 65_535
MAX_VALUE_LENGTH = 1_000

TYPES = {
    0: ("float32", 1, 4),
    1: ("float16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("int8", 1, 1),
    25: ("int16", 1, 2),
    26: ("int32", 1, 4),
    27: ("int64", 1, 8),
    28: ("float64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("bfloat16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""Types of tensors: the name, and the elements and bytes of a block. Each row consists of whole blocks."""

_STRING, _ARRAY = 8, 9
_NUMBERS = {
    **{0: Struct("<B"), 1: Struct("<b"), 2: Struct("<H"), 3: Struct("<h"), 4: Struct("<I"), 5: Struct("<i")},
    **{6: Struct("<f"), 7: Struct("<?"), 10: Struct("<Q"), 11: Struct("<q"), 12: Struct("<d")},
}
"""Types of values of metadata, apart from strings and arrays."""

_MIN_VALUE_BYTES = 8 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 4 + 4 + 8
"""The bytes of an entry with an empty name."""


class Header(NamedTuple):
    """The tensors of a file, in order, and the values of its metadata that are numbers or short strings."""

    entries: list[Entry]
    metadata: dict[str, object]


class _TruncatedFileError(Exception):
    """The file ends inside the header."""


def read(file: BinaryIO, size: int, label: str) -> Header:
    """Return the header of a file of `size` bytes. Raises ArchError for an invalid file."""
    reader = _Reader(file, min(size, MAX_HEADER_BYTES), label)
    try:
        return _read(reader, size, label)
    except _TruncatedFileError:
        if size > MAX_HEADER_BYTES:
            raise damaged(label, f"the header exceeds the limit of {MAX_HEADER_BYTES:,} bytes") from None
        raise damaged(label, f"file is truncated: the header does not end within its {size:,} bytes") from None


def _read(reader: _Reader, size: int, label: str) -> Header:
    if reader.take(len(MAGIC)) != MAGIC:
        raise damaged(label, "not a GGUF file")
    version = reader.number(4)
    if version not in VERSIONS:
        if version and version % 65536 == 0:
            raise damaged(label, "unsupported byte order: expected a little-endian file")
        raise damaged(label, f"unsupported version {version:,} of GGUF: expected 2 or 3")
    tensors, values = reader.number(8), reader.number(8)
    for count, limit, what in ((tensors, MAX_TENSORS, "tensors"), (values, MAX_VALUES, "values of metadata")):
        if count > limit:
            raise damaged(label, f"too many {what}: {count:,}, the limit is {limit:,}")
    if values * _MIN_VALUE_BYTES + tensors * _MIN_TENSOR_BYTES > reader.left:
        message = f"file is truncated: too short for {tensors:,} tensors and {values:,} values of metadata"
        raise damaged(label, message)
    faults = DefectCollector(label)
    metadata = _metadata(reader, values, faults)
    found = [_tensor(reader, label, faults) for _ in range(tensors)]
    faults.check()
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise damaged(label, f"invalid general.alignment: expected a power of two, found {alignment!r:.60}")
    begin = -(-reader.position // alignment) * alignment
    entries = [entry for entry in found if entry is not None]
    _check_layout(entries, alignment, max(size - begin, 0), faults)
    faults.check()
    return Header([entry._replace(start=begin + entry.start) for entry in entries], metadata)


def _metadata(reader: _Reader, count: int, faults: DefectCollector) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(count):
        key = reader.text(MAX_KEY_LENGTH, "key of the metadata")
        if key in found:
            faults.add("key", f"`{key:.60}` appears more than once in the metadata")
        found[key] = reader.value(key)
    return found


def _tensor(reader: _Reader, label: str, faults: DefectCollector) -> Entry | None:
    name = reader.text(reader.size, "name of a tensor")
    rank = reader.number(4)
    if rank > MAX_DIMENSIONS:
        raise damaged(label, f"too many axes in the shape of `{name:.60}`: the limit is {MAX_DIMENSIONS}")
    shape = tuple([reader.number(8) for _ in range(rank)][::-1])
    row = shape[-1] if shape else 1
    type, start = reader.number(4), reader.number(8)
    if not faults.has_name(name):
        return None
    if type not in TYPES:
        faults.add("type", f"unknown type of `{name}`: {type}")
    elif prod(shape) > MAX_SIZE or max((*shape, start)) > MAX_SIZE:
        faults.add("shape", f"`{name}` is too large: {' x '.join(map(str, shape))}, from byte {start:,}")
    elif row % TYPES[type][1]:
        dtype, block, _ = TYPES[type]
        faults.add("row", f"rows of `{name}` have {row:,} elements, which are no whole blocks of {dtype} ({block})")
    else:
        dtype, block, bytes = TYPES[type]
        return Entry(name, shape, dtype, prod(shape) // block * bytes, label, "", start)
    return None


def _check_layout(entries: list[Entry], alignment: int, size: int, faults: DefectCollector) -> None:
    """Check that the tensors lie in the `size` bytes after the header, aligned, and do not overlap."""
    names: set[str] = set()
    end, before = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.bytes)):
        if entry.name in names:
            faults.add("duplicate", f"`{entry.name}` appears more than once")
        names.add(entry.name)
        if entry.start % alignment:
            faults.add("alignment", f"`{entry.name}` starts at byte {entry.start:,}, no multiple of {alignment:,}")
        if entry.start < end and entry.bytes:
            faults.add("overlap", f"`{entry.name}` starts at byte {entry.start:,}, inside `{before}`")
        end, before = max((end, before), (entry.start + entry.bytes, entry.name))
    if end > size:
        faults.add("short", f"file is truncated: expected {end:,} bytes of tensors, found {size:,}")


class _Reader:
    """A reader of the first `size` bytes of a file. Raises _Truncated past their end."""

    def __init__(self, file: BinaryIO, size: int, label: str) -> None:
        self._file = file
        self._label = label
        self._strings = MAX_STRINGS
        self.size = size
        self.position = 0

    @property
    def left(self) -> int:
        """The number of bytes left."""
        return self.size - self.position

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        self._advance(count)
        data = self._file.read(count)
        if len(data) < count:
            raise _TruncatedFileError
        return data

    def number(self, size: int) -> int:
        """Return an unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self, longest: int, what: str) -> str:
        """Return a string. Raises ArchError for one that is longer than `longest` bytes, or not UTF-8."""
        length = self.number(8)
        if length > self.left:
            raise _TruncatedFileError
        if length > longest:
            raise damaged(self._label, f"{what} of {length:,} bytes exceeds the limit of {longest:,}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise damaged(self._label, f"{what} is not UTF-8 text") from None

    def value(self, key: str) -> object:
        """Return the value of a key of the metadata; None for arrays and long strings, which are skipped."""
        type = self.number(4)
        if type in _NUMBERS:
            return _NUMBERS[type].unpack(self._take_value(type, key))[0]
        if type == _STRING:
            return self._short_text()
        if type != _ARRAY:
            raise damaged(self._label, f"unknown type {type:,} of `{key:.60}` in the metadata")
        type, count = self.number(4), self.number(8)
        if type in _NUMBERS:
            self._skip(count * _NUMBERS[type].size)
        elif type == _STRING:
            self._skip_strings(count)
        else:
            raise damaged(self._label, f"unsupported type {type:,} of the elements of `{key:.60}` in the metadata")
        return None

    def _take_value(self, type: int, key: str) -> bytes:
        data = self.take(_NUMBERS[type].size)
        if type == 7 and data not in (b"\0", b"\1"):
            raise damaged(self._label, f"invalid boolean `{key:.60}` in the metadata")
        return data

    def _short_text(self) -> str | None:
        length = self.number(8)
        if length > MAX_VALUE_LENGTH:
            self._skip(length)
            return None
        return self.take(length).decode("utf-8", errors="replace")

    def _skip_strings(self, count: int) -> None:
        self._strings -= count
        if self._strings < 0:
            raise damaged(self._label, f"too many strings in the metadata: the limit is {MAX_STRINGS:,}")
        if 8 * count > self.left:
            raise _TruncatedFileError
        for _ in range(count):
            self._skip(int.from_bytes(self.take(8), "little"))

    def _skip(self, count: int) -> None:
        self._advance(count)
        self._file.seek(self.position)

    def _advance(self, count: int) -> None:
        if count > self.left:
            raise _TruncatedFileError
        self.position += count
