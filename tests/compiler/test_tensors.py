"""What a spec means, rule by rule: stored tensors and ties between them."""

from pathlib import Path

import numpy as np
import pytest
import torch_compare
from reference import evaluate
from small import DENSE, SCALE, codes, findings, load, shapes

import archspec
from archspec.codegen.build import torch_source
from archspec.pipeline.model import get_compilation

# Tensors -------------------------------------------------------------------------------------------------------------


def test_tensors_have_any_number_of_dimensions() -> None:
    model = load(
        """
block Net()(x [..., 3]) -> [..., 5] {
  temperature: param []
  experts:     param [2, 3, 5]
  cls_token:   param [1, 1, 5] ~ normal(0.02)
  y = matmul(x, pick(axis = 0, index = 1)(.experts))
  return y * .temperature + reshape([5])(.cls_token)
}
"""
    )
    assert shapes(model) == {"temperature": (), "experts": (2, 3, 5), "cls_token": (1, 1, 5)}
    assert [t.params for t in model.tensors] == [1, 30, 5]
    kinds = {n: d["kind"] for n, d in model.graph().nodes(data=True) if n in shapes(model)}
    assert kinds == dict.fromkeys(shapes(model), "param")


def test_a_buffer_is_stored_and_not_counted() -> None:
    model = load(
        """
layer Net(n = 4)(x [..., n]) -> [..., n] {
  weight: param [n]
  mean:   buffer [n]
  steps:  unused buffer int []
  return (x - .mean) * .weight
}
"""
    )
    assert model.params == (4, 4, 0)
    assert [(b.name, b.shape) for b in model.buffers] == [("mean", (4,)), ("steps", ())]
    assert list(shapes(model)) == ["weight"]


CONST = """
layer Net(n = 4, half = false)(x [..., n]) -> [..., n] {
  weight: param [n]
  table:  const [n] = real(arange(n))
  scale:  const [] = 0.5 if half
  y = x * .weight + .table
  return y |> * .scale if half
}
block Two(n = 4)(x [..., n]) -> [..., n] {
  shift: const [n] = 1.0
  return x |> a: Net(n) |> b: Net(n, true) |> + .shift
}
model "two" = Two() { expect tensors == 2 }
"""


def test_a_const_is_computed_and_not_stored() -> None:
    model = load(CONST)
    assert (model.params, model.buffers, shapes(model)) == ((8, 8, 0), (), {"a.weight": (4,), "b.weight": (4,)})
    assert [(n, d["kind"], d["params"]) for n, d in model.graph().nodes(data=True) if n == "shift"] == [
        ("shift", "const", 0)
    ]
    assert archspec.cost(model).memory.buffers == 4 * (4 + 4 + 1 + 4)
    x = np.arange(8.0).reshape(2, 4)
    given = {name: np.full(4, 3.0) for name in shapes(model)}
    expected = ((x * 3 + np.arange(4)) * 3 + np.arange(4)) * 0.5 + 1
    assert np.array_equal(evaluate(get_compilation(model).body, {"x": x}, given).outputs["output"], expected)


def test_a_const_in_pytorch_is_a_buffer_that_is_not_persistent() -> None:
    text = torch_source(load(CONST))
    assert text.count("persistent=False") == 3
    assert 'self.register_buffer("scale", None)' in text


@pytest.mark.slow
def test_modules_compute_their_consts() -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(load(CONST))


def test_what_a_const_holds_counts_in_diff_and_its_address_does_not(tmp_path: Path) -> None:
    def path(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    one = path("one.arch", CONST)
    renamed = path("renamed.arch", CONST.replace("table", "other"))
    written_out = path(
        "out.arch", CONST.replace("  table:  const [n] = real(arange(n))\n", "").replace(".table", "arange(n)")
    )
    changed = path("changed.arch", CONST.replace("arange(n))", "arange(n)) * 2.0"))
    assert not archspec.diff(one, renamed).operations
    assert archspec.diff(one, changed).operations
    found = archspec.diff(one, written_out)  # adding an int makes it the real that is written in `one`
    assert not found.operations and found.unified


@pytest.mark.parametrize(
    ("old", "new", "message", "help"),
    [
        (
            "[n] = real(arange(n))",
            "[n]",
            "a `const` has no value",
            "give it a value: `table: const [n] = real(arange(n))`",
        ),
        (
            "const [] =",
            "frozen const [] =",
            "`frozen` does not apply to a `const`, which is not stored",
            "remove `frozen`",
        ),
        (
            "const [] =",
            "unused const [] =",
            "`unused` does not apply to a `const`, which is not stored",
            "remove `unused`",
        ),
        ("+ .table", "+ 1.0", "unused tensor `table`", "use it or remove it"),
        (
            "  return x |> a",
            "  tie a.table = b.table\n  return x |> a",
            "cannot tie `a.table`: a `const` is not stored",
            "declare it as a `buffer`, or remove the tie",
        ),
        ("table:  const [n]", "table: const [n, 2]", "expected a value of type real [4, 2], found real [4]", None),
        ("shift: const", "shift: cosnt", "unknown keyword `cosnt`", "did you mean `const`?"),
    ],
)
def test_what_a_const_cannot_be(old: str, new: str, message: str, help: str | None) -> None:
    assert CONST.count(old) >= 1
    found = findings(CONST.replace(old, new))
    assert [(d.message, d.help) for d in found if "broadcast" not in d.message] == [(message, help)]


def test_layers_with_consts_can_be_tied() -> None:
    text = CONST.replace("  return x |> a", "  tie a = b\n  return x |> a").replace("tensors == 2", "params == 4")
    assert load(text.replace("Net(n, true)", "Net(n)")).params.total == 4


def test_frozen_tensors_and_subtrees_are_counted_and_not_trained() -> None:
    model = load(
        DENSE
        + """
layer Shift(n)(x [..., n]) -> [..., n] {
  bias: frozen param [n]
  return x + .bias
}
block Pair(n)(x [..., n]) -> [..., n] {
  return x |> one: Dense(n) |> two: Dense(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  return x |> shift: Shift(4) |> dense: Dense(4) |> pair: frozen Pair(4)
}
"""
    )
    assert model.params == (64, 20, 44)
    assert {t.name for t in model.tensors if t.trainable} == {"dense.weight", "dense.bias"}


def test_a_tensor_that_nothing_reads_is_an_error_or_marked() -> None:
    text = "layer Net()(x [4]) -> [4] {\n  a: param [4]\n  b: param [2]\n  return x * .a\n}\n"
    assert codes(text) == ["unused-tensor"]
    model = load(text.replace("b: param", "b: unused param"))
    assert model.params.total == 6
    node = model.graph().nodes["b"]
    assert (node["kind"], node["params"]) == ("param", 2)


def test_a_tensor_for_an_optional_input_is_used_if_one_application_gives_it() -> None:
    text = """
layer Gate(n)(x [n], y [n] = none) -> [n] {
  w: param [n]
  v: param [n]
  return x * .w + y * .v if y != none else x * .w
}
block Part(n)(x [n]) -> [n] {
  gate: Gate(n)
  return x |> .gate |> .gate
}
block Net(n = 4)(x [n]) -> [n] {
  part: Part(n)
  return x |> .part |> .part.gate
}
"""
    assert [(d.code, d.message) for d in findings(text)] == [
        ("unused-tensor", "`part.gate.v` does not affect any output")
    ]
    assert load(text.replace("|> .gate\n", "|> .gate(_, x)\n")).params.total == 8
    assert load(text.replace("x |> .gate |>", "x |> .gate(_, x) |>")).params.total == 8
    assert load(text.replace("|> .part.gate\n", "|> .part.gate(_, x)\n")).params.total == 8


def test_a_layer_is_used_if_one_of_its_outputs_is() -> None:
    text = """
layer Two(n)(x [n]) -> (a [n], b [n]) {
  w: param [n]
  return x * .w, x
}
block Net(n = 4)(x [n]) -> [n] {
  a, b = two: Two(n)(x)
  return a
}
"""
    model = load(text)
    assert (model.params.total, [warning.code for warning in model.warnings]) == (4, ["unused-value"])


def test_what_is_marked_unused_inside_need_not_be_used() -> None:
    text = (
        SCALE
        + """
block Part(n)(x [n]) -> [n] {
  inner: unused Scale(n)
  outer: Scale(n)
  return x |> .outer
}
block Net(n = 4)(x [n]) -> [n] {
  part: Part(n)
  return x * .part.outer.weight
}
"""
    )
    assert load(text).params.total == 8
    assert codes(text.replace("unused ", "")) == ["unused-layer"]


def test_constant_tables_are_checked_against_their_shape() -> None:
    text = """
fn positions(count, n) -> [count, n] {
  return reshape([count, 1])(arange(count)) / 10000.0 ** (2 * arange(n) / n)
}
layer Net(count = 8, n = 4)(ids int [...]) -> [..., n] {
  weight: frozen param [count, n] = sin(positions(count, n))
  ones:   param [n] = 1
  ids:    buffer int [1, count] = reshape([1, count])(arange(count))
  return embedding(ids, .weight) * .ones + real(sum(axis = [0, 1])(.ids))
}
"""
    model = load(text)
    assert (model.params, len(model.buffers)) == ((36, 4, 32), 1)
    assert codes(text.replace("sin(positions(count, n))", "sin(positions(n, count))")) == ["dimension"]
    assert codes(text.replace("buffer int", "buffer")) != []


@pytest.mark.parametrize(
    ("initial", "code"),
    [
        ("normal(0.02)", None),
        ("uniform(-n, n ** -0.5)", None),
        ("uniform(0.5, 0.5)", None),
        ("truncated_normal(1)", None),
        ("normal(0)", None),
        ("constant(-inf)", None),
        ("xavier_uniform", "wrong-kind"),
        ("normal(-0.02)", "wrong-kind"),
        ("normal(inf)", "wrong-kind"),
        ("truncated_normal(0)", "wrong-kind"),
        ("truncated_normal(inf)", "wrong-kind"),
        ("uniform(1.0, 0.0)", "wrong-kind"),
        ("uniform(-inf, 0.0)", "wrong-kind"),
        ("uniform(0.0, inf)", "wrong-kind"),
        ("gauss(1.0)", "unknown-name"),
        ("normal", "missing-argument"),
        ("normal(0.0, 0.02)", "surplus-argument"),
        ('normal("x")', "wrong-kind"),
        ("normal(true)", "wrong-kind"),
        ("normal(other)", "unknown-name"),
    ],
)
def test_how_a_parameter_starts_out(initial: str, code: str | None) -> None:
    text = f"layer Net(n = 4)(x [..., n]) -> [..., n] {{\n  weight: param [n] ~ {initial}\n  return x * .weight\n}}\n"
    if code is None:
        assert load(text).params.total == 4
    else:
        assert codes(text) == [code]


def test_a_matrix_may_start_out_by_its_shape() -> None:
    text = "layer Net(n = 4)(x [..., n]) -> [..., n] {\n  w: param [n, n] ~ xavier_uniform\n  return linear(x, .w)\n}\n"
    assert load(text).params.total == load(text.replace("xavier_uniform", "xavier_uniform()")).params.total == 16


def test_integers_are_not_trained() -> None:
    text = "layer Net(n = 4)(x [..., n]) -> [..., n] {\n  w: param int [n]\n  return x * real(.w)\n}\n"
    assert codes(text) == ["wrong-kind"]
    assert load(text.replace("param", "frozen param")).params.frozen == 4


# Ties ----------------------------------------------------------------------------------------------------------------


def test_a_tie_makes_two_names_one_tensor() -> None:
    model = load(
        DENSE
        + """
layer Table(count, n)(ids int [...]) -> [..., n] {
  weight: param [count, n]
  return embedding(ids, .weight)
}
block Net()(ids int [seq]) -> [seq, 10] {
  tie head.weight = words.weight
  return ids |> words: Table(10, 4) |> head: Dense(4, 10, bias = false)
}
dim seq
"""
    )
    assert [(t.name, t.params, t.size, t.tied_to) for t in model.tensors] == [
        ("words.weight", 40, 40, None),
        ("head.weight", 0, 40, "words.weight"),
    ]
    nodes = model.graph().nodes
    assert (nodes["words"]["params"], nodes["head"]["params"]) == (40, 0)
    assert nodes["head"]["shared_with"] == ("words",)


@pytest.mark.parametrize(
    "ties",
    [
        ["a.weight = b.weight", "b.weight = c.weight"],
        ["b.weight = c.weight", "a.weight = b.weight"],
        ["a.weight = c.weight", "b.weight = c.weight"],
    ],
    ids="; ".join,
)
def test_ties_may_form_chains_in_any_order(ties: list[str]) -> None:
    lines = "\n".join(f"  tie {tie}" for tie in ties)
    steps = "x |> a: Scale(4) |> b: Scale(4) |> c: Scale(4)"
    model = load(SCALE + f"block Net()(x [4]) -> [4] {{\n{lines}\n  return {steps}\n}}\n")
    assert [t.tied_to for t in model.tensors] == ["c.weight", "c.weight", None]
    assert model.params.total == 4
    assert [model.graph().nodes[n]["params"] for n in "abc"] == [4, 0, 0]  # it stands where it is first used


def test_a_tie_of_subtrees_ties_every_tensor() -> None:
    text = (
        DENSE
        + """
block Pair(n)(x [..., n]) -> [..., n] {
  return x |> one: Dense(n) |> two: Dense(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  tie right = left
  return x |> left: Pair(4) |> right: Pair(4)
}
"""
    )
    model = load(text)
    assert model.params.total == 40
    tied = {t.name: t.tied_to for t in model.tensors if t.tied_to}
    assert tied == {f"right.{n}.{w}": f"left.{n}.{w}" for n in ("one", "two") for w in ("weight", "bias")}
    partly = load(text.replace("tie right = left", "tie right.one.bias = left.two.bias"))
    assert partly.params.total == 76


def test_ties_stand_in_loops_and_under_conditions() -> None:
    text = (
        SCALE
        + """
block Net(layers = 4, tied = true)(x [4]) -> [4] {
  tie layer[i].weight = layer[0].weight for i in 1..layers
  if tied {
    tie last.weight = first.weight
  }
  return x |> first: Scale(4) |> layer[i]: Scale(4) for i in 0..layers |> last: Scale(4)
}
"""
    )
    assert load(text).params.total == 8
    assert load(text, tied=False).params.total == 12
    assert load(text, layers=1).params.total == 8
    suffix = text.replace(
        "if tied {\n    tie last.weight = first.weight\n  }", "tie last.weight = first.weight if tied"
    )
    assert [load(suffix, tied=t).params.total for t in (True, False)] == [8, 12]


def test_ties_see_the_indices_of_the_loops_around_them() -> None:
    model = load(
        SCALE
        + """
block Net()(x [4]) -> [4] {
  h = x
  for i in 0..4 {
    h = h |> layer[i]: Scale(4)
    if i % 2 == 1 {
      tie layer[i].weight = layer[i - 1].weight
    }
  }
  return h
}
"""
    )
    assert [t.tied_to for t in model.tensors] == [None, "layer.0.weight", None, "layer.2.weight"]


def test_a_tie_inside_a_block_holds_wherever_the_block_is_used() -> None:
    model = load(
        SCALE
        + """
block Twin()(x [4]) -> [4] {
  tie two.weight = one.weight
  return x |> one: Scale(4) |> two: Scale(4)
}
block Net()(x [4]) -> [4] {
  tie layer[1].one.weight = layer[0].two.weight
  return x |> layer[i]: Twin() for i in 0..3
}
"""
    )
    assert [t.tied_to for t in model.tensors] == [
        None,
        "layer.0.one.weight",
        "layer.0.one.weight",
        "layer.0.one.weight",
        None,
        "layer.2.one.weight",
    ]


def test_a_tensor_tied_to_a_frozen_one_is_frozen() -> None:
    model = load(
        SCALE
        + """
block Net()(x [4]) -> [4] {
  tie b.weight = a.weight
  return x |> a: frozen Scale(4) |> b: Scale(4)
}
"""
    )
    assert [t.trainable for t in model.tensors] == [False, False]
    assert model.params == (4, 0, 4)


@pytest.mark.parametrize(
    ("tie", "code"),
    [
        ("a.weight = b.bias", "tie-shape"),
        ("a = b.weight", "tie-shape"),
        ("a.weight = a.weight", "tie-circle"),
        ("a.wait = b.weight", "unknown-address"),
        ("a.weight = b.weight\n  tie b.weight = a.weight", "tie-circle"),
    ],
)
def test_ties_that_make_no_sense(tie: str, code: str) -> None:
    text = DENSE + f"block Net()(x [4]) -> [4] {{\n  tie {tie}\n  return x |> a: Dense(4) |> b: Dense(4)\n}}\n"
    assert codes(text) == [code]
