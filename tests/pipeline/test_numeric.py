"""The bundled specs compute what the real models compute: tiny models of each family against recorded outputs.

`oracle/numeric/FAMILY` holds weights, inputs and outputs of a model made with other software in float32, and the
largest difference that float64 makes to the outputs. Run in float64, a spec must differ from the record by that figure
itself: to 1e-6 where the other software kept norms, angles, states or softmax in float32 (`PARTLY_FLOAT32`), else to
rounding.
"""

from pathlib import Path

import numpy as np
import pytest
from recorded import PARTS, SEQUENCES, TINY, WHOLE, Case, hidden_states, load, record, recorded_names
from reference import Array, Result, evaluate, evaluate_model
from small import live_names

import archspec
from archspec.ir.module import iter_tensors
from archspec.pipeline.model import get_compilation


def run(case: Case, inputs: dict[str, Array], weights: dict[str, Array]) -> Result:
    model = load(case)
    own = {name: weights[live] for name, live in recorded_names(case, model).items() if live in weights}
    if "decoder_input_ids" in inputs:  # recorded without a mask: none of it is padding
        inputs = {"decoder_attention_mask": np.ones_like(inputs["decoder_input_ids"]), **inputs}
    if "input_ids" in inputs:  # recorded without types: all are 0
        inputs = {"token_type_ids": np.zeros_like(inputs["input_ids"]), **inputs}
    body = get_compilation(model).body
    inputs = {**case.absent, **inputs}
    return evaluate(body, {name: inputs[name] for name, _ in body.inputs}, own)


_RESULTS: dict[str, Result] = {}


def run_as_recorded(case: Case) -> Result:
    """What a case computes from the recorded inputs, which several tests look at."""
    if str(case) not in _RESULTS:
        expected = record(case.family)
        _RESULTS[str(case)] = run(case, expected.inputs, expected.weights)
    return _RESULTS[str(case)]


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_every_recorded_output_is_computed(case: Case) -> None:
    expected = record(case.family)
    result = run_as_recorded(case)
    found = expected.differences({**result.outputs, **hidden_states(case, result.trace)})
    scale = expected.meta["f64_max_abs_diff"]
    assert set(found) == set(expected.outputs)
    assert all(difference <= 3 * scale for difference in found.values())
    assert expected.is_scale(max(found.values()), case.rounding)


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_tensors_are_those_recorded(case: Case) -> None:
    expected = record(case.family)
    model = load(case)
    names = recorded_names(case, model)
    counted = {names[t.name]: t.shape for t in (*model.tensors, *model.buffers) if not getattr(t, "tied_to", None)}
    assert counted == {name: value.shape for name, value in expected.weights.items()}
    assert {names[t.name]: names[t.tied_to] for t in model.tensors if t.tied_to} == expected.meta["tied"]
    assert model.params.total == expected.meta["params"]


@pytest.mark.parametrize("case", PARTS, ids=str)
def test_hidden_states_without_the_recorded_heads(case: Case) -> None:
    expected = record(case.family)
    result = run_as_recorded(case)
    states = hidden_states(case, result.trace)
    found = expected.differences(states)
    if "logits" in result.outputs:
        found |= expected.differences({"prediction_logits": result.outputs["logits"]})
    else:
        assert np.array_equal(result.outputs["last_hidden_state"], list(states.values())[-1])
    assert all(difference <= 3 * expected.meta["f64_max_abs_diff"] for difference in found.values())


EXPERTS = {"mixtral": ("w1", "w3", "w2"), "qwen3_moe": ("gate_proj", "up_proj", "down_proj")}
"""The matrices of an expert stored by itself: of the gate, of its other input, of its output."""


@pytest.mark.parametrize("family", EXPERTS)
def test_experts_one_by_one_compute_what_joined_ones_do(family: str) -> None:
    """As published; the records are of models that join them."""
    case, expected = next(case for case in WHOLE if case.family == family), record(family)
    apart = archspec.load(case.spec, **{**case.overrides, "joined": False})
    names = live_names(load(case))
    weights = {name: expected.weights[live] for name, live in names.items() if live in expected.weights}
    for name in [name for name in weights if name.endswith((".gate_up_proj", ".down_proj"))]:
        experts, _, word = name.rpartition(".")
        for i, matrix in enumerate(weights.pop(name)):
            gate, up, down = (f"{experts}.{i}.{each}.weight" for each in EXPERTS[family])
            parts = zip((gate, up), np.split(matrix, 2), strict=True) if word == "gate_up_proj" else [(down, matrix)]
            weights.update(parts)
    assert {name: value.shape for name, value in weights.items()} == {t.name: t.shape for t in apart.tensors}
    found = evaluate_model(apart, expected.inputs, weights).outputs
    joined = run_as_recorded(case).outputs
    assert found.keys() == joined.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, joined[name], rtol=0, atol=1e-12)


def test_constant_tables_are_those_recorded() -> None:
    (case,) = (case for case in WHOLE if case.family == "transformer-seq2seq")
    expected = record(case.family)
    module = get_compilation(load(case)).compiled.module
    tables = {name: leaf.weight.value for name, leaf in iter_tensors(module) if leaf.weight.value is not None}
    assert list(tables) == ["encoder.position_enc.weight", "decoder.position_enc.weight"]
    for name, body in tables.items():
        table = evaluate(body, {}, {}).outputs["output"]
        np.testing.assert_allclose(table, expected.weights[name], rtol=0, atol=1e-7)  # the record is in float32


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_applications_are_the_nodes_of_the_graph(case: Case) -> None:
    trace = run_as_recorded(case).trace
    graph = load(case).graph()
    nodes = {name: data for name, data in graph.nodes(data=True) if data["kind"] == "layer"}
    blocks = {name for data in nodes.values() for name in data["path"]}
    assert set(nodes) | blocks == set(trace)
    assert all(len(data["shape"]) == trace[name][0].ndim for name, data in nodes.items())


@pytest.mark.parametrize("case", SEQUENCES, ids=str)
def test_padding_and_the_rest_of_the_batch_do_not_matter(case: Case) -> None:
    expected = record(case.family)
    together = run_as_recorded(case).outputs
    for row, length in enumerate(expected.inputs["attention_mask"].sum(1)):
        alone = {name: value[row : row + 1, :length] for name, value in expected.inputs.items()}
        for name, output in run(case, alone, expected.weights).outputs.items():
            whole = together[name][row]
            compared = whole[:length] if whole.shape != output[0].shape else whole
            np.testing.assert_allclose(output[0], compared, atol=1e-13)


def test_an_absent_mask_is_a_mask_of_ones(tmp_path: Path) -> None:
    expected = record("bert")
    spec = tmp_path / "unmasked.arch"
    spec.write_text("""
import bert { Bert }
dim batch, seq
block Unmasked(..Bert)(input_ids int [batch, seq], token_type_ids int [batch, seq])
                      -> (h [batch, seq, hidden], pooled [batch, hidden]) {
  return bert: Bert(..)(input_ids, token_type_ids)
}
model "unmasked" = Unmasked()
""")
    inputs = {**expected.inputs, "attention_mask": np.ones_like(expected.inputs["attention_mask"])}
    masked = run(PARTS[0], inputs, expected.weights).outputs
    del inputs["attention_mask"]
    unmasked = run(Case("bert", str(spec), TINY), inputs, expected.weights).outputs
    np.testing.assert_array_equal(unmasked["h"], masked["last_hidden_state"])
    np.testing.assert_array_equal(unmasked["pooled"], masked["pooler_output"])
