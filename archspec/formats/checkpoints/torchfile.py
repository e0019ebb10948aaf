"""Reading files written by `torch.save`: a pickled mapping of names to tensors, and the data of their storages.

Since PyTorch 1.6 a file is a zip archive: `NAME/data.pkl`, and each storage, uncompressed, in `NAME/data/KEY`. An older
file is a sequence of pickles (magic number, version, machine properties, mapping, storage keys), followed by the
storages, each preceded by its length. Only pickles and zip directories are read, and nothing in them is run.
"""

from __future__ import annotations

from typing import BinaryIO, cast

from archspec.core.reports.text import number
from archspec.formats.checkpoints.entries import BITS, DefectCollector, Entry, damaged
from archspec.formats.checkpoints.pickled import PickleError
from archspec.formats.checkpoints.torchpickle import Loader, View
from archspec.formats.checkpoints.torchzip import Archive

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""The first bytes of the two formats."""

WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys of the mapping of tensors in files that hold other data as well."""

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MAX_NAMED_KEYS = 5
_HELP = "save the tensors with `torch.save(model.state_dict(), path)`"


def read(file: BinaryIO, size: int, label: str) -> tuple[list[Entry], list[str]]:
    """Return the tensors of a file of `size` bytes, and notes on its other contents. Raises ArchError."""
    try:
        if file.read(len(ZIP)) == ZIP:
            archive = Archive(file, size)
            loader = Loader(archive.pickle)
            root = loader.load()
            offsets = archive.locate(loader.storages)
        else:
            file.seek(0)
            root, offsets = _read_legacy_file(file, size)
    except PickleError as error:
        raise damaged(label, str(error), help=_HELP) from None
    return _collect_entries(root, label, offsets)


def _read_legacy_file(file: BinaryIO, size: int) -> tuple[object, dict[str, int]]:
    """Return the mapping in a file older than PyTorch 1.6, and the offsets of its storages, which must be complete."""
    loader = Loader(file)
    if loader.load() != _MAGIC or loader.load() != _VERSION:
        raise PickleError("this pickle was not written by `torch.save`")
    system = loader.load()
    if not isinstance(system, dict) or cast("dict[str, object]", system).get("little_endian") is not True:
        raise PickleError("unsupported byte order: expected a little-endian file")
    root, keys = loader.load(), loader.load()
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in cast("list[object]", keys)):
        raise PickleError("missing the list of storages")
    if sorted(cast("list[str]", keys)) != sorted(loader.storages):
        raise PickleError("the list of storages does not match the tensors")
    position = file.tell()
    offsets: dict[str, int] = {}
    for key in cast("list[str]", keys):
        file.seek(position)
        head = file.read(8)
        if len(head) < 8:
            raise PickleError("file is truncated: storages are missing at the end")
        length, width = loader.storages[key]
        stored = int.from_bytes(head, "little")
        if stored != length:
            raise PickleError(f"storage `{key}`: expected {length:,} elements, found {stored:,}")
        offsets[key] = position + 8
        position += 8 + length * width
    if position > size:
        raise PickleError(f"file is truncated: expected {position:,} bytes, but the file has {size:,}")
    if position < size:
        raise PickleError(f"found {number(size - position, 'byte')} after the last storage")
    return root, offsets


def _collect_entries(root: object, label: str, offsets: dict[str, int]) -> tuple[list[Entry], list[str]]:
    """Return the tensors in `root`, or in the mapping under one of its WRAPPERS."""
    notes: list[str] = []
    mapping = _as_mapping(root)
    if mapping and not _has_tensors(mapping):
        mappings = {wrapper: _as_mapping(mapping.get(wrapper)) for wrapper in WRAPPERS}
        wrapper = next((wrapper for wrapper in WRAPPERS if _has_tensors(mappings[wrapper])), None)
        notes.append(f"the tensors are under the key `{wrapper}`")
        mapping = mappings.get(wrapper or "")
    if mapping is None:
        raise damaged(label, "expected a mapping of names to tensors", help=_HELP)
    defects = DefectCollector(label)
    entries: list[Entry] = []
    ignored: list[str] = []
    for name, value in mapping.items():
        if name is None:
            defects.add("key", "expected strings as the keys of tensors")
        elif defects.has_name(name) and isinstance(value, View):
            entries.append(_build_entry(name, value, label, offsets))
        else:
            ignored.append(name)
    defects.check()
    if ignored:
        named = ", ".join(f"`{name}`" for name in ignored[:_MAX_NAMED_KEYS])
        suffix = f" and {len(ignored) - _MAX_NAMED_KEYS:,} more" if len(ignored) > _MAX_NAMED_KEYS else ""
        notes.append(f"ignored, because they are not tensors: {named}{suffix}")
    return entries, notes


def _as_mapping(value: object) -> dict[str | None, object] | None:
    return cast("dict[str | None, object]", value) if isinstance(value, dict) else None


def _has_tensors(mapping: dict[str | None, object] | None) -> bool:
    return mapping is not None and any(isinstance(value, View) for value in mapping.values())


def _build_entry(name: str, view: View, label: str, offsets: dict[str, int]) -> Entry:
    actual_strides: list[int] = []
    contiguous_strides: list[int] = []
    step = 1
    stored = 0 if 0 in view.shape else BITS[view.dtype] // 8
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        actual_strides.append(stride if size > 1 else 0)  # the stride of an axis of size 1 has no effect
        contiguous_strides.append(step if size > 1 else 0)
        step *= size
        stored *= size if actual_strides[-1] else 1
    strides = None if actual_strides == contiguous_strides else tuple(reversed(actual_strides))
    key = view.storage.key
    return Entry(name, view.shape, view.dtype, stored, label, key, view.start, strides, offsets.get(key))
