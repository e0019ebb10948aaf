"""Reading a model in GGUF: one file, or all the files into which `llama-gguf-split` divided it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from archspec.core.diagnostics import make_error, open_regular_file
from archspec.formats.checkpoints import gguf
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.checkpoints.faults import DefectCollector, damaged

MAX_PARTS = 10_000

_PART = re.compile(r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf")


def is_one_model(names: Sequence[str]) -> bool:
    """Whether files are the parts of one model, by their names."""
    parts = [_PART.fullmatch(name) for name in names]
    return all(parts) and len({(part["stem"], part["count"]) for part in parts if part}) == 1


def read_gguf(path: str, read: Callable[[str], gguf.Header] | None = None) -> Checkpoint:
    """Return the tensors of a file, and of the other parts of the model beside it. Raises ArchError.

    `read` returns the header of a file, which may be somewhere else; by default, it opens local files.
    """
    header = (read or _header)(path)
    count = _number(header.metadata, "split.count", path) or 1
    if count == 1:
        return Checkpoint(
            path, tuple(header.entries), notes=tuple(_notes(header.entries, header.metadata)), format="gguf"
        )
    if count > MAX_PARTS:
        raise damaged(path, f"too many parts: {count:,}, the limit is {MAX_PARTS:,}")
    part = _PART.fullmatch(path)
    if part is None or int(part["count"]) != count:
        message = f"one of {count:,} parts, whose name does not end in `-of-{count:05}.gguf`"
        raise damaged(path, message, help="give the parts the names that `llama-gguf-split` gives them")
    paths = [f"{part['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [path for path in paths if read is None and not os.path.exists(path)]
    if missing:
        more = f" (and {len(missing) - 1:,} more like it)" if len(missing) > 1 else ""
        raise make_error("missing-file", f"file not found: {missing[0]}{more}, one of the {count:,} parts of the model")
    headers = [(read or _header)(each) for each in paths]
    faults = DefectCollector(path)
    entries: dict[str, Entry] = {}
    for number, each in enumerate(headers):
        found = _number(each.metadata, "split.no", path), _number(each.metadata, "split.count", path)
        if found != (number, count):
            faults.add("part", f"{paths[number]} is not part {number + 1:,} of {count:,}")
        for entry in each.entries:
            if entries.setdefault(entry.name, entry) is not entry:
                faults.add("duplicate", f"`{entry.name}` is in two parts, {entries[entry.name].file} and {entry.file}")
    expected = _number(header.metadata, "split.tensors.count", path)
    if expected is not None and expected != len(entries):
        faults.add("count", f"expected {expected:,} tensors in all parts, found {len(entries):,}")
    faults.check()
    notes = _notes(entries.values(), headers[0].metadata)
    return Checkpoint(path, tuple(entries.values()), count, notes=tuple(notes), format="gguf")


def _header(path: str) -> gguf.Header:
    with open_regular_file(path, path) as file:
        return gguf.read(file, os.fstat(file.fileno()).st_size, path)


def _number(metadata: Mapping[str, object], key: str, path: str) -> int | None:
    value = metadata.get(key)
    if value is not None and (type(value) is not int or value < 0):
        raise damaged(path, f"invalid `{key}`: expected a number")
    return value


def _notes(entries: Iterable[Entry], metadata: Mapping[str, object]) -> list[str]:
    """Describe the architecture, and an output layer that shares the embeddings."""
    names = {entry.name for entry in entries}
    architecture = metadata.get("general.architecture")
    notes: list[str] = []
    if isinstance(architecture, str) and architecture.isprintable():
        notes.append(f"GGUF, architecture `{architecture:.60}`")
    embeds = f"{architecture}.pooling_type" in metadata
    causal = metadata.get(f"{architecture}.attention.causal", True)
    if {"token_embd.weight", "output_norm.weight"} <= names and "output.weight" not in names and causal and not embeds:
        notes.append("no `output.weight`: llama.cpp ties the output layer to `token_embd.weight`")
    return notes
