"""Files, indexes and folders of tensors: no path, and no change of a file, brings about anything but a diagnostic."""

import contextlib
import os
import random
from pathlib import Path
from typing import Any

import pytest
from checkpoints import (
    PIECES,
    SHAPES,
    header,
    mutated,
    read,
    read_bytes,
    safetensors,
    said,
    shapes,
    sizes,
    state,
    torch_old,
    torch_zip,
    write,
    write_shards,
)

from archspec import ArchError

GOOD = torch_zip(state(SHAPES), sizes(SHAPES))


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 440473133\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (POINTER, "this is a Git LFS pointer, not the checkpoint itself"),
        (b"<!DOCTYPE html><html>", "this is a web page, not a checkpoint"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 files are not supported"),
        (b"hello", "unknown format: expected a safetensors or GGUF file, or one written by `torch.save`"),
        (b"", "unknown format: expected a safetensors or GGUF file, or one written by `torch.save`"),
    ],
)
def test_what_is_no_checkpoint(tmp_path: Path, data: bytes, message: str) -> None:
    assert said(tmp_path, data, "pytorch_model.bin") == message
    if not message.startswith("unknown format"):
        assert said(tmp_path, data, "model.safetensors") == message


def test_names_in_any_script(tmp_path: Path) -> None:
    named = {"größe.重み": (2, 3)}
    for data in (
        safetensors(header(named)),
        torch_zip(state(named), sizes(named)),
        torch_old(state(named), sizes(named)),
    ):
        assert shapes(read_bytes(tmp_path, data, "weights")) == named


def test_safetensors_by_another_name(tmp_path: Path) -> None:
    assert shapes(read_bytes(tmp_path, safetensors(header(SHAPES)), "weights")) == SHAPES


@pytest.mark.parametrize("make", [torch_zip, torch_old])
def test_the_extension_of_safetensors_rules_out_a_pickle(tmp_path: Path, make: Any) -> None:
    data = make(state(SHAPES), sizes(SHAPES))
    assert shapes(read_bytes(tmp_path, data, "weights")) == SHAPES
    assert "header" in said(tmp_path, data, "model.safetensors")


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


def test_folders_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert code(tmp_path) == "unreadable"


def test_indexes_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_shards(tmp_path, {"m-1.safetensors": {"a": (2,)}})
    size = path.stat().st_size
    monkeypatch.setattr("archspec.formats.checkpoints.checkpoint.MAX_INDEX_BYTES", size)
    assert shapes(read(str(path))) == {"a": (2,)}
    monkeypatch.setattr("archspec.formats.checkpoints.checkpoint.MAX_INDEX_BYTES", size - 1)
    with pytest.raises(ArchError, match=f"index of {size} bytes exceeds the limit of {size - 1}"):
        read(str(path))
    path.write_text("[1]")
    with pytest.raises(ArchError, match="is not a JSON object"):
        read(str(path))
    path.write_text('{\n "weight_map": {\n  "a": "m-1.safetensors",\n }\n}')
    with pytest.raises(ArchError, match=f"cannot read the index: trailing comma before `}}`\n *--> {path}:3:25\n"):
        read(str(path))


def test_a_sharded_checkpoint(tmp_path: Path) -> None:
    path = write_shards(tmp_path, {"m-1.safetensors": {"a": (2,), "b": (3,)}, "m-2.safetensors": {"c": (4, 5)}})
    for given in (path, tmp_path):
        found = read(str(given))
        assert shapes(found) == {"a": (2,), "b": (3,), "c": (4, 5)}
        assert (found.files, found.total_size) == (2, 100)


def test_the_only_index_of_a_directory(tmp_path: Path) -> None:
    names = {"net-1.safetensors": {"a": (2,)}, "net-2.safetensors": {"b": (3,)}}
    path = write_shards(tmp_path, names)
    path.rename(tmp_path / "net.safetensors.index.json")
    found = read(str(tmp_path))
    assert (shapes(found), found.files) == ({"a": (2,), "b": (3,)}, 2)
    (tmp_path / "other.bin.index.json").write_text("{}")
    with pytest.raises(ArchError) as caught:
        read(str(tmp_path))
    (only,) = caught.value.diagnostics
    assert only.message == f"4 checkpoints in {tmp_path}"
    assert only.help == (
        "name one: net-1.safetensors, net-2.safetensors, net.safetensors.index.json, other.bin.index.json"
    )
    (tmp_path / "more.pt").write_bytes(b"")
    shown = r"more\.pt, net-1\.safetensors, net-2\.safetensors, net\.safetensors\.index\.json, \.\.\."
    with pytest.raises(ArchError, match=rf"5 checkpoints in .*\nhelp: name one: {shown}$"):
        read(str(tmp_path))


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
    "absent": ({"a": ONE, "b": ONE, "c": TWO, "d": TWO}, f"expected `d` in {TWO}, found no such tensor"),
    "elsewhere": ({"a": ONE, "b": TWO, "c": TWO}, f"expected `b` in {TWO}, found it in {ONE}"),
    "unlisted": ({"a": ONE, "c": TWO}, f"`b` is in {ONE} but not in the index"),
    "up": (
        {"a": "../m.safetensors"},
        "invalid shard of `a`: '../m.safetensors' is not a file in the directory of the index",
    ),
    "root": ({"a": "/etc/passwd"}, "invalid shard of `a`: '/etc/passwd' is not a file in the directory of the index"),
    "drive": ({"a": "C:\\m"}, "is not a file in the directory of the index"),
    "back inside": ({"a": "m\\..\\..\\m"}, "is not a file in the directory of the index"),
    "back": ({"a": "..\\m"}, "is not a file in the directory of the index"),
    "here": ({"a": "./m"}, "is not a file in the directory of the index"),
    "itself": ({"a": ""}, "is not a file in the directory of the index"),
    "a list": ({"a": [ONE]}, "is not a file in the directory of the index"),
    "a zero byte": ({"a": "a\0"}, "is not a file in the directory of the index"),
    "no map": ([ONE], "not an index of shards: missing `weight_map`"),
    "many": ({str(i): str(i) for i in range(10_001)}, "too many shards: the limit is 10,000"),
}


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_that_lies(tmp_path: Path, case: str) -> None:
    weight_map, message = INDEXES[case]
    path = write_shards(tmp_path, SHARDS, weight_map=weight_map)
    with pytest.raises(ArchError) as caught:
        read(str(path))
    assert caught.value.diagnostics[0].message.endswith(message)
    assert {d.code for d in caught.value.diagnostics} == {"bad-checkpoint"}


def test_as_many_shards_as_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_shards(tmp_path, SHARDS)
    size = path.stat().st_size
    for module, name, limit, message in (
        ("shards", "MAX_SHARDS", 2, "too many shards: the limit is 1"),
        ("checkpoint", "MAX_INDEX_BYTES", size, f"index of {size:,} bytes exceeds the limit of {size - 1:,}"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"archspec.formats.checkpoints.{module}.{name}", limit)
            assert read(str(path)).files == 2
            patch.setattr(f"archspec.formats.checkpoints.{module}.{name}", limit - 1)
            with pytest.raises(ArchError, match=f"{message}$"):
                read(str(path))


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    path = write_shards(tmp_path, {ONE: {"a": (2,)}, TWO: {"a": (2,), "b": (1,)}}, weight_map={"a": ONE, "b": TWO})
    with pytest.raises(ArchError, match=f"`a` is in two shards, {ONE} and {TWO}"):
        read(str(path))


def test_shards_that_are_missing(tmp_path: Path) -> None:
    path = write_shards(tmp_path, SHARDS)
    (tmp_path / TWO).unlink()
    with pytest.raises(ArchError, match=rf"missing-file\]: file not found: {TWO}, where .* places 1 tensor$"):
        read(str(path))
    (tmp_path / ONE).unlink()
    with pytest.raises(ArchError, match=rf"file not found: {ONE} \(and 1 more like it\), where .* places 3 tensors$"):
        read(str(path))


@pytest.mark.parametrize("total", ["many", -1, 1.5, [], True, 1e400])
def test_a_size_that_is_none(tmp_path: Path, total: Any) -> None:
    path = write_shards(tmp_path, SHARDS, metadata={"total_size": total})
    assert code(path) == "bad-checkpoint"


def test_indexes_of_other_programs(tmp_path: Path) -> None:
    for index in (
        {},
        {"metadata": {"total_size": 36.0}},
        {"metadata": {"total_size": 0}},
        {"metadata": None},
        {"more": [1]},
    ):
        assert len(read(str(write_shards(tmp_path, SHARDS, **index))).entries) == 3


# Anything at all ------------------------------------------------------------------------------------------------------


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
    for _ in range(250):
        try:
            read_bytes(tmp_path, mutated(good, source, PIECES), name)
        except ArchError as error:
            refused += 1
            assert all(d.code in ("bad-checkpoint", "missing-file", "unreadable") for d in error.diagnostics)
            assert error.diagnostics[0].render()
    assert refused > 60


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
