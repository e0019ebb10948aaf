"""Checkpoints on the hub: the headers of their safetensors files, by range requests."""

from __future__ import annotations

from io import BytesIO

from archspec.checkpoints import safetensors
from archspec.checkpoints.entries import Checkpoint, Entry
from archspec.checkpoints.shards import LARGEST_INDEX, read_index, read_shards
from archspec.hub import remote
from archspec.hub.find import not_found

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def read_remote(id: str) -> Checkpoint:
    """Read the tensors of the checkpoint of a model from the hub. Raises ArchError, which states what was tried."""
    try:
        try:
            return Checkpoint(id, tuple(_header(id, FILE)))
        except remote.NoSuchFile:
            pass
        with open(remote.download(id, INDEX, LARGEST_INDEX), "rb") as file:
            index = read_index(f"{id}/{INDEX}", file.read(LARGEST_INDEX))
        return read_shards(f"{id}/{INDEX}", index, lambda shard: (_header(id, shard), []))._replace(label=id)
    except remote.NoSuchFile:
        reason = f"the model has neither {FILE} nor {INDEX}"
    except remote.Unavailable as unavailable:
        reason = f"{unavailable}"
    raise not_found(id, reason, "checkpoint")


def _header(id: str, file: str) -> list[Entry]:
    """Return the tensors of a safetensors file on the hub."""
    start = remote.start_of(id, file)
    needed = 8 + int.from_bytes(start.data[:8], "little")
    if len(start.data) < needed <= min(start.size, 8 + safetensors.LARGEST_HEADER):
        start = remote.start_of(id, file, needed)
    return safetensors.read(BytesIO(start.data), start.size, f"{id}/{file}")
