"""Files, indexes and folders of tensors: no path, and no change of a file, brings about anything but a diagnostic."""

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from checkpoints import (
    PIECES,
    SHAPES,
    header,
    mutated,
    read_bytes,
    safetensors,
    said,
    shapes,
    sizes,
    state,
    torch_old,
    torch_zip,
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


# Folders and shards ---------------------------------------------------------------------------------------------------


SHARDS = {"m-1.safetensors": {"a": (2,), "b": (3,)}, "m-2.safetensors": {"c": (4,)}}


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
