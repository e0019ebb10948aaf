"""Checkpoints on the hub: the headers of their safetensors and GGUF files, by range requests."""

from __future__ import annotations

from io import SEEK_SET, BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING

from archspec.core.diagnostics import make_error
from archspec.formats.checkpoints import gguf, safetensors
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.checkpoints.gguf import is_one_model, read_gguf
from archspec.formats.checkpoints.shards import MAX_INDEX_BYTES, read_index, read_shards
from archspec.formats.hub import remote
from archspec.formats.hub.find import not_found

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def read_remote(id: str) -> Checkpoint:
    """Read the tensors of the checkpoint of a model from the hub. Raises ArchError, which states what was tried."""
    try:
        try:
            return Checkpoint(id, tuple(_header(id, FILE)))
        except remote.HubFileNotFoundError:
            pass
        try:
            path = remote.download(id, INDEX, MAX_INDEX_BYTES)
        except remote.HubFileNotFoundError:
            return _only_gguf(id)
        with open(path, "rb") as file:
            index = read_index(f"{id}/{INDEX}", file.read(MAX_INDEX_BYTES))
        return read_shards(f"{id}/{INDEX}", index, lambda shard: (_header(id, shard), []))._replace(label=id)
    except remote.HubUnavailableError as unavailable:
        raise not_found(id, f"{unavailable}", "checkpoint") from None


def read_remote_gguf(id: str, file: str) -> Checkpoint:
    """Read the tensors of a GGUF file of a model on the hub. Raises ArchError, which states what was tried."""
    try:
        return _gguf(id, file)
    except remote.HubUnavailableError as unavailable:
        raise not_found(f"{id}/{file}", f"{unavailable}", "checkpoint") from None


def _only_gguf(id: str) -> Checkpoint:
    """Read the only GGUF file of a model, or the parts of the only one. Raises Unavailable, ArchError for several."""
    found = [file for file in remote.files(id) if file.endswith(".gguf")]
    if len(found) > 1 and not is_one_model(found):
        shown = ", ".join(f"{id}/{file}" for file in found[:4]) + (", ..." if len(found) > 4 else "")
        raise make_error("usage", f"{len(found)} GGUF files in {id}", help=f"name one: {shown}")
    if not found:
        raise remote.HubUnavailableError(f"the model has neither {FILE} nor {INDEX} nor a GGUF file")
    return _gguf(id, found[0])


def _gguf(id: str, file: str) -> Checkpoint:
    return read_gguf(f"{id}/{file}", lambda path: _gguf_header(id, path.removeprefix(f"{id}/")))


def _gguf_header(id: str, file: str) -> gguf.Header:
    """Return the header of a GGUF file on the hub, whose length is known only after it has been read."""
    start = _Start(id, file)
    return gguf.read(BufferedReader(start), start.size, f"{id}/{file}")


class _Start(RawIOBase):
    """A file on the hub, of which the first bytes are requested as far as they are read."""

    def __init__(self, id: str, file: str) -> None:
        self._id, self._file, self._position = id, file, 0
        self._data, self.size = remote.start_of(id, file)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        assert whence == SEEK_SET
        self._position = offset
        return offset

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        end = min(self._position + len(view), self.size)
        if end > len(self._data):
            self._data = remote.start_of(self._id, self._file, max(end, 4 * len(self._data))).data
        part = self._data[self._position : end]
        view[: len(part)] = part
        self._position += len(part)
        return len(part)


def _header(id: str, file: str) -> list[Entry]:
    """Return the tensors of a safetensors file on the hub."""
    start = remote.start_of(id, file)
    needed = 8 + int.from_bytes(start.data[:8], "little")
    if len(start.data) < needed <= min(start.size, 8 + safetensors.MAX_HEADER_BYTES):
        start = remote.start_of(id, file, needed)
    return safetensors.read(BytesIO(start.data), start.size, f"{id}/{file}")
