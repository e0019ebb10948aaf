"""From a path to a checkpoint: one file, an index with its shards, or a folder that holds either."""

from __future__ import annotations

import os
import re
import stat
from typing import cast

from archspec.checkpoints import safetensors, strictjson, torchfile
from archspec.checkpoints.entries import Checkpoint, Entry
from archspec.checkpoints.faults import Faults, damaged
from archspec.source import ArchError, fail

USUAL = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""What a folder is looked through for, first come first served, as `transformers` does."""

ENDINGS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt")
"""How files of other names end; a folder with a single one of them is a checkpoint too."""

LARGEST_INDEX = 100_000_000
MOST_SHARDS = 10_000

_SHARD = re.compile(r"-[0-9]{1,9}-of-([0-9]{1,9})\.[a-z]+$")
"""How shards are called: `model-00001-of-00003.safetensors`."""

_KINDS = {
    b"version https://git-lfs": (
        "a pointer of Git LFS, and not the file it stands for",
        "fetch it with `git lfs pull`",
    ),
    b"<!DOCTYPE": ("a web page", "download the file itself"),
    b"<html": ("a web page", "download the file itself"),
    b"GGUF": ("a GGUF file, which is not read here", None),
    b"\x89HDF": ("an HDF5 file, which is not read here", None),
}
"""Files that are often taken for checkpoints, by how they begin."""


def read(path: str) -> Checkpoint:
    """The tensors of the checkpoint at `path`, from headers alone. Raises ArchError if it cannot be read, or lies."""
    if os.path.isdir(path):
        path = _in_folder(path)
    if path.endswith(".json"):
        return _read_sharded(path)
    entries, notes = _read_file(path, path)
    if shard := _SHARD.search(path):
        notes.append(f"the name says that this is one of {int(shard[1]):,} shards; their index stands for all of them")
    return Checkpoint(path, tuple(entries), notes=tuple(notes))


def _in_folder(folder: str) -> str:
    """The path of the checkpoint in a folder. Raises ArchError if there is none, or several."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise _unreadable(folder, error) from None
    for name in USUAL:
        if name in names:
            return os.path.join(folder, name)
    found = [name for name in names if name.endswith(ENDINGS)]
    indexes = [name for name in found if name.endswith(".index.json")]
    if len(indexes) == 1:
        found = indexes
    if len(found) == 1:
        return os.path.join(folder, found[0])
    if not found:
        raise fail("missing-file", f"there is no checkpoint in {folder}", help=f"looked for: {', '.join(USUAL)}")
    shown = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
    raise fail("usage", f"there are {len(found)} checkpoints in {folder}", help=f"name one: {shown}")


def _read_file(path: str, label: str) -> tuple[list[Entry], list[str]]:
    """The tensors of one file, and sentences on what else is in it."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            raise fail("unreadable", f"{label} is {'a folder' if stat.S_ISDIR(status.st_mode) else 'no regular file'}")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(32)
            file.seek(0)
            for start, (kind, help) in _KINDS.items():
                if head.startswith(start):
                    raise damaged(label, f"is {kind}", help=help)
            if not path.endswith(".safetensors") and head.startswith((torchfile.ZIP, torchfile.PICKLE)):
                return torchfile.read(file, size, label)
            if not path.endswith(".safetensors") and head[8:9] != b"{":
                raise damaged(label, "is neither a safetensors file nor one that `torch.save` wrote")
            return safetensors.read(file, size, label), []
    except FileNotFoundError:
        raise fail("missing-file", f"file not found: {label}") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _unreadable(label, error) from None


def _unreadable(label: str, error: Exception) -> ArchError:
    return fail("unreadable", f"{label} cannot be read: {getattr(error, 'strerror', None) or error}")


# Sharded checkpoints


def _read_sharded(path: str) -> Checkpoint:
    """The shards that an index names; every shard holds exactly the tensors that the index places in it."""
    weight_map, total_size = _read_index(path)
    folder = os.path.dirname(path)
    shards = {shard: os.path.join(folder, shard) for shard in dict.fromkeys(weight_map.values())}
    _check_presence(path, shards, weight_map)
    entries: list[Entry] = []
    notes: list[str] = []
    holders: dict[str, str] = {}
    faults = Faults(path)
    for shard, place in shards.items():
        found, said = _read_file(place, place)
        notes += [f"{shard}: {sentence}" for sentence in said]
        for entry in found:
            if entry.name in holders:
                faults.add("twice", f"`{entry.name}` is in two shards, {holders[entry.name]} and {shard}")
                continue
            holders[entry.name] = shard
            entries.append(entry)
            if entry.name not in weight_map:
                faults.add("unlisted", f"`{entry.name}` is in {shard}, and the index does not have it")
    for name, shard in weight_map.items():
        if name not in holders:
            faults.add("absent", f"places `{name}` in {shard}, which does not have it")
        elif holders[name] != shard:
            faults.add("elsewhere", f"places `{name}` in {shard}, and it is in {holders[name]}")
    faults.check()
    return Checkpoint(path, tuple(entries), len(shards), total_size, tuple(notes))


def _read_index(path: str) -> tuple[dict[str, str], int | None]:
    """The shard of each tensor, and the number of bytes of all as far as the index says it."""
    data = _bytes(path)
    index = strictjson.parse(data, path, "the index")
    faults = Faults(path)
    weight_map: object = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise damaged(path, "is no index of shards: it has no `weight_map`")
    for name, shard in cast("dict[str, object]", weight_map).items():
        if faults.has_name(name) and not (isinstance(shard, str) and _is_inside(shard)):
            faults.add("outside", f"places `{name}` in {shard!r:.80}, which is no file in the folder of the index")
    metadata: object = index.get("metadata", {})
    claimed: object = cast("dict[str, object]", metadata).get("total_size") if isinstance(metadata, dict) else None
    total: int | None = None
    if type(claimed) is int or (isinstance(claimed, float) and claimed.is_integer()):  # some programs write it so
        total = int(claimed)
    if claimed is not None and (total is None or total < 0):
        faults.add("total", "`total_size` is no number of bytes")
    faults.check()
    placed = cast("dict[str, str]", weight_map)
    if len(set(placed.values())) > MOST_SHARDS:
        raise damaged(path, f"has more than {MOST_SHARDS:,} shards")
    return placed, total


def _bytes(path: str) -> bytes:
    """What is in an index. Raises ArchError."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise fail("unreadable", f"{path} is no regular file")
        if status.st_size > LARGEST_INDEX:
            raise damaged(path, f"is an index of {status.st_size:,} bytes, where {LARGEST_INDEX:,} are allowed")
        with open(path, "rb") as file:
            return file.read(LARGEST_INDEX)
    except FileNotFoundError:
        raise fail("missing-file", f"file not found: {path}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _is_inside(shard: str) -> bool:
    """Whether a name stays in the folder. What it links to may lie elsewhere: the cache of Hugging Face is made so."""
    parts = shard.replace("\\", "/").split("/")
    return not (os.path.isabs(shard) or ":" in shard or "\0" in shard or {"", ".", ".."} & set(parts))


def _check_presence(path: str, shards: dict[str, str], weight_map: dict[str, str]) -> None:
    missing = [shard for shard, place in shards.items() if not os.path.exists(place)]
    if missing:
        absent = set(missing)
        count = sum(shard in absent for shard in weight_map.values())
        more = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        tensors = f"{count:,} tensor{'' if count == 1 else 's'}"
        raise fail("missing-file", f"file not found: {missing[0]}{more}, where {path} places {tensors}")
