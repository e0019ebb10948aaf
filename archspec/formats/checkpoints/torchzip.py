"""Reading the directory and the pickle of a zip archive written by `torch.save`."""

from __future__ import annotations

import io
from struct import Struct
from struct import error as StructError
from typing import BinaryIO, cast
from zipfile import ZIP_STORED, BadZipFile, LargeZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

from archspec.formats.checkpoints.pickled import MAX_PICKLE_BYTES, PickleError

MAX_DIRECTORY_BYTES = 100_000_000
_LOCAL = Struct("<4s2xHH16xHH")
"""A local header: signature, flags, compression, and the lengths of the name and of the extra field."""

_HAS_DESCRIPTOR, _UTF8 = 0x8, 0x800
_FLAGS = _HAS_DESCRIPTOR | _UTF8 | 0x6  # bits 1 and 2: the compression level
_MAX_DESCRIPTOR_LENGTH = 24
_DIRECTORY = 0x10
_PICKLE = "/data.pkl"
_SMALL = ("version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id")
"""Members that `torch.load` reads in addition to the pickle and the storages."""

_MAX_SMALL_MEMBER_BYTES = 1000
_ENTRY = Struct("<4s24xHHH12x")
"""An entry of the directory: signature, and the lengths of the name, of the extra field and of the comment."""

_END, _LOCATOR, _END64 = Struct("<4sHHHHIIH"), Struct("<4sIQI"), Struct("<4sQ4xIIQQQQ")


class Archive:
    """The archive in `file`, of `size` bytes; `pickle` is a stream of its pickle. Raises PickleError if invalid."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        try:
            with ZipFile(cast("BinaryIO", _LimitedFile(file, size))) as archive:
                infos = archive.infolist()
                self._members = {info.filename: info for info in infos}
                if len(self._members) < len(infos):
                    raise PickleError("duplicate member name in the zip archive")
                pickles = [info for info in infos if info.filename.endswith(_PICKLE)]
                if len(pickles) != 1:
                    mismatch = f"expected one `data.pkl`, found {len(pickles)}"
                    raise PickleError(f"this zip archive was not written by `torch.save`: {mismatch}")
                self._root = pickles[0].filename.removesuffix(_PICKLE)
                self._offsets = _check_members(file, infos, archive.start_dir)
                _check_end(file, len(infos), archive.start_dir, size)
                for name in _SMALL:
                    if f"{self._root}/{name}" in self._members:
                        archive.open(f"{self._root}/{name}").read(_MAX_SMALL_MEMBER_BYTES)  # checks its checksum
                size = pickles[0].file_size
                if size > MAX_PICKLE_BYTES:
                    raise PickleError(f"pickle of {size:,} bytes exceeds the limit of {MAX_PICKLE_BYTES:,}")
                with archive.open(pickles[0]) as member:
                    self.pickle = io.BytesIO(member.read(size))
        except _ERRORS as error:
            raise PickleError(f"invalid zip archive: {error}") from None

    def locate(self, storages: dict[str, tuple[int, int]]) -> dict[str, int]:
        """Return the offsets in the file of storages, given as (number of elements, bytes per element).

        Raises PickleError unless every storage is complete.
        """
        for key, (length, width) in storages.items():
            member = self._members.get(f"{self._root}/data/{key}")
            if member is None:
                raise PickleError(f"missing storage `{key}`")
            if member.compress_type != ZIP_STORED or member.file_size != member.compress_size:
                raise PickleError(f"expected uncompressed data in storage `{key}`")
            if member.file_size != length * width:
                raise PickleError(f"storage `{key}`: expected {length * width:,} bytes, found {member.file_size:,}")
        return {key: self._offsets[f"{self._root}/data/{key}"] for key in storages}


_ERRORS = (
    BadZipFile,
    LargeZipFile,
    ZlibError,
    StructError,
    OSError,
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    RuntimeError,  # an encrypted member; NotImplementedError, an unknown compression
)


def _check_members(file: BinaryIO, infos: list[ZipInfo], end: int) -> dict[str, int]:
    """Return the offsets of the data of members.

    Raises PickleError unless the members follow each other up to `end`, and their headers match the directory:
    PyTorch locates the data of a member by the header before it, so a damaged header changes the loaded data.
    """
    offsets: dict[str, int] = {}
    sorted_infos = sorted(infos, key=lambda info: info.header_offset)
    for info, next_start in zip(sorted_infos, [info.header_offset for info in sorted_infos[1:]] + [end], strict=True):
        start = info.header_offset
        file.seek(start)
        head = file.read(_LOCAL.size)
        signature, flags, method, name_length, extra_length = _LOCAL.unpack(head.ljust(_LOCAL.size, b"\0"))
        name = file.read(name_length)
        stop = start + _LOCAL.size + name_length + extra_length + info.compress_size
        if stop > next_start:
            raise PickleError(f"archive member `{info.filename}` overlaps the data that follows it")
        file.seek(stop)
        descriptor = file.read(min(next_start - stop, _MAX_DESCRIPTOR_LENGTH + 1))
        if (
            signature != b"PK\x03\x04"
            or (flags, method) != (info.flag_bits, info.compress_type)
            or flags & ~_FLAGS
            or info.volume
            or info.external_attr & _DIRECTORY
            or name != info.orig_filename.encode("utf-8" if flags & _UTF8 else "cp437")
            or (info.compress_type == ZIP_STORED and info.file_size != info.compress_size)
            or not _is_descriptor(descriptor, info)
        ):
            raise PickleError(f"the header of archive member `{info.filename}` is damaged")
        offsets[info.filename] = stop - info.compress_size
    return offsets


def _check_end(file: BinaryIO, count: int, start: int, stop: int) -> None:
    """Raise PickleError unless the directory at `start` has `count` entries, and the records after it describe it.

    PyTorch rejects an archive with other records.
    """
    file.seek(start)
    directory = file.read(min(stop - start, MAX_DIRECTORY_BYTES))
    size = 0
    for _ in range(count):
        signature, *lengths = _ENTRY.unpack_from(directory, size)
        size += _ENTRY.size + sum(lengths)
        if signature != b"PK\x01\x02":
            raise PickleError("the directory of the archive is damaged")
    directory = directory[size:]
    expected = (0, 0, count, count, size, start)
    if directory.startswith(b"PK\x06\x06"):
        signature, length, *fields = _END64.unpack_from(directory)
        locator = _LOCATOR.unpack_from(directory, _END64.size)
        if length != _END64.size - 12 or tuple(fields) != expected or locator != (b"PK\x06\x07", 0, start + size, 1):
            raise PickleError("the end of the archive is damaged")
        directory = directory[_END64.size + _LOCATOR.size :]
    signature, *fields, comment = _END.unpack_from(directory)
    limits = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    is_match = all(value in (a, b) for value, a, b in zip(fields, expected, limits, strict=True))
    if signature != b"PK\x05\x06" or not is_match or len(directory) != _END.size + comment:
        raise PickleError("the end of the archive is damaged")


def _is_descriptor(data: bytes, info: ZipInfo) -> bool:
    """Whether the bytes after a member are the data descriptor that its flags announce, if any."""
    if not info.flag_bits & _HAS_DESCRIPTOR:
        return not data
    layout = Struct("<4sIII" if len(data) == 16 else "<4sIQQ")
    return data == layout.pack(b"PK\x07\x08", info.CRC, info.compress_size, info.file_size)


class _LimitedFile:
    """A file of `size` bytes that limits single reads, because `zipfile` trusts the sizes in the archive."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def read(self, count: int = -1) -> bytes:
        remaining = max(self._size - self._file.tell(), 0)
        count = remaining if count < 0 else min(count, remaining)
        if count > MAX_DIRECTORY_BYTES:
            raise ValueError(f"directory of {count:,} bytes exceeds the limit of {MAX_DIRECTORY_BYTES:,}")
        return self._file.read(count)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)
