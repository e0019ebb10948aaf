"""What `torch.save` writes: a mapping of names to tensors, as a pickle beside the bytes of the tensors' storages.

Since PyTorch 1.6 a file is a zip archive: `NAME/data.pkl`, and each storage, uncompressed, in `NAME/data/KEY`. Before,
it was a sequence of pickles (a magic number, a version, facts about the machine, the mapping, the storages' keys), and
after them the storages, each behind its length. Only pickles and directories are read, and nothing in them is run.
"""

from __future__ import annotations

from typing import BinaryIO, cast

from archspec.checkpoints.entries import BITS, Entry
from archspec.checkpoints.faults import Faults, bytes_of, damaged
from archspec.checkpoints.pickled import PickleError
from archspec.checkpoints.torchpickle import Loader, View
from archspec.checkpoints.torchzip import Archive

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""How the two kinds of files begin."""

WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Where programs that save more than tensors keep these."""

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MOST_NAMED = 5
_HELP = "`torch.save(model.state_dict(), path)` writes a file that can be read here"


def read(file: BinaryIO, size: int, label: str) -> tuple[list[Entry], list[str]]:
    """The tensors of a file of `size` bytes, and sentences on what else is in it. Raises ArchError."""
    try:
        if file.read(len(ZIP)) == ZIP:
            archive = Archive(file, size)
            loader = Loader(archive.pickle)
            root = loader.load()
            archive.check(loader.storages)
        else:
            file.seek(0)
            root = _read_old(file, size)
    except PickleError as error:
        raise damaged(label, str(error), help=_HELP) from None
    return _entries(root, label)


def _read_old(file: BinaryIO, size: int) -> object:
    """The mapping in a file as it was before PyTorch 1.6, once its storages were seen to be there."""
    loader = Loader(file)
    if loader.load() != _MAGIC or loader.load() != _VERSION:
        raise PickleError("is a pickle, but none that `torch.save` wrote")
    system = loader.load()
    if not isinstance(system, dict) or cast("dict[str, object]", system).get("little_endian") is not True:
        raise PickleError("was written on a machine with another order of bytes")
    root, keys = loader.load(), loader.load()
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in cast("list[object]", keys)):
        raise PickleError("does not say which storages are in it")
    if sorted(cast("list[str]", keys)) != sorted(loader.storages):
        raise PickleError("has other storages than its tensors say")
    position = file.tell()
    for key in cast("list[str]", keys):
        file.seek(position)
        head = file.read(8)
        if len(head) < 8:
            raise PickleError("is cut short: storages are missing at its end")
        length, width = loader.storages[key]
        if int.from_bytes(head, "little") != length:
            raise PickleError(f"has another number of elements in storage `{key}` than its tensors say")
        position += 8 + length * width
    if position > size:
        raise PickleError(f"is cut short: its storages take up {position:,} bytes, of which {size:,} are there")
    if position < size:
        raise PickleError(f"has {bytes_of(size - position)} at its end that belong to no storage")
    return root


def _entries(root: object, label: str) -> tuple[list[Entry], list[str]]:
    """The tensors of the mapping in `root`: itself, or what it has under one of WRAPPERS."""
    notes: list[str] = []
    found = _mapping(root)
    if found is None:
        raise damaged(label, "holds no mapping of names to tensors", help=_HELP)
    if found and not any(isinstance(value, View) for value in found.values()):
        for wrapper in WRAPPERS:
            inner = _mapping(found.get(wrapper))
            if inner is not None and any(isinstance(value, View) for value in inner.values()):
                notes.append(f"the tensors are those under `{wrapper}` in the file")
                found = inner
                break
        else:
            raise damaged(label, "holds no mapping of names to tensors", help=_HELP)
    faults = Faults(label)
    entries: list[Entry] = []
    others: list[str] = []
    for name, value in found.items():
        if name is None:
            faults.add("key", "has keys that are no names")
        elif faults.has_name(name) and isinstance(value, View):
            entries.append(_entry(name, value, label))
        else:
            others.append(name)
    faults.check()
    if others:
        named = ", ".join(f"`{name}`" for name in others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED:,} more" if len(others) > _MOST_NAMED else ""
        notes.append(f"passed over, as they are no tensors: {named}{more}")
    return entries, notes


def _mapping(value: object) -> dict[str | None, object] | None:
    return cast("dict[str | None, object]", value) if isinstance(value, dict) else None


def _entry(name: str, view: View, label: str) -> Entry:
    given: list[int] = []
    dense: list[int] = []
    step = 1
    stored = 0 if 0 in view.shape else BITS[view.dtype] // 8
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        given.append(stride if size > 1 else 0)  # along an axis of one element a stride says nothing
        dense.append(step if size > 1 else 0)
        step *= size
        stored *= size if given[-1] else 1
    strides = None if given == dense else tuple(reversed(given))
    return Entry(name, view.shape, view.dtype, stored, label, view.storage.key, view.start, strides)
