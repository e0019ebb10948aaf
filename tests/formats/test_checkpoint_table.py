"""Checkpoints in place of models: their tensors counted and compared."""

from pathlib import Path

import pytest
from checkpoints import header, safetensors, sizes, state, torch_zip, write, write_shards
from small import load_table

import archspec
from archspec.testing import main

SMALL = {"model_type": "bert", "num_hidden_layers": 11, "hidden_size": 24, "vocab_size": 9, "intermediate_size": 8}
MODEL = archspec.load(SMALL)
SHAPES = {tensor.name: tensor.shape for tensor in MODEL.tensors}


def test_the_tensors_of_a_checkpoint(tmp_path: Path) -> None:
    halves = dict(list(SHAPES.items())[:90]), dict(list(SHAPES.items())[90:])
    torch_file = tmp_path / "model.pt"
    torch_file.write_bytes(torch_zip(state(SHAPES), sizes(SHAPES)))
    (tmp_path / "shards").mkdir()
    for path in (
        write(tmp_path / "model.safetensors", SHAPES),
        torch_file,
        write_shards(tmp_path / "shards", {f"{i}.safetensors": half for i, half in enumerate(halves)}),
    ):
        table = load_table(path)[0]
        assert table.params == MODEL.params and table.is_consistent()
        assert {tensor.name: tensor.shape for tensor in table.tensors} == SHAPES
        compared = archspec.compare(path, SMALL)
        assert [model.params.total for model in compared.models] == [MODEL.params.total] * 2


def test_it_is_printed_as_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "model.safetensors", dict(sorted(SHAPES.items()))))
    assert main(["count", path]) == 0
    said = capsys.readouterr().out
    assert "encoder.layer.*" in said and "11 x" in said
    assert f"{MODEL.params.total:,} parameters" in said and "does not specify which are parameters" in said
    for by in ("tensor", "layer", "block", "role"):
        for format in ("table", "json", "csv"):
            assert main(["count", path, "--by", by, "--format", format]) == 0
    assert main(["count", path, "--exclude", "*.bias"]) == 0


def test_what_is_not_counted_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = header({"layer.qweight": (4, 6), "ids": (5,)}, "I32")
    start = head["ids"]["data_offsets"][1]
    for name, shape in {
        "norm.running_mean": 3,
        "norm.running_var": 3,
        "norm.weight": 3,
        "other.running_var": 2,
    }.items():
        head[name] = {"dtype": "F32", "shape": [shape], "data_offsets": [start, start + 4 * shape]}
        start += 4 * shape
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(head))
    assert main(["count", str(path)]) == 0
    said = capsys.readouterr().out
    assert "5 parameters in 2 tensors" in said and "not counted: 4 buffers" in said
    assert "int32 29 elements, float32 6 elements" in said


def test_one_tensor_with_two_names_is_counted_once(tmp_path: Path) -> None:
    value = state({"a.weight": (3, 4)})
    value["b.weight"] = value["a.weight"]
    path = tmp_path / "model.bin"
    path.write_bytes(torch_zip(value, {"0": 48}))
    table = load_table(str(path))[0]
    assert (table.params.total, table.tensors[1].tied_to) == (12, "a.weight")


def test_a_checkpoint_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "model.safetensors", SHAPES))
    for command in (["cost", path], ["graph", path], ["build", path], ["diff", path, path], ["explain", path, "1"]):
        assert main(command) == 2
        assert "it has tensors, but no computation" in capsys.readouterr().err
    assert main(["count", path, "--set", "layers=2"]) == 2
    assert "has no hyperparameters" in capsys.readouterr().err
    assert main(["count", str(tmp_path / "missing.safetensors")]) == 2
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    assert main(["count", path]) == 2


def test_two_checkpoints_are_verified_against_each_other(tmp_path: Path) -> None:
    one = write(tmp_path / "one.safetensors", SHAPES)
    other = write(tmp_path / "other.safetensors", {f"bert.{name}": shape for name, shape in SHAPES.items()})
    assert archspec.verify(str(one), other).is_exact
    assert not archspec.verify(str(one), write(other, {"a": (2,)})).is_exact
