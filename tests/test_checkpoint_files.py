"""Files of tensors: what is read of them, and that no file, however made, brings about anything but a diagnostic."""

import contextlib
import io
import json
import os
import random
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
    Call,
    Name,
    Persistent,
    encode,
    header,
    pickle,
    safetensors,
    sizes,
    state,
    storage,
    tensor,
    torch_old,
    torch_zip,
    write,
    write_shards,
)

from archspec import ArchError
from archspec.formats.checkpoint import read
from archspec.formats.entries import Checkpoint
from archspec.formats.safetensors import DTYPES

SHAPES = {"b": (3,), "w": (2, 3), "scale": (), "none": (0, 4)}


def read_bytes(folder: Path, data: bytes, name: str = "model.safetensors") -> Checkpoint:
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


# safetensors ----------------------------------------------------------------------------------------------------------


def test_a_safetensors_file(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, safetensors({"__metadata__": {"format": "pt"}, **header(SHAPES, "BF16")}))
    assert shapes(found) == SHAPES
    assert [(e.dtype, e.elements, e.bytes) for e in found.entries] == [
        ("bfloat16", 3, 6),
        ("bfloat16", 6, 12),
        ("bfloat16", 1, 2),
        ("bfloat16", 0, 0),
    ]


def test_a_file_without_tensors(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, safetensors({})).entries == ()


def test_padding_and_types_of_less_than_a_byte(tmp_path: Path) -> None:
    text = json.dumps(header({"w": (4, 3)}, "F4")).encode() + b"   "
    (entry,) = read_bytes(tmp_path, safetensors(text, 6)).entries
    assert (entry.dtype, entry.elements, entry.bytes) == ("float4_e2m1fn", 12, 6)


def with_info(**fields: Any) -> bytes:
    """A file of a tensor `w`, whose entry in the header is changed."""
    return safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}}, 8)


BAD_HEADERS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no safetensors file: it ends before its header begins"),
    "seven bytes": (bytes(7), "is no safetensors file: it ends before its header begins"),
    "no header": (bytes(8), "is no safetensors file: its header does not begin with `{`"),
    "header beyond the end": (
        struct.pack("<Q", 100) + b"{}",
        "is cut short: a header of 100 bytes in a file of 10",
    ),
    "huge header": (
        struct.pack("<Q", 2**63) + b"{}",
        "is no safetensors file: a header of 9,223,372,036,854,775,808 bytes, where 100,000,000 are allowed",
    ),
    "no JSON": (safetensors(b"{nothing}", 0), "the header is no JSON"),
    "a list": (safetensors(b"[1]", 0), "its header does not begin with `{`"),
    "more than JSON": (safetensors(b"{}{}", 0), "the header is no JSON: Extra data"),
    "no UTF-8": (safetensors(b'{"\xff": 1}', 0), "the header is no UTF-8 text"),
    "twice": (
        safetensors(b'{"w": {"dtype": "F32"}, "w": {"dtype": "F32"}}', 0),
        "the header is no proper JSON: `w` is there twice",
    ),
    "twice inside": (
        safetensors(b'{"w": {"dtype": "F32", "dtype": "F16"}}', 0),
        "the header is no proper JSON: `dtype` is there twice",
    ),
    "deep": (safetensors(b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 0), "the header is nested too deeply"),
    "deep objects": (safetensors(b'{"w":' * 200_000 + b"1" + b"}" * 200_000, 0), "the header is nested too deeply"),
    "items": (safetensors(b'{"w":[' + b"1," * 4_000_000 + b"1]}", 0), "the header has more than 4,000,000 items"),
    "NaN": (safetensors(b'{"w": NaN}', 0), "the header is no proper JSON: NaN is no number"),
    "endless number": (
        safetensors(b'{"w": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 8]}}' % (b"9" * 5000), 8),
        "the header is no proper JSON",
    ),
    "no object": (safetensors(b'{"w": 3}', 0), "`w` lacks one of"),
    "no shape": (safetensors(b'{"w": {"dtype": "F32", "data_offsets": [0, 8]}}', 8), "`w` lacks one of"),
    "long name": (safetensors(header({"a." * 10_000: (1,)})), "has a name of 20,000 characters, where 10,000 are"),
    "half a pair": (safetensors(b'{"\\ud800": {}}', 0), "the name '\\ud800' is no text"),
    "metadata": (safetensors(b'{"__metadata__": {"a": 1}}', 0), "`__metadata__` is no mapping of strings to strings"),
    "metadata list": (safetensors(b'{"__metadata__": []}', 0), "`__metadata__` is no mapping of strings to strings"),
    "type": (with_info(dtype="F33"), "`w` is of a type that the format does not have: 'F33'"),
    "type of a type": (with_info(dtype=["F32"]), "`w` is of a type that the format does not have: ['F32']"),
    "negative": (with_info(shape=[-2]), "`w` has a shape that is none: [-2]"),
    "real": (with_info(shape=[2.0]), "`w` has a shape that is none: [2.0]"),
    "true": (with_info(shape=[True, 2]), "`w` has a shape that is none: [True, 2]"),
    "text": (with_info(shape="2"), "`w` has a shape that is none: '2'"),
    "overflow": (with_info(shape=[2**62, 2**62, 2**62]), "`w` takes up 8 bytes, and F32 of shape"),
    "wraps to two": (with_info(shape=[2**63 + 2]), "`w` has a shape that is none"),
    "rank": (with_info(shape=[1] * 65), "`w` has 65 dimensions, more than 64"),
    "three offsets": (with_info(data_offsets=[0, 4, 8]), "`w` has offsets that are none: [0, 4, 8]"),
    "backwards": (with_info(data_offsets=[8, 0]), "`w` has offsets that are none: [8, 0]"),
    "infinite": (with_info(data_offsets=[0, 1e400]), "the header is no proper JSON: Infinity is no number"),
    "another size": (with_info(data_offsets=[0, 4]), "`w` takes up 4 bytes, and F32 of shape [2] needs 8"),
    "half a byte": (with_info(dtype="F4", shape=[3], data_offsets=[0, 1]), "`w` takes up 1 bytes, and F4 of shape [3]"),
    "late start": (with_info(data_offsets=[4, 12]), "bytes 0 to 4 belong to no tensor"),
    "cut short": (safetensors(header({"w": (2,), "v": (3,)}), 19), "its tensors take up 20 bytes, of which 19"),
    "rest": (safetensors(header({"w": (2,)}), 9), "1 bytes at its end belong to no tensor"),
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_a_header_that_lies(tmp_path: Path, case: str) -> None:
    data, message = BAD_HEADERS[case]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, data)
    rendered = [d.render() for d in caught.value.diagnostics]
    assert {d.code for d in caught.value.diagnostics} == {"bad-checkpoint"}
    assert message in rendered[0], rendered
    assert len(rendered[0]) < 600 and rendered[0].replace("\n", "").isprintable()


def test_overlaps_and_gaps_are_named(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,), "c": (2,)})
    head["b"]["data_offsets"] = [4, 12]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, safetensors(head, 24))
    messages = [d.message.partition(": ")[2] for d in caught.value.diagnostics]
    assert messages == ["`b` begins at byte 4, within `a`", "bytes 12 to 16 belong to no tensor"]


def test_two_names_of_the_same_bytes_overlap(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,)})
    head["b"]["data_offsets"] = [0, 8]
    assert said(tmp_path, safetensors(head, 8)) == "`b` begins at byte 0, within `a`"


def test_of_many_like_faults_one_is_said_and_the_rest_counted(tmp_path: Path) -> None:
    head = {f"w.{i}": {"dtype": "Q8", "shape": [1], "data_offsets": [0, 1]} for i in range(500)}
    assert said(tmp_path, safetensors(head, 1)).endswith(": 'Q8' (and 499 more like it)")


def test_only_the_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    head = json.dumps(header({"w": (25_000_000_000,)})).encode()
    with open(path, "wb") as file:  # 100 GB, all but the header a hole
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + 100_000_000_000)
    tracemalloc.start()
    assert read(str(path)).entries[0].bytes == 100_000_000_000
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()


def test_types_are_those_of_the_format() -> None:
    assert len(set(DTYPES.values())) == len(DTYPES)


# torch.save -----------------------------------------------------------------------------------------------------------


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
    places = {e.name: e.place for e in read_bytes(tmp_path, make(value, {"0": 48}), "m.bin").entries}
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


def test_a_view_of_an_old_storage(tmp_path: Path) -> None:
    run = storage("0", 10, "FloatStorage", ("v", 4, 6))
    value = {"a": tensor(storage("0", 10, "FloatStorage", None), (4,)), "b": tensor(run, (6,))}
    found = read_bytes(tmp_path, torch_old(value, {"0": 40}), "m.bin")
    assert [(e.name, e.start, e.stop) for e in found.entries] == [("a", 0, 16), ("b", 16, 40)]


def test_a_tensor_that_repeats_itself_takes_up_its_elements_once(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, torch_zip({"a": tensor(storage("0", 3), (5, 3), 0, (0, 1))}, {"0": 12}), "m.bin")
    assert [(e.elements, e.bytes) for e in found.entries] == [(15, 12)]


@pytest.mark.parametrize("wrapper", ["state_dict", "model_state_dict", "model"])
def test_tensors_among_other_things(tmp_path: Path, wrapper: str) -> None:
    value = {"epoch": 3, "loss": 0.5, wrapper: {**state(SHAPES), "version": "1"}, "optimizer": {0: {"step": 1}}}
    found = read_bytes(tmp_path, torch_zip(value, sizes(SHAPES)), "m.ckpt")
    assert shapes(found) == SHAPES
    assert found.notes == (
        f"the tensors are those under `{wrapper}` in the file",
        "passed over, as they are no tensors: `version`",
    )


RUN = storage("0", 6)
RAN: list[str] = []


NOT_OLD = {"empty", "no stop"}  # there the next pickle follows at once


def evil(module: str, name: str, *arguments: Any) -> bytes:
    return pickle({"w": Call(Name(module, name), arguments)})


BAD_PICKLES: dict[str, tuple[Any, str]] = {
    "system": (evil("os", "system", "echo ran > ran"), "names `os.system`, which no mapping"),
    "posix": (evil("posix", "system", "echo ran > ran"), "names `posix.system`, which no mapping"),
    "eval": (evil("builtins", "eval", "open('ran', 'w')"), "names `builtins.eval`, which no mapping"),
    "exec": (evil("__builtin__", "exec", "open('ran', 'w')"), "names `__builtin__.exec`, which no mapping"),
    "ours": (evil("test_checkpoint_files", "RAN.append", "1"), "names `test_checkpoint_files.RAN.append`"),
    "torch": (evil("torch.hub", "load", "a", "b"), "names `torch.hub.load`, which no mapping"),
    "stack global": (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x01a\x85R.", "names `posix.system`"),
    "instance": (b"\x80\x02(S'ls'\nios\nsystem\n.", "operation 0x53"),
    "inst": (b"\x80\x02(ios\nsystem\n.", "operation 0x69"),
    "newobj": (pickle(encode(Name("torch", "Size")) + b")\x81"), "operation 0x81"),
    "extension": (b"\x80\x02\x82\x01.", "operation 0x82"),
    "call of a value": (pickle({"w": encode("x") + encode((1,)) + b"R"}), "calls what is no function"),
    "call of a type": (evil("torch", "float32", 1), "calls `torch.float32` with arguments that it does not take"),
    "a whole module": (evil("mine", "Model"), "names `mine.Model`"),
    "empty": (b"", "has a pickle that is cut short"),
    "no stop": (pickle(1)[:-1], "has a pickle that is cut short"),
    "nothing to take": (b"\x80\x02.", "takes what is not there"),
    "no mark": (b"\x80\x02t.", "takes what is not there"),
    "below the mark": (b"\x80\x02K\x01(0.", "takes what is not there"),
    "no memo": (b"\x80\x02h\x05.", "takes what is not there"),
    "memo of nothing": (b"\x80\x02q\x05.", "keeps what is not there"),
    "append to nothing": (b"\x80\x02K\x01K\x02a.", "adds to what is no list and no mapping"),
    "state of a tuple": (pickle(encode((1,)) + encode({}) + b"b"), "adds to what is no list and no mapping"),
    "odd": (b"\x80\x02}(K\x01u.", "a key that has no value"),
    "twice": (b"\x80\x02}(" + (encode("w") + encode(tensor(RUN, (6,)))) * 2 + b"u.", "has `w` twice"),
    "huge text": (b"\x80\x02X\xff\xff\xff\xff.", "has a pickle of more than 33,554,432 bytes"),
    "huger text": (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "has a pickle of more than 33,554,432 bytes"),
    "no text": (b"\x80\x02U\x01\xff.", "a name that is no UTF-8 text"),
    "endless name": (b"\x80\x02c" + b"a" * 2000 + b"\n.", "a name that does not end"),
    "names of no text": (b"\x80\x04K\x01K\x02\x93.", "names what is no name"),
    "a number": (pickle(3), "holds no mapping of names to tensors"),
    "no tensors": (pickle({"a": 1}), "holds no mapping of names to tensors"),
    "keys": (pickle({1: tensor(RUN, (6,)), "w": tensor(RUN, (6,))}), "has keys that are no names"),
    "wrapped list": (pickle({"state_dict": [1]}), "holds no mapping of names to tensors"),
    "items": (pickle(Call(ORDERED, ([["a"]],))), "an item that is none"),
    "items twice": (pickle(Call(ORDERED, ([["a", 1], ["a", 2]],))), "has `a` twice"),
    "storage": (pickle({"w": tensor(Persistent(("storage",)), (6,))}), "a storage that is none"),
    "storage of words": (
        pickle({"w": tensor(Persistent(("storage", "FloatStorage", "0", "cpu", 6)), (6,))}),
        "a storage that is none",
    ),
    "kind of storage": (
        pickle({"w": tensor(Persistent(("storage", Name("torch", "float32"), "0", "cpu", 6)), (6,))}),
        "a storage of a type that is none, `torch.float32`",
    ),
    "negative length": (pickle({"w": tensor(storage("0", -6), (6,))}), "a storage that is none"),
    "module": (pickle({"w": Persistent(("module", "x", "y", "z", 1))}), "a storage that is none"),
    "view": (pickle({"w": tensor(storage("0", 6, "FloatStorage", ("v", -4, 6)), (2,))}), "a view of a storage"),
    "two sizes": (
        pickle({"a": tensor(storage("0", 6), (6,)), "b": tensor(storage("0", 60), (60,))}),
        "says two different sizes of storage `0`",
    ),
    "shape": (pickle({"w": tensor(RUN, (-6,), 0, (1,))}), "shape, strides or place in the file are none"),
    "shape of reals": (pickle({"w": tensor(RUN, (6.0,), 0, (1,))}), "shape, strides or place"),  # type: ignore[arg-type]
    "shape of truth": (pickle({"w": tensor(RUN, (True,), 0, (1,))}), "shape, strides or place"),
    "long name": (pickle({"w" * 20_000: tensor(RUN, (6,))}), "has a name of 20,000 characters"),
    "strides": (pickle({"w": tensor(RUN, (6,), 0, (1, 1))}), "another number of strides than dimensions"),
    "negative stride": (pickle({"w": tensor(RUN, (6,), 5, (-1,))}), "shape, strides or place"),
    "rank": (pickle({"w": tensor(RUN, (1,) * 65)}), "shape, strides or place"),
    "beyond": (pickle({"w": tensor(RUN, (7,))}), "reaches beyond the end of its storage, `0`"),
    "start beyond": (pickle({"w": tensor(RUN, (1,), 6)}), "reaches beyond the end"),
    "stride beyond": (pickle({"w": tensor(RUN, (2,), 0, (2**62,))}), "reaches beyond the end"),
    "no type": (pickle({"w": tensor(storage("0", 6, "UntypedStorage"), (6,))}), "a tensor without a type"),
    "no storage": (pickle({"w": tensor(RUN.identifier, (6,))}), "shape, strides or place"),  # type: ignore[arg-type]
    "few arguments": (evil("torch._utils", "_rebuild_tensor_v2", 1, 2), "with arguments that it does not take"),
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
        assert message in said(tmp_path, whole, "m.bin")
    assert not (tmp_path / "ran").exists() and RAN == []


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


GOOD = torch_zip(state(SHAPES), sizes(SHAPES))
ZIPS: dict[str, tuple[bytes, str]] = {
    "cut short": (GOOD[:-40], "is a damaged or shortened zip archive"),
    "begins only": (b"PK\x03\x04", "is a damaged or shortened zip archive"),
    "no pickle": (archive(("a/b", b"")), "it has no single `data.pkl`"),
    "two pickles": (archive(("a/data.pkl", b""), ("b/data.pkl", b"")), "it has no single `data.pkl`"),
    "no storage": (torch_zip(state(SHAPES), {"0": 12}), "lacks storage `1`"),
    "storage of another size": (torch_zip({"w": tensor(RUN, (6,))}, {"0": 20}), "has 20 bytes in storage `0`, not 24"),
    "compressed storage": (
        torch_zip({"w": tensor(RUN, (6,))}, {"0": 24}, zipfile.ZIP_DEFLATED),
        "has storage `0` compressed, which `torch.save` never does",
    ),
    "a bomb": (
        archive(("a/data.pkl", bytes(40_000_000)), compression=zipfile.ZIP_DEFLATED),
        "has a pickle of 40,000,000 bytes, where 33,554,432 are allowed",
    ),
    "flipped": (GOOD.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9", 1), "is a damaged or shortened zip archive"),
}


@pytest.mark.parametrize("case", ZIPS)
def test_an_archive_that_lies(tmp_path: Path, case: str) -> None:
    data, message = ZIPS[case]
    assert message in said(tmp_path, data, "m.bin")


def test_members_of_one_name(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = archive(("a/data.pkl", b""), ("a/data.pkl", pickle({})))
    assert said(tmp_path, data, "m.bin") == "is an archive with two members of one name"


def test_members_that_overlap(tmp_path: Path) -> None:
    value = {"a": tensor(storage("0", 300), (300,)), "b": tensor(storage("1", 300), (300,))}
    data = bytearray(torch_zip(value, {"0": 1200, "1": 1200}))
    entries = [match.start() for match in re.finditer(b"PK\x01\x02", data)]
    first, second = (at for at in entries if b"archive/data/" in data[at : at + 60])
    data[second + 42 : second + 46] = data[first + 42 : first + 46]  # where the local header is
    assert "overlaps what follows it" in said(tmp_path, bytes(data), "m.bin")


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
    assert said(tmp_path, good[:-1], "m.bin").startswith("is cut short: its storages take up")
    assert said(tmp_path, good + b"x", "m.bin") == "has 1 bytes at its end that belong to no storage"
    assert said(tmp_path, good[:-28], "m.bin") == "is cut short: storages are missing at its end"
    length = good[:-32] + struct.pack("<q", 7) + bytes(24)
    assert said(tmp_path, length, "m.bin").startswith("has another number of elements in storage `0`")
    assert said(tmp_path, torch_old({"w": tensor(RUN, (6,))}, {}), "m.bin").startswith("has other storages")
    assert said(tmp_path, torch_old({}, {"0": 4}), "m.bin").startswith("has other storages")
    assert said(tmp_path, pickle(5) + pickle(1001), "m.bin") == "is a pickle, but none that `torch.save` wrote"
    assert said(tmp_path, pickle(MAGIC) + pickle(7), "m.bin") == "is a pickle, but none that `torch.save` wrote"
    swapped = good.replace(encode("little_endian") + b"\x88", encode("little_endian") + b"\x89")
    assert said(tmp_path, swapped, "m.bin") == "was written on a machine with another order of bytes"


def test_a_pickle_of_many_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.formats.pickled.MOST_OPERATIONS", 10_000)
    data = torch_zip(b"\x80\x02" + b"}" * 20_000 + b".", {})
    assert said(tmp_path, data, "m.bin") == "has a pickle of more than 10,000 operations"


def test_structures_that_grow_when_looked_at_are_not_looked_at(tmp_path: Path) -> None:
    grow = b"\x80\x02" + encode(()) + b"".join(b"q\x01h\x01\x86" for _ in range(5_000)) + b"."
    assert said(tmp_path, torch_zip(grow, {}), "m.bin") == "holds no mapping of names to tensors"
    key = b"\x80\x02}(" + grow[2:-1] + b"K\x01" + encode("w") + encode(tensor(RUN, (6,))) + b"u."
    assert said(tmp_path, torch_zip(key, {"0": 24}), "m.bin") == "has keys that are no names"
    endless = b"\x80\x02}q\x01(" + encode("state_dict") + b"h\x01u."
    assert said(tmp_path, torch_zip(endless, {}), "m.bin") == "holds no mapping of names to tensors"


# Other files ----------------------------------------------------------------------------------------------------------

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 440473133\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (POINTER, "is a pointer of Git LFS, and not the file it stands for"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"GGUF\x03\0\0\0", "is a GGUF file, which is not read here"),
        (b"\x89HDF\r\n\x1a\n", "is an HDF5 file, which is not read here"),
        (b"hello", "is neither a safetensors file nor one that `torch.save` wrote"),
        (b"", "is neither a safetensors file nor one that `torch.save` wrote"),
    ],
)
def test_what_is_no_checkpoint(tmp_path: Path, data: bytes, message: str) -> None:
    assert said(tmp_path, data, "pytorch_model.bin") == message
    if message.startswith("is a "):
        assert said(tmp_path, data, "model.safetensors") == message


def test_safetensors_by_another_name(tmp_path: Path) -> None:
    assert shapes(read_bytes(tmp_path, safetensors(header(SHAPES)), "weights")) == SHAPES


def code(path: Path | str) -> str:
    with pytest.raises(ArchError) as caught:
        read(str(path))
    (found,) = caught.value.diagnostics
    return found.code


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    assert code(tmp_path / "nowhere") == "missing-file"
    assert code(tmp_path / "nowhere.index.json") == "missing-file"
    assert code("") == "missing-file"
    assert code("a\0b") == "unreadable"
    assert code(tmp_path / ("x" * 300)) == "unreadable"
    (tmp_path / "folder.index.json").mkdir()
    assert code(tmp_path / "folder.index.json") == "missing-file"
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.safetensors")
        os.mkfifo(tmp_path / "pipe.index.json")
        assert code(tmp_path / "pipe.safetensors") == code(tmp_path / "pipe.index.json") == "unreadable"
        assert code("/dev/zero") == "unreadable"


# Folders and shards ---------------------------------------------------------------------------------------------------


def test_a_folder_is_looked_through_as_transformers_does(tmp_path: Path) -> None:
    def chosen() -> str:
        return os.path.basename(read(str(tmp_path)).label)

    assert code(tmp_path) == "missing-file"
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "custom.bin").write_bytes(GOOD)
    assert chosen() == "custom.bin"
    write(tmp_path / "custom.safetensors", SHAPES)
    assert code(tmp_path) == "usage"
    (tmp_path / "pytorch_model.bin").write_bytes(GOOD)
    assert chosen() == "pytorch_model.bin"
    write_shards(tmp_path, {"one.safetensors": SHAPES})
    assert chosen() == "model.safetensors.index.json"
    write(tmp_path / "model.safetensors", SHAPES)
    assert chosen() == "model.safetensors"


def test_a_sharded_checkpoint(tmp_path: Path) -> None:
    path = write_shards(tmp_path, {"m-1.safetensors": {"a": (2,), "b": (3,)}, "m-2.safetensors": {"c": (4, 5)}})
    for given in (path, tmp_path):
        found = read(str(given))
        assert shapes(found) == {"a": (2,), "b": (3,), "c": (4, 5)}
        assert (found.files, found.total_size) == (2, 100)


def test_shards_may_be_links_as_in_the_cache_of_hugging_face(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots"
    blobs.mkdir(), snapshot.mkdir()
    path = write_shards(snapshot, {"m-1.safetensors": {"a": (2,)}})
    (snapshot / "m-1.safetensors").rename(blobs / "abc")
    (snapshot / "m-1.safetensors").symlink_to("../blobs/abc")
    assert shapes(read(str(path))) == {"a": (2,)}


SHARDS = {"m-1.safetensors": {"a": (2,), "b": (3,)}, "m-2.safetensors": {"c": (4,)}}
ONE, TWO = SHARDS
INDEXES: dict[str, tuple[Any, str]] = {
    "absent": ({"a": ONE, "b": ONE, "c": TWO, "d": TWO}, f"places `d` in {TWO}, which does not have it"),
    "elsewhere": ({"a": ONE, "b": TWO, "c": TWO}, f"places `b` in {TWO}, and it is in {ONE}"),
    "unlisted": ({"a": ONE, "c": TWO}, f"`b` is in {ONE}, and the index does not have it"),
    "up": ({"a": "../m.safetensors"}, "places `a` in '../m.safetensors', which is no file in the folder"),
    "root": ({"a": "/etc/passwd"}, "places `a` in '/etc/passwd', which is no file in the folder"),
    "drive": ({"a": "C:\\m"}, "which is no file in the folder of the index"),
    "back": ({"a": "..\\m"}, "which is no file in the folder of the index"),
    "here": ({"a": "./m"}, "which is no file in the folder of the index"),
    "itself": ({"a": ""}, "which is no file in the folder of the index"),
    "a list": ({"a": [ONE]}, "which is no file in the folder of the index"),
    "a zero byte": ({"a": "a\0"}, "which is no file in the folder of the index"),
    "no map": ([ONE], "is no index of shards: it has no `weight_map`"),
    "many": ({str(i): str(i) for i in range(10_001)}, "has more than 10,000 shards"),
}


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_that_lies(tmp_path: Path, case: str) -> None:
    weight_map, message = INDEXES[case]
    path = write_shards(tmp_path, SHARDS, weight_map=weight_map)
    with pytest.raises(ArchError) as caught:
        read(str(path))
    assert message in caught.value.diagnostics[0].message
    assert {d.code for d in caught.value.diagnostics} == {"bad-checkpoint"}


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    path = write_shards(tmp_path, {ONE: {"a": (2,)}, TWO: {"a": (2,), "b": (1,)}}, weight_map={"a": ONE, "b": TWO})
    with pytest.raises(ArchError, match=f"`a` is in two shards, {ONE} and {TWO}"):
        read(str(path))


def test_shards_that_are_missing(tmp_path: Path) -> None:
    path = write_shards(tmp_path, SHARDS)
    (tmp_path / TWO).unlink()
    with pytest.raises(ArchError, match=rf"missing-file\]: there is no file {TWO}, where .* places 1 tensor$"):
        read(str(path))
    (tmp_path / ONE).unlink()
    with pytest.raises(ArchError, match=rf"there is no file {ONE} \(and 1 more like it\), where .* places 3 tensors$"):
        read(str(path))


@pytest.mark.parametrize("total", ["many", -1, 1.5, [], True, 1e400])
def test_a_size_that_is_none(tmp_path: Path, total: Any) -> None:
    path = write_shards(tmp_path, SHARDS, metadata={"total_size": total})
    assert code(path) == "bad-checkpoint"


def test_indexes_of_other_programs(tmp_path: Path) -> None:
    for index in ({}, {"metadata": {"total_size": 36.0}}, {"metadata": None}, {"more": [1]}):
        assert len(read(str(write_shards(tmp_path, SHARDS, **index))).entries) == 3


# Anything at all ------------------------------------------------------------------------------------------------------


def mutated(data: bytes, source: random.Random) -> bytes:
    """A file with a few bytes changed, removed, added or moved."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at, length = source.randrange(len(out) + 1), source.choice([1, 1, 2, 8, 50])
        match source.randrange(4):
            case 0:
                out[at : at + length] = source.randbytes(length)
            case 1:
                del out[at : at + length]
            case 2:
                out[at:at] = source.choice([b"{", b"]", b"-", b"9" * 30, b'"w"', b"\xff" * 8, b"R", bytes(8)])
            case _:
                other = source.randrange(len(out) + 1)
                out[at:at] = out[other : other + length]
    return bytes(out)


@pytest.mark.parametrize("name", ["m.safetensors", "m.bin", "old.bin", "model.safetensors.index.json"])
def test_no_change_of_a_file_yields_anything_but_a_diagnostic(tmp_path: Path, name: str) -> None:
    index = write_shards(tmp_path, SHARDS)
    good = {
        "m.safetensors": safetensors(header(SHAPES)),
        "m.bin": GOOD,
        "old.bin": torch_old(state(SHAPES), sizes(SHAPES)),
        "model.safetensors.index.json": index.read_bytes(),
    }[name]
    source = random.Random(7)
    refused = 0
    for _ in range(400):
        try:
            read_bytes(tmp_path, mutated(good, source), name)
        except ArchError as error:
            refused += 1
            assert all(d.code in ("bad-checkpoint", "missing-file", "unreadable") for d in error.diagnostics)
            assert error.diagnostics[0].render()
    assert refused > 100


@pytest.mark.parametrize("name", ["m.safetensors", "m.bin", "old.bin"])
def test_no_part_of_a_file_is_taken_for_the_whole(tmp_path: Path, name: str) -> None:
    whole = {
        "m.safetensors": safetensors(header(SHAPES)),
        "m.bin": GOOD,
        "old.bin": torch_old(state(SHAPES), sizes(SHAPES)),
    }[name]
    for end in range(0, len(whole), max(1, len(whole) // 200)):
        with pytest.raises(ArchError):
            read_bytes(tmp_path, whole[:end], name)
    with contextlib.suppress(ArchError):
        assert shapes(read_bytes(tmp_path, whole + b" ", name)) == SHAPES
