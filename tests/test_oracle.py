"""Every tensor of the bundled models, against tables made with other software."""

import json
from pathlib import Path
from typing import Any

import pytest

import archspec

TABLES = sorted((Path(__file__).parent / "oracle" / "tensors").glob("*.json"))

Table = tuple[dict[str, Any], archspec.Model]


@pytest.fixture(scope="module", params=TABLES, ids=lambda path: path.stem)
def table(request: pytest.FixtureRequest) -> Table:
    """A table, and the model it describes."""
    expected = json.loads(request.param.read_text())
    return expected, archspec.load(expected["name"])


def test_names_shapes_ties_and_trainability_are_those_of_the_real_model(table: Table) -> None:
    expected, model = table
    ours = {t.name: (list(t.shape), t.tied_to, t.trainable) for t in model.tensors}
    theirs = {name: (shape, tied_to, trainable) for name, shape, tied_to, trainable in expected["tensors"]}
    assert ours == theirs
    assert len(model.tensors) == len(expected["tensors"])


def test_totals_and_buffers_are_those_of_the_real_model(table: Table) -> None:
    expected, model = table
    assert model.params.total == expected["total"]
    assert model.params.trainable == expected["trainable"]
    assert model.params.frozen == expected["total"] - expected["trainable"]
    persistent = {name: tuple(shape) for name, shape, kept in expected["buffers"] if kept}
    assert {b.name: b.shape for b in model.buffers} == persistent


def test_sizes_add_up(table: Table) -> None:
    _, model = table
    assert sum(t.params for t in model.tensors) == model.params.total
    assert sum(t.params for t in model.tensors if t.trainable) == model.params.trainable
    by_name = {t.name: t for t in model.tensors}
    for tensor in model.tensors:
        assert tensor.params == (0 if tensor.tied_to else tensor.size)
        if tensor.tied_to:
            assert by_name[tensor.tied_to].tied_to is None
            assert by_name[tensor.tied_to].shape == tensor.shape
