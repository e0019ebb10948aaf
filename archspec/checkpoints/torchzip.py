"""The zip archive that `torch.save` writes: its directory and its pickle are read, and nothing else."""

from __future__ import annotations

import io
from struct import error as StructError
from typing import BinaryIO, cast
from zipfile import ZIP_STORED, BadZipFile, LargeZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

from archspec.checkpoints.pickled import LARGEST, PickleError

LARGEST_DIRECTORY = 100_000_000
_LOCAL_HEADER = 30
_PICKLE = "/data.pkl"


class Archive:
    """The archive in `file`, of `size` bytes. `pickle` is a stream of its pickle. Raises PickleError if it is none."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        try:
            with ZipFile(cast("BinaryIO", _Sparing(file, size))) as archive:
                infos = archive.infolist()
                self._members = {info.filename: info for info in infos}
                if len(self._members) < len(infos):
                    raise PickleError("is an archive with two members of one name")
                pickles = [info for info in infos if info.filename.endswith(_PICKLE)]
                if len(pickles) != 1:
                    raise PickleError("is a zip archive, but none that `torch.save` wrote: it has no single `data.pkl`")
                self._root = pickles[0].filename.removesuffix(_PICKLE)
                _check_places(infos, archive.start_dir)
                self.pickle = io.BytesIO(_unpack(archive, pickles[0]))
        except _ERRORS as error:
            raise PickleError(f"is a damaged or shortened zip archive: {error}") from None

    def check(self, storages: dict[str, tuple[int, int]]) -> None:
        """Raises PickleError where a storage (by key: how many elements of how many bytes) is not there in full."""
        for key, (length, width) in storages.items():
            member = self._members.get(f"{self._root}/data/{key}")
            if member is None:
                raise PickleError(f"lacks storage `{key}`, which its tensors are in")
            if member.compress_type != ZIP_STORED or member.file_size != member.compress_size:
                raise PickleError(f"has storage `{key}` compressed, which `torch.save` never does")
            if member.file_size != length * width:
                raise PickleError(f"has {member.file_size:,} bytes in storage `{key}`, not {length * width:,}")


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


def _check_places(infos: list[ZipInfo], end: int) -> None:
    """No two members have bytes in common, and none reaches into the directory at `end`."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    for info, after in zip(ordered, [info.header_offset for info in ordered[1:]] + [end], strict=True):
        stop = info.header_offset + _LOCAL_HEADER + len(info.orig_filename) + info.compress_size
        if stop > after:
            raise PickleError(f"is an archive whose member `{info.filename}` overlaps what follows it")


def _unpack(archive: ZipFile, info: ZipInfo) -> bytes:
    if info.file_size > LARGEST:
        raise PickleError(f"has a pickle of {info.file_size:,} bytes, where {LARGEST:,} are allowed")
    with archive.open(info) as member:
        return member.read(info.file_size)


class _Sparing:
    """A file of `size` bytes that refuses to read very many at once: `zipfile` believes the sizes it is told."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def read(self, count: int = -1) -> bytes:
        left = max(self._size - self._file.tell(), 0)
        count = left if count < 0 else min(count, left)
        if count > LARGEST_DIRECTORY:
            raise ValueError(f"a part of {count:,} bytes, where {LARGEST_DIRECTORY:,} are allowed")
        return self._file.read(count)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)
