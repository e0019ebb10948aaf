"""Reading elements of stored tensors, in the few cases in which headers do not suffice."""

from __future__ import annotations

import os

from archspec.core.diagnostics import open_regular_file
from archspec.formats.checkpoints.entries import Entry

CHUNK_BYTES = 1 << 20


def read_elements(entry: Entry, start: int = 0, size: int | None = None) -> bytes | None:
    """Return `size` bytes of a tensor from byte `start`, by default all bytes; None if they are not in a local file.

    Raises ArchError if the file cannot be read.
    """
    if entry.offset is None or entry.strides is not None or not os.path.isfile(entry.file):
        return None
    size = entry.bytes - start if size is None else size
    with open_regular_file(entry.file, entry.file) as file:
        file.seek(entry.offset + entry.start + start)
        data = file.read(size)
    return data if len(data) == size else None


def has_only_zeros(entry: Entry) -> bool:
    """Whether all bytes of a tensor are zero; False if they cannot be read."""
    for start in range(0, entry.bytes, CHUNK_BYTES):
        data = read_elements(entry, start, min(CHUNK_BYTES, entry.bytes - start))
        if data is None or any(data):
            return False
    return True
