"""Loops over a dimension: one iteration stands for all, in every analysis."""

from typing import Any

import networkx
import numpy as np
import pytest
import reference
from paths import read_spec
from small import load, output, shapes

import archspec

SCAN = read_spec("loops_scan")
LAYER = """
dim batch, seq
layer Scan(n = 4)(x [batch, seq, n]) -> [batch, n] {{
  a: param [n]
  h = pick(axis = 1, index = 0)(x) * .a
  {body}
  return h
}}
"""


def scan(body: str) -> str:
    """A layer with a loop; `h` is [batch, 4] before it."""
    return LAYER.format(body=body.replace("\n", "\n  "))


def run(model: archspec.Model, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs of a model, with weights of 0.5."""
    weights = {tensor.name: np.full(tensor.shape, 0.5) for tensor in model.tensors}
    return reference.evaluate_model(model, inputs, weights).outputs


# Values ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_value_is_carried_and_collected(length: int) -> None:
    model = load(SCAN)
    assert (output(model, "states"), output(model, "last")) == (["batch", "seq", "4"], ["batch", "4"])
    assert shapes(model) == {"a": (4,)}
    x = np.random.default_rng(0).normal(size=(3, length, 4))
    found = run(model, x=x)
    state = np.zeros((3, 4))
    for t in range(length):
        state = np.tanh(state * 0.5 + x[:, t])
        np.testing.assert_array_equal(found["states"][:, t], state)
    np.testing.assert_array_equal(found["last"], state)


def test_a_loop_without_iterations_leaves_what_it_carries() -> None:
    model = load(scan("for t in 1..seq {\n  h = h + pick(axis = 1, index = t)(x)\n}"))
    x = np.ones((2, 1, 4))
    np.testing.assert_array_equal(run(model, x=x)["output"], np.full((2, 4), 0.5))
    assert archspec.cost(model, batch=2, seq=1).work.elementwise == 8


def test_values_are_collected_along_any_axis_and_in_nested_loops() -> None:
    text = """
dim batch, rows, columns
layer Net(x [batch, rows, columns]) -> ([rows, batch, columns], [batch, rows], [2, batch]) {
  a: param [1]
  total = full([batch], 0.0)
  for i in 0..rows {
    line = pick(axis = 1, index = i)(x)
    for j in 0..columns {
      total = total + pick(axis = 1, index = columns - 1 - j)(line)
      cells = collect(axis = -1)(total * .a)
    }
    all = collect(axis = 0)(cells)
    ends = collect(axis = 1)(total)
  }
  for k in 3..5 {
    few = collect(axis = -2)(total * k)
  }
  return all, ends, few
}
"""
    model = load(text)
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    found = run(model, x=x)
    totals = np.cumsum(x[..., ::-1].reshape(2, 12), 1)
    np.testing.assert_allclose(found["0"], totals.reshape(2, 3, 4).transpose(1, 0, 2) * 0.5)
    np.testing.assert_allclose(found["1"], totals[:, 3::4])
    np.testing.assert_allclose(found["2"], [totals[:, -1] * 3, totals[:, -1] * 4])


def test_functions_steps_and_masks_in_a_loop() -> None:
    text = """
dim batch, seq, n
fn row(index)(x [batch, seq, n]) -> [batch, n] { return pick(axis = 1, index = index)(x) }
fn weighted(x [...], by int []) -> [...] { return x * by }
layer Net(n = 4)(x [batch, seq, n], lengths int [batch]) -> [batch, n] {
  a: param [n]
  h = full([batch, n], 0.0)
  for t in 0..seq {
    here = reshape([batch, 1])(t < lengths)
    h = where(here, h + weighted(row(index = t)(x), t), h)
  }
  return h |> * .a for t in 0..seq
}
"""
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = run(load(text), x=x, lengths=np.array([3, 5]))["output"]
    expected = [(x[b, :length] * np.arange(length)[:, None]).sum(0) * 0.5**5 for b, length in ((0, 3), (1, 5))]
    np.testing.assert_allclose(found, expected)


# Analyses -------------------------------------------------------------------------------------------------------------


def test_a_loop_is_one_node_of_a_graph() -> None:
    model = load(SCAN)
    for level in ("block", "layer", "op"):
        graph: networkx.DiGraph[str] = model.graph(level)
        assert sum(data["params"] for _, data in graph.nodes(data=True)) == 4
    data = graph.nodes["#for.0"]
    assert (data["kind"], data["type"], str(data["hyperparameters"]["iterations"])) == ("op", "for", "seq")
    assert str(data["elementwise"]) == "12*batch*seq"
    assert set(graph.predecessors("#for.0")) == {"#full.0", "a", "input:x"}
    assert set(graph.successors("#for.0")) == {"output:states", "output:last"}


# PyTorch --------------------------------------------------------------------------------------------------------------

RECURRENT = """
import std {{ {kind} }}
dim batch, seq
block Net(x [batch, seq, 3]) -> (output [batch, seq, 4], last [batch, 4]{cell}) {{
  return own: {kind}(3, 4, bias = {bias})(x)
}}
model "net" = Net() {{ expect params == {gates} * 4 * (3 + 4 + {biases}) }}
"""
GATES = {"LSTM": 4, "GRU": 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_are_those_of_pytorch(kind: str, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    cell = ", cell [batch, 4]" if kind == "LSTM" else ""
    text = RECURRENT.format(kind=kind, bias=str(bias).lower(), biases=2 * bias, gates=GATES[kind], cell=cell)
    model = load(text)
    theirs = getattr(torch.nn, kind)(3, 4, bias=bias, batch_first=True, dtype=torch.float64)
    ours: Any = archspec.to_torch(model).double()
    ours.own.load_state_dict(theirs.state_dict())
    weights = {f"own.{name}": tensor.numpy() for name, tensor in theirs.state_dict().items()}
    for length in (1, 2, 9):
        x = torch.randn(2, length, 3, dtype=torch.float64)
        with torch.no_grad():
            expected, states = theirs(x)
            made = ours(x)
        states = states if isinstance(states, tuple) else (states,)
        computed = reference.evaluate_model(model, {"x": x.numpy()}, weights).outputs
        for name, value in zip(("output", "last", "cell"), (expected, *[state[0] for state in states]), strict=False):
            torch.testing.assert_close(getattr(made, name), value)
            np.testing.assert_allclose(computed[name], value.numpy(), atol=1e-12)


@pytest.mark.slow
def test_the_selective_scan_trains() -> None:
    torch = pytest.importorskip("torch")
    module = archspec.to_torch(archspec.load("mamba-130m", vocab=97, hidden=32, layers=2))
    module(torch.randint(0, 97, (2, 6))).logits.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in module.parameters())


# Loops that read what is declared at their index ----------------------------------------------------------------------

EXPERTS = read_spec("loops_experts")


def test_a_loop_collects_what_is_declared_at_its_index() -> None:
    model = load(EXPERTS)
    assert list(shapes(model)) == [f"expert.{i}.{word}" for word in ("weight", "bias") for i in range(3)]
    assert [data["type"] for _, data in model.graph("op").nodes(data=True)].count("stack") == 2
    source = np.random.default_rng(0)
    weights = {tensor.name: source.normal(size=tensor.shape) for tensor in model.tensors}
    x, chosen = source.normal(size=(5, 4)), np.array([2, 0, 1, 2, 2])
    found = reference.evaluate_model(model, {"x": x, "chosen": chosen}, weights).outputs
    expected = [weights[f"expert.{e}.weight"] @ row for e, row in zip(chosen, x, strict=True)]
    np.testing.assert_allclose(found["0"], expected)
    np.testing.assert_allclose(found["1"].T, [weights[f"expert.{i}.bias"] * (i + 1) for i in range(3)])
