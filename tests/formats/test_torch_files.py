"""What `torch.save` writes: what is read of it, that it is not believed, and that nothing in it is run."""

import io
import re
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from checkpoints import (
    MAGIC,
    ORDERED,
    SHAPES,
    Call,
    Name,
    Persistent,
    encode,
    pickle,
    read,
    read_bytes,
    said,
    shapes,
    sizes,
    state,
    storage,
    tensor,
    torch_old,
    torch_zip,
)

from archspec import ArchError


@pytest.mark.parametrize("make", [torch_zip, torch_old])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights"])
def test_a_torch_file(tmp_path: Path, make: Any, name: str) -> None:
    found = read_bytes(tmp_path, make(state(SHAPES), sizes(SHAPES)), name)
    assert shapes(found) == SHAPES
    assert {e.dtype for e in found.entries} == {"float32"} and found.notes == ()


@pytest.mark.parametrize("make", [torch_zip, torch_old])
def test_two_names_of_a_tensor_are_one_place_and_others_are_not(tmp_path: Path, make: Any) -> None:
    run = storage("0", 12)
    value = {
        "a": tensor(run, (2, 3)),
        "again": tensor(run, (2, 3)),
        "rest": tensor(run, (2, 3), 6),
        "turned": tensor(run, (3, 2), 0, (1, 3)),
        "row": tensor(run, (1, 3), 0, (12, 1)),
    }
    entries = read_bytes(tmp_path, make(value, {"0": 48}), "m.bin").entries
    strides = {"a": None, "again": None, "rest": None, "turned": (1, 3), "row": None}
    assert {e.name: e.strides for e in entries} == strides
    places = {e.name: e.storage_key for e in entries}
    assert places["a"] == places["again"]
    assert len(set(places.values())) == 4


def test_other_ways_to_write_a_tensor(tmp_path: Path) -> None:
    plain = tensor(storage("0", 6), (2, 3))
    parameter = Call(Name("torch._utils", "_rebuild_parameter"), (plain, True, Call(ORDERED, ())))
    first = Call(Name("torch._utils", "_rebuild_tensor"), plain.arguments[:4])
    third = tensor(storage("1", 6, "UntypedStorage"), (6,), version="v3")
    third = Call(third.function, (*third.arguments, Name("torch", "float8_e4m3fn")))
    kind = Call(
        Name("torch._tensor", "_rebuild_from_type_v2"),
        (plain.function, Name("torch.nn.parameter", "Parameter"), plain.arguments, {}),
    )
    size = Call(plain.function, (plain.arguments[0], 0, Call(Name("torch", "Size"), ((2, 3),)), *plain.arguments[3:]))
    value = Call(ORDERED, ([["a", plain], ["b", parameter], ["c", first], ["d", third], ["e", kind], ["f", size]],))
    built = encode(value) + encode({"_metadata": {"": {"version": 1}}}) + b"b"
    found = read_bytes(tmp_path, torch_zip(b"\x80\x02" + built + b".", {"0": 24, "1": 6}), "m.bin")
    assert shapes(found) == {"a": (2, 3), "b": (2, 3), "c": (2, 3), "d": (6,), "e": (2, 3), "f": (2, 3)}
    assert [e.dtype for e in found.entries if e.name == "d"] == ["float8_e4m3fn"]


STORAGES = {
    "DoubleStorage": ("float64", 8),
    "FloatStorage": ("float32", 4),
    "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2),
    "LongStorage": ("int64", 8),
    "IntStorage": ("int32", 4),
    "ShortStorage": ("int16", 2),
    "CharStorage": ("int8", 1),
    "ByteStorage": ("uint8", 1),
    "BoolStorage": ("bool", 1),
    "ComplexDoubleStorage": ("complex128", 16),
    "ComplexFloatStorage": ("complex64", 8),
}


@pytest.mark.parametrize("kind", STORAGES)
def test_the_storage_has_the_element_type(tmp_path: Path, kind: str) -> None:
    dtype, width = STORAGES[kind]
    value = {"a": tensor(storage("0", 6, kind), (2, 3))}
    (entry,) = read_bytes(tmp_path, torch_zip(value, {"0": 6 * width}), "m.bin").entries
    assert (entry.dtype, entry.bytes) == (dtype, 6 * width)


@pytest.mark.parametrize(
    ("dtype", "width"), [("float16", 2), ("int64", 8), ("bool", 1), ("complex32", 4), ("uint16", 2)]
)
def test_a_tensor_may_have_the_element_type(tmp_path: Path, dtype: str, width: int) -> None:
    untyped = tensor(storage("0", 6 * width, "UntypedStorage"), (2, 3), version="v3")
    value = {"a": Call(untyped.function, (*untyped.arguments, Name("torch", dtype)))}
    (entry,) = read_bytes(tmp_path, torch_zip(value, {"0": 6 * width}), "m.bin").entries
    assert (entry.dtype, entry.shape, entry.bytes) == (dtype, (2, 3), 6 * width)


def test_a_view_of_an_old_storage(tmp_path: Path) -> None:
    run = storage("0", 10, "FloatStorage", ("v", 4, 6))
    value = {"a": tensor(storage("0", 10, "FloatStorage", None), (4,)), "b": tensor(run, (6,))}
    found = read_bytes(tmp_path, torch_old(value, {"0": 40}), "m.bin")
    assert [(e.name, e.start, e.stop) for e in found.entries] == [("a", 0, 16), ("b", 16, 40)]


def test_a_tensor_ends_behind_its_last_element(tmp_path: Path) -> None:
    value = {"a": tensor(storage("0", 8), (2, 2), 1, (4, 1)), "b": tensor(storage("0", 8), (), 0, ())}
    found = read_bytes(tmp_path, torch_zip(value, {"0": 32}), "m.bin")
    assert [(e.name, e.start, e.stop, e.bytes) for e in found.entries] == [("a", 4, 28, 16), ("b", 0, 4, 4)]


def test_a_tensor_that_repeats_itself_takes_up_its_elements_once(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, torch_zip({"a": tensor(storage("0", 3), (5, 3), 0, (0, 1))}, {"0": 12}), "m.bin")
    assert [(e.elements, e.bytes) for e in found.entries] == [(15, 12)]


@pytest.mark.parametrize("wrapper", ["state_dict", "model_state_dict", "model"])
def test_tensors_among_other_things(tmp_path: Path, wrapper: str) -> None:
    cpu = Call(Name("torch", "device"), ("cpu",))
    kept = {**state(SHAPES), "version": "1"}
    value = {"epoch": 3, "loss": 0.5, "device": cpu, wrapper: kept, "optimizer": {0: {"step": 1}}}
    found = read_bytes(tmp_path, torch_zip(value, sizes(SHAPES)), "m.ckpt")
    assert shapes(found) == SHAPES
    assert found.notes == (
        f"the tensors are under the key `{wrapper}`",
        "ignored, because they are not tensors: `version`",
    )


@pytest.mark.parametrize(
    ("count", "named"),
    [(5, "`o0`, `o1`, `o2`, `o3`, `o4`"), (6, "`o0`, `o1`, `o2`, `o3`, `o4` and 1 more")],
)
def test_a_few_other_things_are_named(tmp_path: Path, count: int, named: str) -> None:
    value = {**state(SHAPES), **{f"o{i}": i for i in range(count)}}
    found = read_bytes(tmp_path, torch_zip(value, sizes(SHAPES)), "m.bin")
    assert found.notes == (f"ignored, because they are not tensors: {named}",)


RUN = storage("0", 6)
RAN: list[str] = []


NOT_OLD = {"empty", "no stop"}  # there the next pickle follows at once


def evil(module: str, name: str, *arguments: Any) -> bytes:
    return pickle({"w": Call(Name(module, name), arguments)})


BAD_PICKLES: dict[str, tuple[Any, str]] = {
    "system": (evil("os", "system", "echo ran > ran"), "refers to `os.system`, which is not allowed; nothing was run"),
    "posix": (
        evil("posix", "system", "echo ran > ran"),
        "refers to `posix.system`, which is not allowed; nothing was run",
    ),
    "eval": (
        evil("builtins", "eval", "open('ran', 'w')"),
        "refers to `builtins.eval`, which is not allowed; nothing was run",
    ),
    "exec": (
        evil("__builtin__", "exec", "open('ran', 'w')"),
        "refers to `__builtin__.exec`, which is not allowed; nothing was run",
    ),
    "ours": (
        evil("test_torch_files", "RAN.append", "1"),
        "refers to `test_torch_files.RAN.append`, which is not allowed; nothing was run",
    ),
    "torch": (evil("torch.hub", "load", "a", "b"), "refers to `torch.hub.load`, which is not allowed; nothing was run"),
    "stack global": (
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x01a\x85R.",
        "refers to `posix.system`, which is not allowed; nothing was run",
    ),
    "instance": (b"\x80\x02(S'ls'\nios\nsystem\n.", "opcode 0x53"),
    "inst": (b"\x80\x02(ios\nsystem\n.", "opcode 0x69"),
    "newobj": (pickle(encode(Name("torch", "Size")) + b")\x81"), "opcode 0x81"),
    "extension": (b"\x80\x02\x82\x01.", "opcode 0x82"),
    "call of a value": (
        pickle({"w": encode("x") + encode((1,)) + b"R"}),
        "expected a global to call and a tuple of arguments",
    ),
    "call of a type": (evil("torch", "float32", 1), "invalid arguments in call to `torch.float32`"),
    "call of a type with sizes": (evil("torch", "float32", (1,)), "invalid arguments in call to `torch.float32`"),
    **{
        f"class of {what}": (
            evil("torch._tensor", "_rebuild_from_type_v2", *arguments),
            "invalid arguments in call to `torch._tensor._rebuild_from_type_v2`",
        )
        for what, arguments in (
            ("a number", (Name("torch._utils", "_rebuild_tensor"), None, 5)),
            ("no function", (5, None, (1,))),
            ("itself", (Name("torch._tensor", "_rebuild_from_type_v2"), None, (1,))),
            ("nothing", (Name("torch", "Size"), None)),
        )
    },
    "size of two": (evil("torch", "Size", (1,), (2,)), "invalid arguments in call to `torch.Size`"),
    "size of a number": (evil("torch", "Size", 1), "invalid arguments in call to `torch.Size`"),
    "a whole module": (evil("mine", "Model"), "refers to `mine.Model`, which is not allowed; nothing was run"),
    "empty": (b"", "pickle is truncated"),
    "no stop": (pickle(1)[:-1], "pickle is truncated"),
    "nothing to take": (b"\x80\x02.", "stack underflow"),
    "no mark": (b"\x80\x02t.", "missing mark"),
    "below the mark": (b"\x80\x02K\x01(0.", "stack underflow"),
    "no memo": (b"\x80\x02h\x05.", "undefined memo entry"),
    "memo of nothing": (b"\x80\x02q\x05.", "stack underflow"),
    "append to nothing": (b"\x80\x02K\x01K\x02a.", "expected a list on the stack"),
    "state of a tuple": (pickle(encode((1,)) + encode({}) + b"b"), "expected a dict on the stack"),
    "odd": (b"\x80\x02}(K\x01u.", "key without a value"),
    "twice": (b"\x80\x02}(" + (encode("w") + encode(tensor(RUN, (6,)))) * 2 + b"u.", "`w` appears more than once"),
    "huge text": (b"\x80\x02X\xff\xff\xff\xff.", "pickle exceeds the limit of 33,554,432 bytes"),
    "huger text": (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "pickle exceeds the limit of 33,554,432 bytes"),
    "no text": (b"\x80\x02U\x01\xff.", "string is not valid UTF-8"),
    "endless name": (b"\x80\x02c" + b"a" * 2000 + b"\n.", "unterminated name"),
    "names of no text": (b"\x80\x04K\x01K\x02\x93.", "expected strings as the name of a global"),
    "module of no text": (b"\x80\x04K\x01\x8c\x01a\x93.", "expected strings as the name of a global"),
    "name of no text": (b"\x80\x04\x8c\x01aK\x01\x93.", "expected strings as the name of a global"),
    "a number": (pickle(3), "expected a mapping of names to tensors"),
    "no tensors": (pickle({"a": 1}), "expected a mapping of names to tensors"),
    "keys": (pickle({1: tensor(RUN, (6,)), "w": tensor(RUN, (6,))}), "expected strings as the keys of tensors"),
    "wrapped list": (pickle({"state_dict": [1]}), "expected a mapping of names to tensors"),
    "items": (pickle(Call(ORDERED, ([["a"]],))), "invalid item in a mapping"),
    "items twice": (pickle(Call(ORDERED, ([["a", 1], ["a", 2]],))), "`a` appears more than once"),
    "storage": (pickle({"w": tensor(Persistent(("storage",)), (6,))}), "invalid storage record"),
    "storage of words": (
        pickle({"w": tensor(Persistent(("storage", "FloatStorage", "0", "cpu", 6)), (6,))}),
        "invalid storage record",
    ),
    "kind of storage": (
        pickle({"w": tensor(Persistent(("storage", Name("torch", "float32"), "0", "cpu", 6)), (6,))}),
        "unknown storage type `torch.float32`",
    ),
    "negative length": (pickle({"w": tensor(storage("0", -6), (6,))}), "invalid storage record"),
    "module": (pickle({"w": Persistent(("module", "x", "y", "z", 1))}), "invalid storage record"),
    "view": (pickle({"w": tensor(storage("0", 6, "FloatStorage", ("v", -4, 6)), (2,))}), "invalid view of a storage"),
    "two sizes": (
        pickle({"a": tensor(storage("0", 6), (6,)), "b": tensor(storage("0", 60), (60,))}),
        "conflicting sizes of storage `0`",
    ),
    "shape": (pickle({"w": tensor(RUN, (-6,), 0, (1,))}), "invalid shape, strides or offset of a tensor"),
    "shape of reals": (pickle({"w": tensor(RUN, (6.0,), 0, (1,))}), "invalid shape, strides or offset of a tensor"),  # type: ignore[arg-type]
    "shape of truth": (pickle({"w": tensor(RUN, (True,), 0, (1,))}), "invalid shape, strides or offset of a tensor"),
    "long name": (
        pickle({"w" * 20_000: tensor(RUN, (6,))}),
        "tensor name of 20,000 characters exceeds the limit of 10,000",
    ),
    "strides": (pickle({"w": tensor(RUN, (6,), 0, (1, 1))}), "a tensor has 1 axes but 2 strides"),
    "negative stride": (pickle({"w": tensor(RUN, (6,), 5, (-1,))}), "invalid shape, strides or offset of a tensor"),
    "rank": (pickle({"w": tensor(RUN, (1,) * 65)}), "invalid shape, strides or offset of a tensor"),
    "beyond": (pickle({"w": tensor(RUN, (7,))}), "extends past the end of storage `0`"),
    "start beyond": (pickle({"w": tensor(RUN, (1,), 6)}), "extends past the end of storage `0`"),
    "stride beyond": (pickle({"w": tensor(RUN, (2,), 0, (2**62,))}), "extends past the end of storage `0`"),
    "no type": (pickle({"w": tensor(storage("0", 6, "UntypedStorage"), (6,))}), "a tensor has no element type"),
    "no storage": (pickle({"w": tensor(RUN.identifier, (6,))}), "invalid shape, strides or offset of a tensor"),  # type: ignore[arg-type]
    "parameter of nothing": (
        evil("torch._utils", "_rebuild_parameter"),
        "invalid arguments in call to `torch._utils._rebuild_parameter`",
    ),
    "parameter of a number": (
        evil("torch._utils", "_rebuild_parameter", 1),
        "invalid arguments in call to `torch._utils._rebuild_parameter`",
    ),
    "tensor of a tensor": (
        pickle({"w": tensor(tensor(RUN, (6,)), (6,))}),  # type: ignore[arg-type]
        "invalid shape, strides or offset of a tensor",
    ),
    "few arguments": (
        evil("torch._utils", "_rebuild_tensor_v2", 1, 2),
        "invalid arguments in call to `torch._utils._rebuild_tensor_v2`",
    ),
}


@pytest.mark.parametrize("make", [torch_zip, torch_old])
@pytest.mark.parametrize("case", BAD_PICKLES)
def test_a_pickle_that_lies_or_wants_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, make: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    data, message = BAD_PICKLES[case]
    whole = make(data, {"0": 24} if b"storage" in data else {})
    if make is torch_zip or case not in NOT_OLD:
        assert said(tmp_path, whole, "m.bin").endswith(message)
    assert not (tmp_path / "ran").exists() and RAN == []


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


GOOD = torch_zip(state(SHAPES), sizes(SHAPES))
ZIPS: dict[str, tuple[bytes, str]] = {
    "cut short": (GOOD[:-40], "invalid zip archive: File is not a zip file"),
    "begins only": (b"PK\x03\x04", "invalid zip archive: File is not a zip file"),
    "no pickle": (archive(("a/b", b"")), "expected one `data.pkl`, found 0"),
    "two pickles": (archive(("a/data.pkl", b""), ("b/data.pkl", b"")), "expected one `data.pkl`, found 2"),
    "no storage": (torch_zip(state(SHAPES), {"0": 12}), "missing storage `1`"),
    "storage of another size": (
        torch_zip({"w": tensor(RUN, (6,))}, {"0": 20}),
        "storage `0`: expected 24 bytes, found 20",
    ),
    "compressed storage": (
        torch_zip({"w": tensor(RUN, (6,))}, {"0": 24}, zipfile.ZIP_DEFLATED),
        "expected uncompressed data in storage `0`",
    ),
    "a bomb": (
        archive(("a/data.pkl", bytes(40_000_000)), compression=zipfile.ZIP_DEFLATED),
        "pickle of 40,000,000 bytes exceeds the limit of 33,554,432",
    ),
    "flipped": (
        GOOD.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9", 1),
        "invalid zip archive: Bad CRC-32 for file 'archive/data.pkl'",
    ),
}


@pytest.mark.parametrize("case", ZIPS)
def test_an_archive_that_lies(tmp_path: Path, case: str) -> None:
    data, message = ZIPS[case]
    assert said(tmp_path, data, "m.bin").endswith(message)


def test_members_of_one_name(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = archive(("a/data.pkl", b""), ("a/data.pkl", pickle({})))
    assert said(tmp_path, data, "m.bin") == "duplicate member name in the zip archive"


def test_members_that_overlap(tmp_path: Path) -> None:
    value = {"a": tensor(storage("0", 300), (300,)), "b": tensor(storage("1", 300), (300,))}
    data = bytearray(torch_zip(value, {"0": 1200, "1": 1200}))
    entries = [match.start() for match in re.finditer(b"PK\x01\x02", data)]
    first, second = (at for at in entries if b"archive/data/" in data[at : at + 60])
    data[second + 42 : second + 46] = data[first + 42 : first + 46]  # where the local header is
    assert said(tmp_path, bytes(data), "m.bin").endswith("overlaps the data that follows it")


def with_large_end(data: bytes, **changed: int) -> bytes:
    """The archive with the records that large ones end with, of which some fields are changed."""
    end = data.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HII", data, end + 10)
    fields = {"length": 44, "disk": 0, "first": 0, "here": count, "count": count, "size": size, "start": start}
    record = struct.pack("<4sQ4xIIQQQQ", b"PK\x06\x06", *(fields | changed).values())
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, changed.get("place", start + size), 1)
    return data[:end] + record + locator + data[end:]


@pytest.mark.parametrize("field", ["length", "disk", "here", "count"])
def test_a_large_archive_with_a_damaged_end(tmp_path: Path, field: str) -> None:
    assert shapes(read_bytes(tmp_path, with_large_end(GOOD), "m.bin")) == SHAPES
    assert said(tmp_path, with_large_end(GOOD, **{field: 9}), "m.bin").endswith("the end of the archive is damaged")


def test_a_bomb_that_lies_about_its_size(tmp_path: Path) -> None:
    data = bytearray(archive(("a/data.pkl", bytes(40_000_000)), compression=zipfile.ZIP_DEFLATED))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 100)
    tracemalloc.start()
    assert said(tmp_path, bytes(data), "m.bin")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_an_old_file_that_lies(tmp_path: Path) -> None:
    good = torch_old({"w": tensor(RUN, (6,))}, {"0": 24})
    assert shapes(read_bytes(tmp_path, good, "m.bin")) == {"w": (6,)}
    assert said(tmp_path, good[:-1], "m.bin").startswith("file is truncated: expected")
    assert said(tmp_path, good + b"x", "m.bin") == "found 1 byte after the last storage"
    assert said(tmp_path, good[:-28], "m.bin") == "file is truncated: storages are missing at the end"
    length = good[:-32] + struct.pack("<q", 7) + bytes(24)
    assert said(tmp_path, length, "m.bin").startswith("storage `0`: expected 6 elements, found 7")
    assert said(tmp_path, torch_old({"w": tensor(RUN, (6,))}, {}), "m.bin").startswith(
        "the list of storages does not match"
    )
    assert said(tmp_path, torch_old({}, {"0": 4}), "m.bin").startswith("the list of storages does not match")
    assert said(tmp_path, pickle(5) + pickle(1001), "m.bin") == "this pickle was not written by `torch.save`"
    assert said(tmp_path, pickle(MAGIC) + pickle(7), "m.bin") == "this pickle was not written by `torch.save`"
    swapped = good.replace(encode("little_endian") + b"\x88", encode("little_endian") + b"\x89")
    assert said(tmp_path, swapped, "m.bin") == "unsupported byte order: expected a little-endian file"


@pytest.mark.parametrize("keys", [("0",), [0], ["0", 1]])
def test_an_old_file_without_a_list_of_storages(tmp_path: Path, keys: Any) -> None:
    root = pickle({"w": tensor(RUN, (6,))})
    data = b"".join([pickle(MAGIC), pickle(1001), pickle({"little_endian": True}), root, pickle(keys)])
    assert said(tmp_path, data, "m.bin") == "missing the list of storages"


def test_a_pickle_of_many_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.formats.checkpoints.pickled.MAX_OPERATIONS", 10_000)
    data = torch_zip(b"\x80\x02" + b"}" * 20_000 + b".", {})
    assert said(tmp_path, data, "m.bin") == "too many pickle operations: the limit is 10,000"
    monkeypatch.setattr("archspec.formats.checkpoints.pickled.MAX_OPERATIONS", 6)
    within = torch_zip(b"\x80\x02" + b"}0" * 2 + b"}.", {})  # the first of its 7 operations is counted, too
    assert said(tmp_path, within, "m.bin") == "too many pickle operations: the limit is 6"
    monkeypatch.setattr("archspec.formats.checkpoints.pickled.MAX_OPERATIONS", 7)
    assert read_bytes(tmp_path, within, "m.bin").entries == ()


def test_structures_that_grow_when_looked_at_are_not_looked_at(tmp_path: Path) -> None:
    grow = b"\x80\x02" + encode(()) + b"".join(b"q\x01h\x01\x86" for _ in range(5_000)) + b"."
    assert said(tmp_path, torch_zip(grow, {}), "m.bin") == "expected a mapping of names to tensors"
    key = b"\x80\x02}(" + grow[2:-1] + b"K\x01" + encode("w") + encode(tensor(RUN, (6,))) + b"u."
    assert said(tmp_path, torch_zip(key, {"0": 24}), "m.bin") == "expected strings as the keys of tensors"
    endless = b"\x80\x02}q\x01(" + encode("state_dict") + b"h\x01u."
    assert said(tmp_path, torch_zip(endless, {}), "m.bin") == "expected a mapping of names to tensors"


LOCAL_HEADER = {
    "signature": (0, 4),
    "flags": (6, 8),
    "compression": (8, 10),
    "length of the name": (26, 28),
    "length of the extra field": (28, 30),
    "name": (30, 40),
}
"""The bytes of a header before a member that decide which data are its own."""


@pytest.mark.parametrize("field", LOCAL_HEADER)
@pytest.mark.parametrize("writer", ["torch", "zipfile"])
def test_damaged_headers_in_an_archive_are_refused(tmp_path: Path, writer: str, field: str) -> None:
    value = {"a": tensor(storage("0", 3), (3,)), "b": tensor(storage("1", 3), (3,))}
    data = torch_zip(value, {"0": 12, "1": 12})
    if writer == "torch":
        torch = pytest.importorskip("torch")
        stream = io.BytesIO()
        torch.save({"a": torch.ones(3), "b": torch.ones(3)}, stream)
        data = stream.getvalue()
    assert len(read_bytes(tmp_path, data, "m.bin").entries) == 2
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        starts = [info.header_offset for info in archive.infolist()]
    for start in starts:
        for at in range(*LOCAL_HEADER[field]):
            for changed in (0, 1, 0x55, 0xFF):
                damaged = bytearray(data)
                damaged[start + at] = changed
                if damaged != data:
                    said(tmp_path, bytes(damaged), "m.bin")


def test_a_pickle_of_brackets_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.formats.checkpoints.pickled.MAX_PENDING", 1_000)
    data = archive(("a/data.pkl", b"\x80\x02" + b"]" * 1_001 + b"."))
    assert said(tmp_path, data, "m.bin") == "too many values on the stack of a pickle: the limit is 1,000"


@pytest.mark.slow
def test_no_damage_that_pytorch_refuses_is_accepted(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.bin"
    torch.save({"a": torch.zeros(2, 3), "b": torch.zeros(4)}, path)
    data = path.read_bytes()
    expected = read(str(path)).entries
    accepted = 0
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            found = read(str(path)).entries
        except ArchError:
            continue
        if found == expected:
            assert {name: tensor.shape for name, tensor in torch.load(path).items()} == {"a": (2, 3), "b": (4,)}, at
            accepted += 1
    assert accepted
