"""Reading a checkpoint from a path: a file, an index of shards, or a directory that contains either."""

from __future__ import annotations

import os
import re
from typing import cast

from archspec.checkpoints import safetensors, strictjson, torchfile
from archspec.checkpoints.entries import Checkpoint, Entry
from archspec.checkpoints.faults import Faults, damaged
from archspec.reporting.text import number
from archspec.source import fail, opened, unreadable

USUAL = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""File names to look for in a directory, in order of preference, as in `transformers`."""

ENDINGS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt")
"""Extensions of other checkpoint files; a directory with exactly one such file is also accepted."""

LARGEST_INDEX = 100_000_000
MOST_SHARDS = 10_000

_SHARD = re.compile(r"-[0-9]{1,9}-of-([0-9]{1,9})\.[a-z]+$")
"""Pattern of shard names: `model-00001-of-00003.safetensors`."""

_OTHER_FORMATS = {
    b"version https://git-lfs": (
        "this is a Git LFS pointer, not the checkpoint itself",
        "fetch it with `git lfs pull`",
    ),
    b"<!DOCTYPE": ("this is a web page, not a checkpoint", "download the file itself"),
    b"<html": ("this is a web page, not a checkpoint", "download the file itself"),
    b"GGUF": ("GGUF files are not supported", None),
    b"\x89HDF": ("HDF5 files are not supported", None),
}
"""Files that are often mistaken for checkpoints: the first bytes, the message and the help."""


def read(path: str) -> Checkpoint:
    """Read the tensors of the checkpoint at `path` from its headers.

    Raises ArchError if the checkpoint is unreadable or inconsistent.
    """
    if os.path.isdir(path):
        path = _in_directory(path)
    if path.endswith(".json"):
        return _read_sharded(path)
    entries, notes = _read_file(path)
    if shard := _SHARD.search(path):
        notes.append(f"the file name indicates one of {int(shard[1]):,} shards; use their index to read all of them")
    return Checkpoint(path, tuple(entries), notes=tuple(notes))


def _in_directory(directory: str) -> str:
    """Return the path of the only checkpoint in a directory. Raises ArchError if there are none or several."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise unreadable(directory, error) from None
    for name in USUAL:
        if name in names:
            return os.path.join(directory, name)
    found = [name for name in names if name.endswith(ENDINGS)]
    indexes = [name for name in found if name.endswith(".index.json")]
    if len(indexes) == 1:
        found = indexes
    if len(found) == 1:
        return os.path.join(directory, found[0])
    if not found:
        raise fail("missing-file", f"no checkpoint in {directory}", help=f"expected one of: {', '.join(USUAL)}")
    shown = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
    raise fail("usage", f"{len(found)} checkpoints in {directory}", help=f"name one: {shown}")


def _read_file(path: str) -> tuple[list[Entry], list[str]]:
    """Return the tensors of one file, and notes on its other contents."""
    with opened(path, path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(32)
        file.seek(0)
        for start, (message, help) in _OTHER_FORMATS.items():
            if head.startswith(start):
                raise damaged(path, message, help=help)
        if not path.endswith(".safetensors") and head.startswith((torchfile.ZIP, torchfile.PICKLE)):
            return torchfile.read(file, size, path)
        if not path.endswith(".safetensors") and head[8:9] != b"{":
            raise damaged(path, "unknown format: expected a safetensors file or a file written by `torch.save`")
        return safetensors.read(file, size, path), []


# Sharded checkpoints


def _read_sharded(path: str) -> Checkpoint:
    """Read the shards listed in an index, and check that each holds exactly the tensors listed for it."""
    weight_map, total_size = _read_index(path)
    directory = os.path.dirname(path)
    shards = {shard: os.path.join(directory, shard) for shard in dict.fromkeys(weight_map.values())}
    _check_presence(path, shards, weight_map)
    entries: list[Entry] = []
    notes: list[str] = []
    holders: dict[str, str] = {}
    faults = Faults(path)
    for shard, location in shards.items():
        found, shard_notes = _read_file(location)
        notes += [f"{shard}: {note}" for note in shard_notes]
        for entry in found:
            if entry.name in holders:
                faults.add("duplicate", f"`{entry.name}` is in two shards, {holders[entry.name]} and {shard}")
                continue
            holders[entry.name] = shard
            entries.append(entry)
            if entry.name not in weight_map:
                faults.add("unlisted", f"`{entry.name}` is in {shard} but not in the index")
    for name, shard in weight_map.items():
        if name not in holders:
            faults.add("missing", f"expected `{name}` in {shard}, found no such tensor")
        elif holders[name] != shard:
            faults.add("misplaced", f"expected `{name}` in {shard}, found it in {holders[name]}")
    faults.check()
    return Checkpoint(path, tuple(entries), len(shards), total_size, tuple(notes))


def _read_index(path: str) -> tuple[dict[str, str], int | None]:
    """Return the shard of each tensor, and the total size in bytes if the index states it."""
    with opened(path, path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_INDEX:
            raise damaged(path, f"index of {size:,} bytes exceeds the limit of {LARGEST_INDEX:,}")
        data = file.read(LARGEST_INDEX)
    index = strictjson.parse(data, path, "the index")
    faults = Faults(path)
    weight_map: object = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise damaged(path, "not an index of shards: missing `weight_map`")
    for name, shard in cast("dict[str, object]", weight_map).items():
        if faults.has_name(name) and not (isinstance(shard, str) and _is_inside(shard)):
            message = f"invalid shard of `{name}`: {shard!r:.80} is not a file in the directory of the index"
            faults.add("outside", message)
    metadata: object = index.get("metadata", {})
    claimed: object = cast("dict[str, object]", metadata).get("total_size") if isinstance(metadata, dict) else None
    total: int | None = None
    if type(claimed) is int or (isinstance(claimed, float) and claimed.is_integer()):  # some programs write a float
        total = int(claimed)
    if claimed is not None and (total is None or total < 0):
        faults.add("total", "invalid `total_size`: expected a number of bytes")
    faults.check()
    placed = cast("dict[str, str]", weight_map)
    if len(set(placed.values())) > MOST_SHARDS:
        raise damaged(path, f"too many shards: the limit is {MOST_SHARDS:,}")
    return placed, total


def _is_inside(shard: str) -> bool:
    """Whether a name stays inside the directory. Links may lead outside, as in the Hugging Face cache."""
    parts = shard.replace("\\", "/").split("/")
    return not (os.path.isabs(shard) or ":" in shard or "\0" in shard or {"", ".", ".."} & set(parts))


def _check_presence(path: str, shards: dict[str, str], weight_map: dict[str, str]) -> None:
    missing = dict.fromkeys(shard for shard, location in shards.items() if not os.path.exists(location))
    if missing:
        tensors = number(sum(shard in missing for shard in weight_map.values()), "tensor")
        more = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        raise fail("missing-file", f"file not found: {next(iter(missing))}{more}, where {path} places {tensors}")
