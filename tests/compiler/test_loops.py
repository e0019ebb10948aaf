"""Loops over a dimension: one iteration stands for all, in every analysis."""

from typing import Any

import networkx
import numpy as np
import pytest
import reference
from small import codes, findings, load, output, shapes

import archspec
from archspec.pipeline.model import get_compilation

SCAN = """
dim batch, seq
layer Scan(n = 4)(x [batch, seq, n]) -> (states [batch, seq, n], last [batch, n]) {
  a: param [n]
  h = full([batch, n], 0.0)
  for t in 0..seq {
    h = tanh(h * .a + pick(axis = 1, index = t)(x))
    states = collect(axis = 1)(h)
  }
  return states, h
}
"""
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
    return reference.evaluate(get_compilation(model).body, inputs, weights).outputs


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


@pytest.mark.parametrize(
    ("statements", "inputs"),
    [
        ("g = x\nfor t in 0..seq { h = h * pick(axis = 1, index = t)(x) + pick(axis = 1, index = t)(g) }", ["h", "x"]),
        ("g = h\nfor t in 0..seq { h = h * g }", ["h", "g"]),
        ("g = h\nfor t in 0..seq {\n  h = h * g\n  g = g + 1.0\n}\nh2 = h * g", ["h", "g"]),
        ("g = h\nfor t in 0..seq {\n  h = h * g\n  g = g\n}", ["h", "g"]),
        ("g = h\nfor t in 0..seq { y = collect(axis = 1)(h * g) }\nh2 = sum(axis = 1)(y)", ["h"]),
        ("for t in 0..seq { h = h * .a }", ["h", ".a"]),
    ],
)
def test_a_loop_takes_each_value_once_unless_it_is_carried(statements: str, inputs: list[str]) -> None:
    text = scan(statements)
    if "h2" in statements:
        text = text.replace("return h\n", "return h2\n")
    (loop,) = [call for call in get_compilation(load(text)).body.calls if call.kind == "loop"]
    assert [name for name, _ in loop.inputs] == inputs
    assert loop.body is not None and [name for name, _ in loop.body.inputs] == inputs


def test_a_loop_that_changes_nothing_is_left_out() -> None:
    model = load(scan("g = h * 2.0\nfor t in 0..seq { g = g }\nh3 = g + h").replace("return h\n", "return h3\n"))
    assert not [call for call in get_compilation(model).body.calls if call.kind == "loop"]


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

ATTENTION = """
dim batch, seq
block Steps(n = 4)(x [batch, {seq}, n]) -> [batch, n] {{
  q: param [n, n]
  h = full([batch, n], 0.0)
  for t in 1..{seq} {{
    query = reshape([batch, 1, n])(linear(h + pick(axis = 1, index = t)(x), .q))
    w = softmax(axis = -1)(matmul(query, transpose(1, 2)(x)) * 0.5)
    h = reshape([batch, n])(matmul(w, x)) + t * h
  }}
  return h
}}
"""


@pytest.mark.parametrize("length", [3, 4, 6])
def test_costs_are_those_of_the_iterations_one_by_one(length: int) -> None:
    one_by_one = archspec.cost(load(ATTENTION.format(seq=length)), batch=3).work
    work = archspec.cost(load(ATTENTION.format(seq="seq")), batch=3, seq=length).work
    assert work == one_by_one
    assert work.score_macs == work.mix_macs == 3 * 4 * length * (length - 1)


def test_attention_is_not_followed_from_one_iteration_to_the_next() -> None:
    """The first iteration would mix with other weights than those of a softmax, the last would make some in vain."""
    text = ATTENTION.format(seq="seq").replace("  h = full", "  w = full([batch, 1, seq], 1.0)\n  h = full")
    text = text.replace("    w = softmax", "    read = matmul(w, x)\n    w = softmax").replace(
        "matmul(w, x)) +", "read) +"
    )
    work = archspec.cost(load(text)).work
    assert (str(work.macs), work.score_macs, work.mix_macs) == ("(8*batch*seq + 16*batch)*(seq - 1)", 0, 0)


def test_a_cost_is_a_closed_form() -> None:
    work = archspec.cost(load(ATTENTION.format(seq="seq"))).work
    assert str(work.macs) == "(8*batch*seq + 16*batch)*(seq - 1)"
    assert str(archspec.cost(load(SCAN)).work.elementwise) == "12*batch*seq"


def test_a_position_is_checked_in_the_first_and_the_last_iteration() -> None:
    text = """
dim batch, seq
layer Net(x [batch, seq]) -> [batch, seq] {
  table: param [10, 1]
  for t in 0..seq {
    y = collect(axis = 1)(pick(axis = 1, index = t)(x) * pick(axis = 0, index = t)(.table))
  }
  return y
}
"""
    model = load(text)
    assert archspec.cost(model, seq=10).work.elementwise
    with pytest.raises(archspec.ArchError) as caught:
        archspec.cost(model, seq=11)
    assert (
        caught.value.diagnostics[0].message
        == "at seq = 11, t = 10, `pick` cannot select element 10 on an axis of size 10"
    )


def test_a_loop_that_collects_needs_an_iteration() -> None:
    model = load(
        scan("for t in 1..seq {\n  y = collect(axis = 0)(h)\n}\nh = sum(axis = 0)(y)")
        .replace("\n  h = sum", "\n  z = sum")
        .replace("return h", "return z")
    )
    assert archspec.cost(model, seq=2).work.elementwise
    with pytest.raises(archspec.ArchError) as caught:
        archspec.cost(model, seq=1)
    assert caught.value.diagnostics[0].message == "at seq = 1, a loop over `t` collects from no iterations"


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


def test_diff_compares_what_iterations_compute() -> None:
    model = load(SCAN)
    renamed = SCAN.replace(" t ", " step ").replace("= t)", "= step)")
    assert not archspec.diff(model, load(renamed)).operations
    assert archspec.diff(model, load(SCAN.replace("tanh", "exp"))).operations
    assert archspec.diff(model, load(SCAN.replace("index = t)", "index = seq - 1 - t)"))).operations
    assert archspec.diff(model, load(SCAN.replace("0.0", "1.0"))).operations
    shorter = SCAN.replace("return states, h", "return states, pick(axis = 1, index = 0)(states)")
    assert archspec.diff(model, load(shorter)).operations


def test_diff_of_blocks_with_loops() -> None:
    text = ATTENTION.format(seq="seq")
    assert not archspec.diff(
        load(text), load(text.replace(" t ", " i ").replace("= t)", "= i)").replace("+ t", "+ i"))
    ).operations
    for old, new in ((" * 0.5", " * 0.25"), ("+ t * h", "+ (t + 1) * h"), ("in 1..", "in 0.."), ("= t)", "= t - 1)")):
        assert archspec.diff(load(text), load(text.replace(old, new))).operations, old


def test_a_formula_is_not_affected() -> None:
    assert str(archspec.formula(load(SCAN), "n").total) == "n"


def test_a_tensor_that_only_a_loop_reads_is_used() -> None:
    unused = "b: param [n]\nfor t in 0..seq {\n  z = h * .b\n  h = h * .a\n}"
    assert codes(scan(unused)) == ["unused-tensor", "unused-value"]
    assert load(scan(unused.replace("h * .a", "h * z"))).params.total == 8


# Errors ---------------------------------------------------------------------------------------------------------------

ERRORS = {
    "for t in 0..seq {\n  h = pick(axis = 1, index = 0)(x |> sum(axis = -1, keep = true))\n}": (
        "dimension",
        "`h` is real [batch, 4] before the loop and real [batch, 1] after an iteration",
        "keep the type unchanged: a loop over a dimension is compiled once for all iterations",
    ),
    "k = 0\nfor t in 0..seq {\n  h = h * k\n  k = k + 1\n}": (
        "wrong-kind",
        "`k` is the integer 0 before the loop and the integer 1 after an iteration",
        "start with a tensor, such as `full([batch, n], 0.0)`: only tensors are carried",
    ),
    "for t in 0..seq {\n  h = h + y\n  y = collect(axis = 1)(h)\n}": (
        "unknown-name",
        "`y` is only available after the loop that collects it",
        "read it after the loop, or give the value of this iteration another name",
    ),
    "for t in 0..seq {\n  h = h * 2.0\n  y = collect(axis = 1)(t)\n}": (
        "wrong-kind",
        "`collect` expects a tensor, found the index t",
        None,
    ),
    "for t in 0..seq {\n  h = h * 2.0\n  y = collect(axis = 3)(h)\n}": (
        "dimension",
        "`collect` expects an axis from -3 to 2 for 2 axes, found the integer 3",
        None,
    ),
    "for t in 0..seq {\n  h = h + collect(axis = 1)(h)\n}": (
        "wrong-kind",
        "`collect` is only allowed as the whole value of an assignment to one name in a loop",
        "write `name = collect(axis = 1)(value)` in `for ... { }`",
    ),
    "for t in 0..seq {\n  h = h * 2.0\n  y = collect(h)\n}": (
        "missing-argument",
        "`collect` expects an axis and a value, each in a list",
        "write `name = collect(axis = 1)(value)`",
    ),
    "for t in 0..seq {\n  y = collect(axis = 1)(value = h)\n}": (
        "missing-argument",
        "`collect` expects an axis and a value, each in a list",
        "write `name = collect(axis = 1)(value)`",
    ),
    "for t in 0..seq {\n  y = collect(index = 1)(h)\n}": (
        "missing-argument",
        "`collect` expects an axis and a value, each in a list",
        "write `name = collect(axis = 1)(value)`",
    ),
    "y = collect(axis = 1)(h)": (
        "wrong-kind",
        "`collect` is only allowed as the whole value of an assignment to one name in a loop",
        "write `name = collect(axis = 1)(value)` in `for ... { }`",
    ),
    "for t in 2..2 {\n  y = collect(axis = 1)(h)\n}": (
        "wrong-kind",
        "a loop that collects needs at least one iteration",
        "use an end (exclusive) that is above the start",
    ),
    "for t in 4..seq {\n  h = h * 2.0\n}": (
        "wrong-kind",
        "the number of iterations may be negative: it is seq - 4",
        "start the loop at 0 or 1",
    ),
    "for t in 0..seq {\n  for s in 0..t {\n    h = h * 2.0\n  }\n}": (
        "wrong-kind",
        "the bounds of a loop cannot depend on the index of a loop over a dimension",
        None,
    ),
    "for t in 0..seq {\n  h = pick(axis = 1, index = t + 1)(x)\n}": (
        "dimension",
        "`pick` cannot select element the dimension seq on an axis of size seq",
        None,
    ),
    "for t in 0..seq {\n  h = pick(axis = 1, index = t - 1)(x)\n}": (
        "dimension",
        "`pick` may receive a negative index in this loop: t - 1",
        None,
    ),
    "for t in 0..seq {\n  h = pick(axis = 1, index = t // 2)(x)\n}": (
        "dimension",
        "hyperparameter `index` of `pick` must be linear in the index of the loop",
        None,
    ),
    "for t in 0..seq {\n  h = x |> slice(axis = 1, stop = t + 1) |> sum(axis = 1)\n}": (
        "dimension",
        "the size of the result of `slice` depends on the index of the loop",
        None,
    ),
    "for t in 0..seq {\n  h = h * sum(axis = 0)(full([t + 1, 1], 0.0))\n}": (
        "dimension",
        "hyperparameter `shape` of `full` cannot depend on `t`, the index of a loop over a dimension",
        None,
    ),
    "for t in 0..seq {\n  h = h * 2.0 if t == 0 else h\n}": (
        "wrong-kind",
        "`t == 0` is not a compile-time constant",
        None,
    ),
    "for t in 0..seq {\n  z = h * 2.0\n  require z != none\n}": (
        "discarded-value",
        "this loop neither carries nor collects a value",
        "assign to a name from before the loop, or collect a value: `name = collect(axis = 1)(value)`",
    ),
    "for t in 0..seq {\n  w[t]: param [4]\n  h = h * .w[t]\n}": (
        "ownership",
        "the number of loop iterations cannot depend on an input",
        "make it a hyperparameter",
    ),
    "for t in 0..3 {\n  w[t]: param [4]\n  y = collect(axis = 0)(h * .w[t])\n}": (
        "ownership",
        "a loop that collects cannot declare anything",
        "declare and apply it outside the loop",
    ),
}


@pytest.mark.parametrize("body", ERRORS)
def test_errors(body: str) -> None:
    found = findings(scan(body))
    first = next(diagnostic for diagnostic in found if diagnostic.severity == "error")
    assert (first.code, first.message, first.help) == ERRORS[body]
    assert [diagnostic.severity for diagnostic in found].count("error") == 1


@pytest.mark.parametrize(
    ("step", "marked"),
    [
        ("pick(axis = 1, index = t - 1)(x)", ("t - 1", "index = t - 1")),
        ("pick(axis = 1, index = t // 2)(x)", ("t // 2", "index = t // 2")),
        ("h * sum(axis = 0)(full([t + 1, 1], 0.0))", ("[t + 1, 1]",)),
    ],
)
def test_errors_are_at_what_depends_on_the_index(step: str, marked: tuple[str, ...]) -> None:
    found = next(each for each in findings(scan(f"for t in 0..seq {{\n  h = {step}\n}}")) if each.severity == "error")
    assert found.span is not None
    assert found.span.source.text[found.span.start : found.span.end] in marked


def test_a_collected_name_is_new() -> None:
    found = findings(scan("y = h\nfor t in 0..seq {\n  y = collect(axis = 0)(h)\n}\nz = sum(axis = 0)(y)"))
    assert (found[0].code, found[0].message) == ("duplicate-name", "`y` is already defined")


def test_layers_are_not_applied_in_a_loop_over_a_dimension() -> None:
    text = """
import std { Linear }
dim batch, seq
block Net(n = 4)(x [batch, seq, n]) -> [batch, n] {
  cell: Linear(n, n)
  h = pick(axis = 1, index = 0)(x)
  for t in 1..seq {
    h = .cell(h)
  }
  return h
}
"""
    (found,) = findings(text)
    assert found.message == "the layer `Linear` cannot be applied in a loop over a dimension"
    assert (
        found.help == "apply it to the whole sequence outside the loop; in the loop, use functions and stored tensors"
    )
    assert load(text.replace("x [batch, seq, n]", "x [batch, 3, n]").replace("1..seq", "1..3")).params.total == 20


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
        computed = reference.evaluate(get_compilation(model).body, {"x": x.numpy()}, weights).outputs
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

EXPERTS = """
dim batch
layer Experts(n = 4, count = 3)(x [batch, n], chosen int [batch]) -> ([batch, n], [n, count]) {
  expert[i].weight: param [n, n] for i in 0..count
  expert[i].bias:   param [n]    for i in 0..count
  for i in 0..count {
    weight = collect(axis = 0)(.expert[i].weight)
    bias   = collect(axis = -1)(.expert[i].bias * (i + 1))
  }
  return expert_linear(x, chosen, weight), bias
}
"""


def test_a_loop_collects_what_is_declared_at_its_index() -> None:
    model = load(EXPERTS)
    assert list(shapes(model)) == [f"expert.{i}.{word}" for word in ("weight", "bias") for i in range(3)]
    assert [data["type"] for _, data in model.graph("op").nodes(data=True)].count("stack") == 2
    source = np.random.default_rng(0)
    weights = {tensor.name: source.normal(size=tensor.shape) for tensor in model.tensors}
    x, chosen = source.normal(size=(5, 4)), np.array([2, 0, 1, 2, 2])
    found = reference.evaluate(get_compilation(model).body, {"x": x, "chosen": chosen}, weights).outputs
    expected = [weights[f"expert.{e}.weight"] @ row for e, row in zip(chosen, x, strict=True)]
    np.testing.assert_allclose(found["0"], expected)
    np.testing.assert_allclose(found["1"].T, [weights[f"expert.{i}.bias"] * (i + 1) for i in range(3)])


def test_what_a_loop_collects_is_as_long_as_an_open_number_of_iterations() -> None:
    assert "20*count" in str(archspec.formula(load(EXPERTS), "count"))
    with pytest.raises(archspec.ArchError, match="found"):
        archspec.formula(load(EXPERTS.replace("[n, count])", "[n, 3])")), "count")


def test_an_unstable_axis_or_shape_of_a_loop_by_index_is_an_error() -> None:
    assert codes(EXPERTS.replace("axis = -1", "axis = i // 2")) == ["dimension"]
    (wrong,) = findings(EXPERTS.replace("(.expert[i].bias *", "(.expert[i].bias |> slice(axis = 0, stop = 4 - i) |> *"))
    assert "expects tensors of one shape, found real [4] and real [3]" in wrong.message
    assert [f.message for f in findings(EXPERTS.replace("for i in 0..count {", "for i in 0..count - 3 {"))] == [
        "a loop that collects needs at least one iteration"
    ]
