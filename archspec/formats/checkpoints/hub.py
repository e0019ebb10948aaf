"""Reading checkpoints on the hub: the headers of safetensors and GGUF files, with range requests."""

from __future__ import annotations

from io import SEEK_SET, BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING

from archspec.core.diagnostics import make_error
from archspec.formats import hub
from archspec.formats.checkpoints import safetensors
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.checkpoints.gguf import Header, is_one_model, read_gguf, read_header
from archspec.formats.checkpoints.shards import MAX_INDEX_BYTES, read_index, read_shards

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DEFAULT_FILE = "model.safetensors"
DEFAULT_INDEX = "model.safetensors.index.json"


def read_remote(id: str) -> Checkpoint:
    """Read the tensors of the checkpoint of a model from the hub. Raises ArchError, whose notes list the attempts."""
    try:
        try:
            return Checkpoint(id, tuple(_read_safetensors_header(id, DEFAULT_FILE)))
        except hub.HubFileNotFoundError:
            pass
        try:
            path = hub.download(id, DEFAULT_INDEX, MAX_INDEX_BYTES)
        except hub.HubFileNotFoundError:
            return _read_only_gguf(id)
        label = f"{id}/{DEFAULT_INDEX}"
        with open(path, "rb") as file:
            index = read_index(label, file.read(MAX_INDEX_BYTES))
        return read_shards(label, index, lambda shard: (_read_safetensors_header(id, shard), []))._replace(label=id)
    except hub.HubUnavailableError as unavailable:
        raise hub.not_found_error(id, f"{unavailable}", "checkpoint") from None


def read_remote_gguf(id: str, file: str) -> Checkpoint:
    """Read the tensors of a GGUF file of a model on the hub. Raises ArchError, whose notes list the attempts."""
    try:
        return _read_gguf(id, file)
    except hub.HubUnavailableError as unavailable:
        raise hub.not_found_error(f"{id}/{file}", f"{unavailable}", "checkpoint") from None


def _read_only_gguf(id: str) -> Checkpoint:
    """Read the only GGUF file of a model, or the parts of the only one.

    Raises HubUnavailableError, and ArchError if there are several.
    """
    files = [file for file in hub.list_files(id) if file.endswith(".gguf")]
    if len(files) > 1 and not is_one_model(files):
        examples = ", ".join(f"{id}/{file}" for file in files[:4]) + (", ..." if len(files) > 4 else "")
        raise make_error("usage", f"{len(files)} GGUF files in {id}", help=f"name one: {examples}")
    if not files:
        raise hub.HubUnavailableError(f"the model has neither {DEFAULT_FILE} nor {DEFAULT_INDEX} nor a GGUF file")
    return _read_gguf(id, files[0])


def _read_gguf(id: str, file: str) -> Checkpoint:
    return read_gguf(f"{id}/{file}", lambda path: _read_gguf_header(id, path.removeprefix(f"{id}/")))


def _read_gguf_header(id: str, file: str) -> Header:
    """Return the header of a GGUF file on the hub, whose length is known only after reading it."""
    start = _RemoteFile(id, file)
    return read_header(BufferedReader(start), start.size, f"{id}/{file}")


class _RemoteFile(RawIOBase):
    """A file on the hub. Reading requests the bytes from the start of the file, as far as needed."""

    def __init__(self, id: str, file: str) -> None:
        self._id, self._file, self._position = id, file, 0
        self._data, self.size = hub.read_start(id, file)

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
        target = memoryview(buffer)
        end = min(self._position + len(target), self.size)
        if end > len(self._data):
            self._data = hub.read_start(self._id, self._file, max(end, 4 * len(self._data))).data
        chunk = self._data[self._position : end]
        target[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)


def _read_safetensors_header(id: str, file: str) -> list[Entry]:
    """Return the tensors of a safetensors file on the hub."""
    start = hub.read_start(id, file)
    needed = 8 + int.from_bytes(start.data[:8], "little")
    if len(start.data) < needed <= min(start.size, 8 + safetensors.MAX_HEADER_BYTES):
        start = hub.read_start(id, file, needed)
    return safetensors.read(BytesIO(start.data), start.size, f"{id}/{file}")
