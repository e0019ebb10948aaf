"""Reading the headers of GGUF files, the format of llama.cpp.

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
from archspec.formats.checkpoints.entries import Checkpoint, DefectCollector, Entry, damaged

MAGIC = b"GGUF"
VERSIONS = (2, 3)

MAX_HEADER_BYTES = 200_000_000
"""Maximum number of bytes before the tensor data; vocabularies need a few tens of millions."""

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
"""Types of tensors: name, elements per block, bytes per block. The blocks of a row are complete."""

_STRING, _ARRAY = 8, 9
_NUMBERS = {
    **{0: Struct("<B"), 1: Struct("<b"), 2: Struct("<H"), 3: Struct("<h"), 4: Struct("<I"), 5: Struct("<i")},
    **{6: Struct("<f"), 7: Struct("<?"), 10: Struct("<Q"), 11: Struct("<q"), 12: Struct("<d")},
}
"""Layouts of metadata values, by type; strings and arrays have none."""

_MIN_METADATA_ENTRY_BYTES = 8 + 4 + 1
_MIN_TENSOR_ENTRY_BYTES = 8 + 4 + 4 + 8
"""Minimum sizes of entries: those with an empty name."""


class Header(NamedTuple):
    """The tensors of a file, in order, and its metadata: numbers and short strings."""

    entries: list[Entry]
    metadata: dict[str, object]


class _TruncatedFileError(Exception):
    """Raised if the file ends inside the header."""


def read_header(file: BinaryIO, size: int, label: str) -> Header:
    """Return the header of a file of `size` bytes. Raises ArchError for an invalid file."""
    reader = _Reader(file, min(size, MAX_HEADER_BYTES), label)
    try:
        return _parse_header(reader, size, label)
    except _TruncatedFileError:
        if size > MAX_HEADER_BYTES:
            raise damaged(label, f"the header exceeds the limit of {MAX_HEADER_BYTES:,} bytes") from None
        raise damaged(label, f"file is truncated: the header does not end within its {size:,} bytes") from None


def _parse_header(reader: _Reader, size: int, label: str) -> Header:
    if reader.take(len(MAGIC)) != MAGIC:
        raise damaged(label, "not a GGUF file")
    version = reader.number(4)
    if version not in VERSIONS:
        if version and version % 65536 == 0:
            raise damaged(label, "unsupported byte order: expected a little-endian file")
        raise damaged(label, f"unsupported version {version:,} of GGUF: expected 2 or 3")
    tensors, values = reader.number(8), reader.number(8)
    for count, limit, noun in ((tensors, MAX_TENSORS, "tensors"), (values, MAX_VALUES, "values of metadata")):
        if count > limit:
            raise damaged(label, f"too many {noun}: {count:,}, the limit is {limit:,}")
    if values * _MIN_METADATA_ENTRY_BYTES + tensors * _MIN_TENSOR_ENTRY_BYTES > reader.remaining:
        message = f"file is truncated: too short for {tensors:,} tensors and {values:,} values of metadata"
        raise damaged(label, message)
    defects = DefectCollector(label)
    metadata = _parse_metadata(reader, values, defects)
    parsed = [_parse_tensor(reader, label, defects) for _ in range(tensors)]
    defects.check()
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise damaged(label, f"invalid general.alignment: expected a power of two, found {alignment!r:.60}")
    data_start = -(-reader.position // alignment) * alignment
    entries = [entry for entry in parsed if entry is not None]
    _check_layout(entries, alignment, max(size - data_start, 0), defects)
    defects.check()
    return Header([entry._replace(start=data_start + entry.start) for entry in entries], metadata)


def _parse_metadata(reader: _Reader, count: int, defects: DefectCollector) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for _ in range(count):
        key = reader.text(MAX_KEY_LENGTH, "key of the metadata")
        if key in metadata:
            defects.add("key", f"`{key:.60}` appears more than once in the metadata")
        metadata[key] = reader.value(key)
    return metadata


def _parse_tensor(reader: _Reader, label: str, defects: DefectCollector) -> Entry | None:
    name = reader.text(reader.size, "name of a tensor")
    rank = reader.number(4)
    if rank > MAX_DIMENSIONS:
        raise damaged(label, f"too many axes in the shape of `{name:.60}`: the limit is {MAX_DIMENSIONS}")
    shape = tuple([reader.number(8) for _ in range(rank)][::-1])
    row = shape[-1] if shape else 1
    type, start = reader.number(4), reader.number(8)
    if not defects.has_name(name):
        return None
    if type not in TYPES:
        defects.add("type", f"unknown type of `{name}`: {type}")
    elif prod(shape) > MAX_SIZE or max((*shape, start)) > MAX_SIZE:
        defects.add("shape", f"`{name}` is too large: {' x '.join(map(str, shape))}, from byte {start:,}")
    elif row % TYPES[type][1]:
        dtype, block, _ = TYPES[type]
        message = f"rows of `{name}` have {row:,} elements, not a multiple of the block size {block} of {dtype}"
        defects.add("row", message)
    else:
        dtype, block, bytes = TYPES[type]
        return Entry(name, shape, dtype, prod(shape) // block * bytes, label, "", start)
    return None


def _check_layout(entries: list[Entry], alignment: int, size: int, defects: DefectCollector) -> None:
    """Check that the tensors lie in the `size` bytes after the header, aligned, and do not overlap."""
    names: set[str] = set()
    end, previous = 0, ""
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.bytes)):
        if entry.name in names:
            defects.add("duplicate", f"`{entry.name}` appears more than once")
        names.add(entry.name)
        if entry.start % alignment:
            defects.add("alignment", f"`{entry.name}` starts at byte {entry.start:,}, not a multiple of {alignment:,}")
        if entry.start < end and entry.bytes:
            defects.add("overlap", f"`{entry.name}` starts at byte {entry.start:,}, inside `{previous}`")
        end, previous = max((end, previous), (entry.start + entry.bytes, entry.name))
    if end > size:
        defects.add("short", f"file is truncated: expected {end:,} bytes of tensors, found {size:,}")


class _Reader:
    """Reader of the first `size` bytes of a file. Raises _TruncatedFileError past their end."""

    def __init__(self, file: BinaryIO, size: int, label: str) -> None:
        self._file = file
        self._label = label
        self._strings = MAX_STRINGS
        self.size = size
        self.position = 0

    @property
    def remaining(self) -> int:
        """The number of unread bytes."""
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

    def text(self, max_length: int, noun: str) -> str:
        """Return a string. Raises ArchError for one that is longer than `max_length` bytes, or not UTF-8."""
        length = self.number(8)
        if length > self.remaining:
            raise _TruncatedFileError
        if length > max_length:
            raise damaged(self._label, f"{noun} of {length:,} bytes exceeds the limit of {max_length:,}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise damaged(self._label, f"{noun} is not UTF-8 text") from None

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
        if 8 * count > self.remaining:
            raise _TruncatedFileError
        for _ in range(count):
            self._skip(int.from_bytes(self.take(8), "little"))

    def _skip(self, count: int) -> None:
        self._advance(count)
        self._file.seek(self.position)

    def _advance(self, count: int) -> None:
        if count > self.remaining:
            raise _TruncatedFileError
        self.position += count


# Models in several files, as divided by `llama-gguf-split` ------------------------------------------------------------

MAX_PARTS = 10_000

_PART = re.compile(r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf")


def is_one_model(names: Sequence[str]) -> bool:
    """Whether the names of files mark them as the parts of one model."""
    parts = [_PART.fullmatch(name) for name in names]
    return all(parts) and len({(part["stem"], part["count"]) for part in parts if part}) == 1


def read_gguf(path: str, read_file: Callable[[str], Header] | None = None) -> Checkpoint:
    """Read the tensors of a file, and of the other parts of the model in its directory. Raises ArchError.

    `read_file` returns the header of a file (default: of a local file).
    """
    header = (read_file or _read_local_header)(path)
    count = _metadata_number(header.metadata, "split.count", path) or 1
    if count == 1:
        return Checkpoint(
            path, tuple(header.entries), notes=tuple(_describe_model(header.entries, header.metadata)), format="gguf"
        )
    if count > MAX_PARTS:
        raise damaged(path, f"too many parts: {count:,}, the limit is {MAX_PARTS:,}")
    part = _PART.fullmatch(path)
    if part is None or int(part["count"]) != count:
        message = f"one of {count:,} parts, whose name does not end in `-of-{count:05}.gguf`"
        raise damaged(path, message, help="name the parts as `llama-gguf-split` does")
    paths = [f"{part['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [path for path in paths if read_file is None and not os.path.exists(path)]
    if missing:
        suffix = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        raise make_error(
            "missing-file", f"file not found: {missing[0]}{suffix}, one of the {count:,} parts of the model"
        )
    headers = [(read_file or _read_local_header)(path) for path in paths]
    defects = DefectCollector(path)
    entries: dict[str, Entry] = {}
    for number, part_header in enumerate(headers):
        metadata = part_header.metadata
        numbers = _metadata_number(metadata, "split.no", path), _metadata_number(metadata, "split.count", path)
        if numbers != (number, count):
            defects.add("part", f"{paths[number]} is not part {number + 1:,} of {count:,}")
        for entry in part_header.entries:
            if entries.setdefault(entry.name, entry) is not entry:
                defects.add("duplicate", f"`{entry.name}` is in two parts, {entries[entry.name].file} and {entry.file}")
    expected = _metadata_number(header.metadata, "split.tensors.count", path)
    if expected is not None and expected != len(entries):
        defects.add("count", f"expected {expected:,} tensors in all parts, found {len(entries):,}")
    defects.check()
    notes = _describe_model(entries.values(), headers[0].metadata)
    return Checkpoint(path, tuple(entries.values()), count, notes=tuple(notes), format="gguf")


def _read_local_header(path: str) -> Header:
    with open_regular_file(path, path) as file:
        return read_header(file, os.fstat(file.fileno()).st_size, path)


def _metadata_number(metadata: Mapping[str, object], key: str, path: str) -> int | None:
    value = metadata.get(key)
    if value is not None and (type(value) is not int or value < 0):
        raise damaged(path, f"invalid `{key}`: expected a number")
    return value


def _describe_model(entries: Iterable[Entry], metadata: Mapping[str, object]) -> list[str]:
    """Return notes on the architecture, and on an output layer tied to the embeddings."""
    names = {entry.name for entry in entries}
    architecture = metadata.get("general.architecture")
    notes: list[str] = []
    if isinstance(architecture, str) and architecture.isprintable():
        notes.append(f"GGUF, architecture `{architecture:.60}`")
    is_embedder = f"{architecture}.pooling_type" in metadata
    is_causal = metadata.get(f"{architecture}.attention.causal", True)
    if (
        {"token_embd.weight", "output_norm.weight"} <= names
        and "output.weight" not in names
        and is_causal
        and not is_embedder
    ):
        notes.append("no `output.weight`: llama.cpp ties the output layer to `token_embd.weight`")
    return notes
