"""Reading a checkpoint: a file, an index of shards, a directory with either, or a model on the hub."""

from __future__ import annotations

import os
import re

from archspec.core.diagnostics import make_error, open_regular_file, unreadable_error
from archspec.formats.checkpoints import safetensors, torchfile
from archspec.formats.checkpoints.entries import Checkpoint, Entry, damaged
from archspec.formats.checkpoints.gguf import MAGIC, is_one_model, read_gguf
from archspec.formats.checkpoints.hub import read_remote, read_remote_gguf
from archspec.formats.checkpoints.quantized import unpack_quantized
from archspec.formats.checkpoints.shards import MAX_INDEX_BYTES, check_presence, read_index, read_shards
from archspec.formats.hub import find_cached_file, find_snapshot, is_id, split_gguf_path

DEFAULT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""File names to look for in a directory, in order of preference, as in `transformers`."""

EXTENSIONS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt", ".gguf")
"""Extensions of checkpoint files; a directory with exactly one such file is also accepted."""

_SHARD = re.compile(r"-[0-9]{1,9}-of-([0-9]{1,9})\.[a-z]+$")
"""Pattern of shard names: `model-00001-of-00003.safetensors`."""

_OTHER_FORMATS = {
    b"version https://git-lfs": (
        "this is a Git LFS pointer, not the checkpoint itself",
        "fetch it with `git lfs pull`",
    ),
    b"<!DOCTYPE": ("this is a web page, not a checkpoint", "download the file itself"),
    b"<html": ("this is a web page, not a checkpoint", "download the file itself"),
    b"\x89HDF": ("HDF5 files are not supported", None),
}
"""Files that are often mistaken for checkpoints: the first bytes, the message and the help."""


def read(path: str) -> Checkpoint:
    """Read the tensors of the checkpoint at `path` from its headers; `path` can also be a name on the hub.

    Quantized weights of known layouts are one tensor each, of their logical size. Raises ArchError if the checkpoint is
    unreadable or inconsistent.
    """
    return unpack_quantized(_read_stored(path))


def _read_stored(path: str) -> Checkpoint:
    """Read the tensors of a checkpoint as they are stored."""
    if (file := split_gguf_path(path)) is not None and not os.path.lexists(path):
        return _read_hub_gguf(*file)
    if "/" in path and is_id(path) and not os.path.lexists(path):
        return _read_hub(path)
    if os.path.isdir(path):
        path = _find_in_directory(path)
    if path.endswith(".json"):
        return _read_sharded(path)
    if _is_gguf(path):
        return read_gguf(path)
    entries, notes = _read_file(path)
    if shard := _SHARD.search(path):
        notes.append(f"the file name indicates one of {int(shard[1]):,} shards; use their index to read all of them")
    return Checkpoint(path, tuple(entries), notes=tuple(notes))


def _find_in_directory(directory: str) -> str:
    """Return the path of the only checkpoint in a directory. Raises ArchError if it has none or several."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise unreadable_error(directory, error) from None
    for name in DEFAULT_FILES:
        if name in names:
            return os.path.join(directory, name)
    candidates = [name for name in names if name.endswith(EXTENSIONS)]
    indexes = [name for name in candidates if name.endswith(".index.json")]
    if len(indexes) == 1:
        candidates = indexes
    if len(candidates) == 1 or is_one_model(candidates):
        return os.path.join(directory, candidates[0])
    if not candidates:
        raise make_error(
            "missing-file", f"no checkpoint in {directory}", help=f"expected one of: {', '.join(DEFAULT_FILES)}"
        )
    examples = ", ".join(candidates[:4]) + (", ..." if len(candidates) > 4 else "")
    raise make_error("usage", f"{len(candidates)} checkpoints in {directory}", help=f"name one: {examples}")


def _is_gguf(path: str) -> bool:
    with open_regular_file(path, path) as file:
        return file.read(len(MAGIC)) == MAGIC


def _read_file(path: str) -> tuple[list[Entry], list[str]]:
    """Return the tensors of one file, and notes on its other contents."""
    with open_regular_file(path, path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(32)
        file.seek(0)
        for start, (message, help) in _OTHER_FORMATS.items():
            if head.startswith(start):
                raise damaged(path, message, help=help)
        if not path.endswith(".safetensors") and head.startswith((torchfile.ZIP, torchfile.PICKLE)):
            return torchfile.read(file, size, path)
        if not path.endswith(".safetensors") and head[8:9] != b"{":
            raise damaged(path, "unknown format: expected a safetensors or GGUF file, or one written by `torch.save`")
        return safetensors.read(file, size, path), []


def _read_hub(id: str) -> Checkpoint:
    """Read the checkpoint of a model from the local cache, else from the hub."""
    folder = find_snapshot(id)
    if folder is not None and any(os.path.isfile(os.path.join(folder, name)) for name in DEFAULT_FILES):
        return _read_stored(folder)._replace(label=id)
    return read_remote(id)


def _read_hub_gguf(id: str, file: str) -> Checkpoint:
    """Read a GGUF file of a model from the local cache, else from the hub."""
    path = find_cached_file(id, file)
    return read_gguf(path)._replace(label=f"{id}/{file}") if path is not None else read_remote_gguf(id, file)


def _read_sharded(path: str) -> Checkpoint:
    """Read the shards listed in an index, and check that each holds exactly the tensors listed for it."""
    with open_regular_file(path, path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_INDEX_BYTES:
            raise damaged(path, f"index of {size:,} bytes exceeds the limit of {MAX_INDEX_BYTES:,}")
        index = read_index(path, file.read(MAX_INDEX_BYTES))
    directory = os.path.dirname(path)
    check_presence(path, directory, index)
    return read_shards(path, index, lambda shard: _read_file(os.path.join(directory, shard)))
