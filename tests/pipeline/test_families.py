"""Records of model types: the tensors of live models, and what these compute, without `transformers`."""

from typing import Any

import numpy as np
import pytest
from recorded_families import read_record, records, sample, weights
from reference import evaluate_model
from small import live_names

import archspec

pytestmark = pytest.mark.sampled(20)

Record = tuple[dict[str, Any], archspec.Model]


@pytest.fixture(scope="module", params=records())
def recorded(request: pytest.FixtureRequest) -> Record:
    """A record, and the model of its configuration."""
    record = read_record(request.param)
    return record, archspec.load(record["config"], **record["overrides"])


def test_tensors_are_those_recorded(recorded: Record) -> None:
    record, model = recorded
    names = live_names(model)
    ours = {(names[t.name], t.shape, t.trainable) for t in model.tensors}
    assert ours == {(name, tuple(shape), trained) for name, shape, _, trained in record["tensors"]}
    assert {(names[b.name], b.shape) for b in model.buffers} == {(n, tuple(s)) for n, s in record["buffers"]}
    theirs = {(name, first or name) for name, _, first, _ in record["tensors"]}
    same = dict(theirs)
    for tensor in model.tensors:
        assert same[names[tensor.name]] == same[names[tensor.tied_to or tensor.name]]
    assert sum(t.tied_to is not None for t in model.tensors) == sum(name != first for name, first in theirs)


def test_outputs_are_those_recorded(recorded: Record) -> None:
    record, model = recorded
    names = live_names(model)
    first = {name: other or name for name, _, other, _ in record["tensors"]}
    stored = {t.name: weights(first[names[t.name]], t.shape) for t in model.tensors}
    stored |= {b.name: weights(names[b.name], b.shape, buffer=True) for b in model.buffers}
    inputs = {name: np.array(value) for name, value in record["inputs"].items()}
    outputs = evaluate_model(model, {name: inputs.get(name) for name in model.inputs}, stored).outputs
    for name, expected in record["outputs"].items():
        found = sample(outputs[name])
        assert found["shape"] == expected["shape"]
        np.testing.assert_allclose(found["numbers"], expected["numbers"], rtol=1e-6, atol=1e-6)
