"""Every tensor of the bundled models, against tables made with other software.

The tables in `tensors` are of live models. Where published checkpoints have other names, or other tensors for the same
numbers, the bundled models have those of the checkpoint; `checkpoints` has a table of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from paths import ORACLE
from small import live_names

import archspec

TABLES = sorted((ORACLE / "tensors").glob("*.json"))
CHECKPOINTS = sorted((ORACLE / "checkpoints").glob("*.json"))

pytestmark = pytest.mark.sampled(40)


def live(expected: dict[str, Any]) -> archspec.Model:
    """The bundled model with the tensors of the live one: joined where that joins what checkpoints store one by one."""
    model = archspec.load(expected["name"])
    if expected.get("checkpoint_names_differ") and "joined" in model.hyperparameters:
        return archspec.load(expected["name"], joined=not model.hyperparameters["joined"])
    return model


Table = tuple[dict[str, Any], archspec.Model]


@pytest.fixture(scope="module", params=TABLES, ids=lambda path: path.stem)
def table(request: pytest.FixtureRequest) -> Table:
    """A table, and the model it describes."""
    expected = json.loads(request.param.read_text())
    return expected, live(expected)


def test_names_shapes_ties_and_trainability_are_those_of_the_real_model(table: Table) -> None:
    expected, model = table
    names = live_names(model)
    ours = {names[t.name]: (list(t.shape), t.tied_to and names[t.tied_to], t.trainable) for t in model.tensors}
    theirs = {name: (shape, tied_to, trainable) for name, shape, tied_to, trainable in expected["tensors"]}
    assert ours == theirs
    assert len(model.tensors) == len(expected["tensors"])


def test_totals_and_buffers_are_those_of_the_real_model(table: Table) -> None:
    expected, model = table
    assert model.params.total == expected["total"]
    assert model.params.trainable == expected["trainable"]
    assert model.params.frozen == expected["total"] - expected["trainable"]
    persistent = {name: tuple(shape) for name, shape, kept in expected["buffers"] if kept}
    names = live_names(model)
    assert {names[b.name]: b.shape for b in model.buffers} == persistent


def test_every_table_of_a_checkpoint_is_of_a_model_whose_names_differ() -> None:
    differ = {path.name for path in TABLES if json.loads(path.read_text()).get("checkpoint_names_differ")}
    assert {path.name for path in CHECKPOINTS} == differ


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda p: p.stem)
def test_names_and_shapes_are_those_of_the_published_checkpoint(path: Path) -> None:
    expected = json.loads(path.read_text())
    model = archspec.load(expected["name"])
    stored = {name: tuple(shape) for name, shape in expected["tensors"]}
    ours = {t.name: t.shape for t in (*model.tensors, *model.buffers)}
    other_names = {t.name for t in model.tensors if t.tied_to}
    assert {name: shape for name, shape in ours.items() if name in stored or name not in other_names} == stored
    assert model.params.total == json.loads((ORACLE / "tensors" / path.name).read_text())["total"]


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
