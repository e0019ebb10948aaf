"""Checkpoints for tests, written byte by byte: safetensors, and what `torch.save` writes now and wrote before 1.6."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from archspec import ArchError
from archspec.formats.checkpoints.checkpoint import read as read
from archspec.formats.checkpoints.entries import Checkpoint

Shapes = Mapping[str, tuple[int, ...]]
SHAPES = {"b": (3,), "w": (2, 3), "scale": (), "none": (0, 4)}
WIDTHS = {"F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "F4": 0.5}


def header(shapes: Shapes, dtype: str = "F32") -> dict[str, Any]:
    """The header of a safetensors file with these tensors, one after the other."""
    found: dict[str, Any] = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + int(prod(shape) * WIDTHS[dtype])
        found[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    return found


def safetensors(head: Mapping[str, Any] | bytes, data: int | None = None) -> bytes:
    """A safetensors file: a header, and as many zero bytes as it asks for, or `data`."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    if data is None:
        assert not isinstance(head, bytes)
        data = max((info["data_offsets"][1] for name, info in head.items() if name != "__metadata__"), default=0)
    return struct.pack("<Q", len(text)) + text + bytes(data)


def write(path: Path, shapes: Shapes, dtype: str = "F32") -> Path:
    path.write_bytes(safetensors(header(shapes, dtype)))
    return path


def write_shards(folder: Path, shards: Mapping[str, Shapes], **index: Any) -> Path:
    """Shards by file name, and their index; `index` overrides its entries."""
    for name, shapes in shards.items():
        write(folder / name, shapes)
    size = sum(prod(shape) * 4 for shapes in shards.values() for shape in shapes.values())
    weight_map = {tensor: name for name, shapes in shards.items() for tensor in shapes}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": weight_map, **index}))
    return path


# Pickles --------------------------------------------------------------------------------------------------------------


class Name(NamedTuple):
    """`module.name`, which a pickle would import."""

    module: str
    name: str


class Call(NamedTuple):
    function: Name
    arguments: tuple[Any, ...]


class Persistent(NamedTuple):
    identifier: tuple[Any, ...]


def encode(value: Any) -> bytes:
    """The instructions that leave a value on the stack (protocol 2)."""
    match value:
        case Name():
            return b"c" + f"{value.module}\n{value.name}\n".encode()
        case Call():
            return encode(value.function) + encode(value.arguments) + b"R"
        case Persistent():
            return encode(value.identifier) + b"Q"
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            size = value.bit_length() // 8 + 1
            return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case tuple():
            return b"(" + b"".join(map(encode, value)) + b"t"
        case list():
            return b"](" + b"".join(map(encode, value)) + b"e"
        case dict():
            return b"}(" + b"".join(encode(item) for pair in value.items() for item in pair) + b"u"
        case bytes():  # instructions
            return value
        case _:
            raise TypeError(value)


def pickle(value: Any) -> bytes:
    return b"\x80\x02" + encode(value) + b"."


def storage(key: str, length: int, kind: str = "FloatStorage", *view: Any) -> Persistent:
    return Persistent(("storage", Name("torch", kind), key, "cpu", length, *view))


def tensor(
    run: Persistent, shape: tuple[int, ...], start: int = 0, strides: tuple[int, ...] | None = None, version: str = "v2"
) -> Call:
    dense = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
    arguments = (run, start, shape, dense if strides is None else strides, False, Call(ORDERED, ()))
    return Call(Name("torch._utils", f"_rebuild_tensor_{version}"), arguments)


ORDERED = Name("collections", "OrderedDict")


def state(shapes: Shapes) -> dict[str, Call]:
    """A mapping of names to float tensors, each in a storage of its own."""
    return {name: tensor(storage(str(i), prod(shape)), shape) for i, (name, shape) in enumerate(shapes.items())}


def sizes(shapes: Shapes) -> dict[str, int]:
    """The bytes of each storage that `state` uses, by key."""
    return {str(i): prod(shape) * 4 for i, shape in enumerate(shapes.values())}


def torch_zip(value: Any, storages: Mapping[str, int], compression: int = zipfile.ZIP_STORED) -> bytes:
    """What `torch.save` writes; `value` may be the pickle itself."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("archive/data.pkl", value if isinstance(value, bytes) else pickle(value))
        archive.writestr("archive/byteorder", "little")
        for key, size in storages.items():
            archive.writestr(f"archive/data/{key}", bytes(size))
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


MAGIC = 0x1950A86A20F9469CFC6C


def torch_old(value: Any, storages: Mapping[str, int], width: int = 4) -> bytes:
    """What `torch.save` wrote before PyTorch 1.6."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = [pickle(MAGIC), pickle(1001), pickle(system), value if isinstance(value, bytes) else pickle(value)]
    parts.append(pickle(list(storages)))
    parts += [struct.pack("<q", size // width) + bytes(size) for size in storages.values()]
    return b"".join(parts)


# Reading them ---------------------------------------------------------------------------------------------------------


def read_bytes(folder: Path, data: bytes, name: str = "model.safetensors") -> Checkpoint:
    """What is read of a file with these bytes."""
    (folder / name).write_bytes(data)
    return read(str(folder / name))


def said(folder: Path, data: bytes, name: str = "model.safetensors") -> str:
    """The one diagnostic about a file, without the path."""
    with pytest.raises(ArchError) as caught:
        read_bytes(folder, data, name)
    (found,) = caught.value.diagnostics
    assert found.code == "bad-checkpoint"
    return found.message.removeprefix(f"{folder / name}: ")


def shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    return {entry.name: entry.shape for entry in checkpoint.entries}


# GGUF -----------------------------------------------------------------------------------------------------------------

GGUF_TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144)}
GGUF_TYPES |= {"Q6_K": (14, 256, 210), "I32": (26, 1, 4)}
"""Some types of tensors: the number, and the elements and bytes of a block."""


def gguf_text(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value: Any) -> bytes:
    """A value of the metadata, after its type."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + gguf_text(value)
        case list():
            head = struct.pack("<IIQ", 9, 8 if isinstance(value[0], str) else 4, len(value))
            return head + b"".join(gguf_text(v) if isinstance(v, str) else struct.pack("<I", v) for v in value)
        case bytes():  # a type and a value
            return value
        case _:
            raise TypeError(value)


def gguf(
    tensors: Shapes, metadata: Mapping[str, Any] | None = None, types: Mapping[str, str] | None = None, version: int = 3
) -> bytes:
    """A GGUF file: tensors of zeros, one after the other; `types` by name, F32 without."""
    head, size = gguf_header(tensors, metadata, types, version)
    return head + bytes(size)


def gguf_header(
    tensors: Shapes, metadata: Mapping[str, Any] | None, types: Mapping[str, str] | None, version: int = 3
) -> tuple[bytes, int]:
    """The header of a GGUF file, and the bytes after it."""
    metadata = metadata or {}
    alignment = metadata.get("general.alignment", 32)
    infos, size = b"", 0
    for name, shape in tensors.items():
        number, block, width = GGUF_TYPES[(types or {}).get(name, "F32")]
        sizes = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        infos += gguf_text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", number, size)
        size += prod(shape) // block * width
        size += -size % alignment
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(gguf_text(key) + gguf_value(value) for key, value in metadata.items()) + infos
    return head + bytes(-len(head) % alignment), size


def mutated(data: bytes, source: random.Random, pieces: Sequence[bytes]) -> bytes:
    """A file with a few bytes changed, removed, moved, or added from `pieces`."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at, length = source.randrange(len(out) + 1), source.choice([1, 1, 2, 8, 50])
        match source.randrange(4):
            case 0:
                out[at : at + length] = source.randbytes(length)
            case 1:
                del out[at : at + length]
            case 2:
                out[at:at] = source.choice(pieces)
            case _:
                other = source.randrange(len(out) + 1)
                out[at:at] = out[other : other + length]
    return bytes(out)


PIECES = [b"{", b"]", b"-", b"9" * 30, b'"w"', b"\xff" * 8, b"R", bytes(8)]
