"""The elements of a checkpoint as PyTorch tensors. Files that are read here have been checked by their headers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import make_error, open_regular_file
from archspec.formats.checkpoints.entries import BITS, Entry
from archspec.formats.checkpoints.faults import damaged
from archspec.formats.checkpoints.torchfile import WRAPPERS

if TYPE_CHECKING:
    from torch import Tensor


def elements_of(entries: Mapping[str, Entry]) -> dict[str, Tensor]:
    """Return the elements of entries, which may be of several files, on the CPU. Raises ArchError."""
    files: dict[str, dict[str, Entry]] = {}
    for name, entry in entries.items():
        files.setdefault(entry.file, {})[name] = entry
    found: dict[str, Tensor] = {}
    for file, part in files.items():
        if not os.path.isfile(file):
            raise make_error("missing-file", f"{file} is not a local file", help="download the checkpoint first")
        is_torch_file = any(entry.storage for entry in part.values())
        found |= _of_torch_file(file, part) if is_torch_file else _of_safetensors(file, part)
    return {name: found[name] for name in entries}


def _of_safetensors(path: str, entries: Mapping[str, Entry]) -> dict[str, Tensor]:
    import torch

    found: dict[str, Tensor] = {}
    with open_regular_file(path, path) as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
        for name, entry in entries.items():
            if BITS[entry.dtype] < 8:
                raise make_error(
                    "unsupported", f"`{entry.name}` is of type {entry.dtype}, which PyTorch packs differently"
                )
            data = bytearray(entry.bytes)
            file.seek(begin + entry.start)
            if file.readinto(data) != entry.bytes:
                raise damaged(path, f"file changed while it was read: `{entry.name}` is incomplete")
            dtype = getattr(torch, entry.dtype)
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            found[name] = flat.reshape(entry.shape)
    return found


def _of_torch_file(path: str, entries: Mapping[str, Entry]) -> dict[str, Tensor]:
    import torch

    try:
        root: object = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # of any class
        raise damaged(path, f"PyTorch cannot load it: {problem.__class__.__name__}: {problem}") from None
    mappings = [root, *(cast("dict[str, object]", root).get(wrapper) for wrapper in WRAPPERS)]
    for mapping in (cast("dict[str, object]", each) for each in mappings if isinstance(each, dict)):
        found = {name: mapping.get(entry.name) for name, entry in entries.items()}
        tensors = {name: each for name, each in found.items() if isinstance(each, torch.Tensor)}
        if len(tensors) == len(entries):
            return tensors
    raise damaged(path, "PyTorch does not load the tensors that the file lists")
