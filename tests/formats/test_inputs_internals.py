"""Steps of the code that the tests of inputs cannot reach through public names."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from test_inputs import Object

import archspec
from archspec import Source
from archspec.compiler.resolve.files import Library
from archspec.core.diagnostics import Report
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import find_family, known_types, read_family
from archspec.formats.strict_json import read_json
from archspec.pipeline import streams
from archspec.pipeline.files import parse_cached

SMALL: dict[str, Any] = {"model_type": "bert", "num_hidden_layers": 1, "vocab_size": 99}


TOTAL = 8_150_784
"""The parameters of SMALL."""


with_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")


def error(spec: Any) -> archspec.Diagnostic:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(spec)
    return caught.value.diagnostics[0]


@with_pipes
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WRITER_TIMEOUT", 0.05)
    os.mkfifo(tmp_path / "config.json")
    found = error(tmp_path / "config.json")
    assert (found.code, "no process writes" in found.message) == ("unreadable", True)


@with_pipes
def test_a_slow_writer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WRITER_TIMEOUT", 0.01)
    os.mkfifo(tmp_path / "slow")
    writer = subprocess.Popen(["bash", "-c", f"exec > {tmp_path}/slow; sleep 0.3; echo '{json.dumps(SMALL)}'"])
    reader = os.open(tmp_path / "slow", os.O_RDONLY)  # waits until the other process has opened it
    assert archspec.load(f"/dev/fd/{reader}").params.total == TOTAL
    os.close(reader)
    assert writer.wait(10) == 0


def test_data_that_no_configuration_has() -> None:
    circle: dict[str, Any] = {"model_type": "bert"}
    circle["a"] = circle
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    for wrong in (
        circle,
        {"a": deep},
        {"a": {1, 2}},
        {"model_type": "bert", "vocab_size": float("nan")},
        {(1, 2): 3},
        Object([1]),
        {"a": b"x"},
    ):
        assert error(wrong).code == "wrong-kind"
    found = error(Object([1])).message
    assert found == "configuration cannot be written as JSON: `to_dict()` returned list"
    assert error({"model_type": "bert", "a": "x" * MAX_CONFIGURATION_BYTES}).code == "budget"
    assert error({"model_type": "bert", 1: 2, "1": 3}).code == "duplicate-name"
    assert error({"model_type": "bert", "vocab_sise": 3}).code == "unknown-name"
    assert error(3).message == "expected a model, found an object of type int"


def family_without_type(name: str) -> tuple[str | None, list[archspec.Diagnostic]]:
    source, report = Source("config.json", json.dumps({"architectures": [name]})), Report()
    root = read_json(source)
    assert isinstance(root.plain, dict)
    family = find_family(root, root.plain, None, Library(str(ROOT / "specs"), parse_cached), report)
    return family.type if family is not None else None, report.diagnostics


def types() -> list[object]:
    """The known types: every day, some whose architectures are theirs alone, and some that share them."""
    everyday = ("bert", "camembert", "clip_text_model", "deepseek_v3", "llama", "roberta", "wav2vec2", "xlm-roberta")
    return [t if t in everyday else pytest.param(t, marks=pytest.mark.slow) for t in known_types(str(ROOT / "specs"))]


@pytest.mark.parametrize("type", types())
def test_a_missing_type_is_that_of_the_architecture(type: str) -> None:
    """Where an architecture is one of several types, the error names them all."""
    name = [*read_family(str(ROOT / "specs"), type, {}).architectures][-1]
    found, wrong = family_without_type(name)
    if found is None:
        assert wrong[0].code == "missing-argument" and f"`{type}`" in wrong[0].message
    else:
        assert (found, wrong) == (type, [])
