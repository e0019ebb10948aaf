"""Reading sharded checkpoints: an index, and the shards that it lists."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, cast

from archspec.core.diagnostics import make_error
from archspec.core.reports.text import number
from archspec.formats.checkpoints.entries import Checkpoint, DefectCollector, Entry, damaged
from archspec.formats.checkpoints.safetensors import parse_json

MAX_INDEX_BYTES = 100_000_000
MAX_SHARDS = 10_000


class Index(NamedTuple):
    """The shard of each tensor, and the total size in bytes if the index states it."""

    weight_map: dict[str, str]
    total_size: int | None

    @property
    def shards(self) -> list[str]:
        """The names of the shards, in order."""
        return [*dict.fromkeys(self.weight_map.values())]


def read_shards(path: str, index: Index, read_shard: Callable[[str], tuple[list[Entry], list[str]]]) -> Checkpoint:
    """Read the shards listed in the index at `path`, and check that each holds exactly the tensors listed for it."""
    entries: list[Entry] = []
    notes: list[str] = []
    shard_by_name: dict[str, str] = {}
    defects = DefectCollector(path)
    for shard in index.shards:
        shard_entries, shard_notes = read_shard(shard)
        notes += [f"{shard}: {note}" for note in shard_notes]
        for entry in shard_entries:
            if entry.name in shard_by_name:
                defects.add("duplicate", f"`{entry.name}` is in two shards, {shard_by_name[entry.name]} and {shard}")
                continue
            shard_by_name[entry.name] = shard
            entries.append(entry)
            if entry.name not in index.weight_map:
                defects.add("unlisted", f"`{entry.name}` is in {shard} but not in the index")
    for name, shard in index.weight_map.items():
        if name not in shard_by_name:
            defects.add("missing", f"expected `{name}` in {shard}, found no such tensor")
        elif shard_by_name[name] != shard:
            defects.add("misplaced", f"expected `{name}` in {shard}, found it in {shard_by_name[name]}")
    defects.check()
    return Checkpoint(path, tuple(entries), len(index.shards), index.total_size, tuple(notes))


def read_index(path: str, data: bytes) -> Index:
    """Return the contents of the index at `path`. Raises ArchError."""
    index = parse_json(data, path, "the index")
    defects = DefectCollector(path)
    weight_map: object = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise damaged(path, "not an index of shards: missing `weight_map`")
    for name, shard in cast("dict[str, object]", weight_map).items():
        if defects.has_name(name) and not (isinstance(shard, str) and _is_inside(shard)):
            message = f"invalid shard of `{name}`: {shard!r:.80} is not a file in the directory of the index"
            defects.add("outside", message)
    metadata: object = index.get("metadata", {})
    stated: object = cast("dict[str, object]", metadata).get("total_size") if isinstance(metadata, dict) else None
    total: int | None = None  # some libraries write it as a float
    if type(stated) is int or (isinstance(stated, float) and stated.is_integer()):
        total = int(stated)
    if stated is not None and (total is None or total < 0):
        defects.add("total", "invalid `total_size`: expected a number of bytes")
    defects.check()
    shard_by_name = cast("dict[str, str]", weight_map)
    if len(set(shard_by_name.values())) > MAX_SHARDS:
        raise damaged(path, f"too many shards: the limit is {MAX_SHARDS:,}")
    return Index(shard_by_name, total)


def _is_inside(shard: str) -> bool:
    """Whether a name stays inside the directory. Links may lead outside, as in the Hugging Face cache."""
    parts = shard.replace("\\", "/").split("/")
    return not (os.path.isabs(shard) or ":" in shard or "\0" in shard or {"", ".", ".."} & set(parts))


def check_presence(path: str, directory: str, index: Index) -> None:
    """Raise ArchError if files that the index at `path` lists are not in its directory."""
    missing = [shard for shard in index.shards if not os.path.exists(os.path.join(directory, shard))]
    if missing:
        tensors = number(sum(shard in missing for shard in index.weight_map.values()), "tensor")
        more = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        raise make_error("missing-file", f"file not found: {missing[0]}{more}, where {path} places {tensors}")
