"""What a spec means: each rule of the language on a small spec of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest

import archspec
from archspec import Model
from archspec.source import Diagnostic

DENSE = """
layer Dense(n, m = n, bias = true)(x [..., n]) -> [..., m] {
  weight: param [m, n]
  bias:   param [m] if bias
  return linear(x, .weight, .bias)
}
"""
SCALE = """
layer Scale(n)(x [..., n]) -> [..., n] {
  weight: param [n]
  return x * .weight
}
"""

Load = Callable[..., Model]
Find = Callable[..., list[Diagnostic]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Compiles a text; the last definition is the model, with its defaults, unless the text has a model."""

    def compile(text: str, **overrides: Any) -> Model:
        path = tmp_path / "spec.arch"
        path.write_text(with_model(text), encoding="utf-8")
        return archspec.load(str(path), **overrides)

    return compile


@pytest.fixture
def findings(load: Load) -> Find:
    """What is wrong with a text."""

    def find(text: str, **overrides: Any) -> list[Diagnostic]:
        with pytest.raises(archspec.ArchError) as caught:
            load(text, **overrides)
        return caught.value.diagnostics

    return find


def with_model(text: str) -> str:
    if "\nmodel " in text:
        return text
    last = [line.split()[1] for line in text.splitlines() if line.startswith(("layer ", "block "))][-1]
    return f'{text}\nmodel "it" = {last.partition("(")[0]}()\n'


def shapes(model: Model) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in model.tensors}


def layers(model: Model) -> list[str]:
    """The nodes at the level of layers that are applications of layers, in program order."""
    return [node for node, data in model.graph().nodes(data=True) if data["kind"] == "layer"]


def kinds(model: Model, level: str = "op") -> list[str]:
    """The types of the functions and operations applied, in program order."""
    return [data["type"] for _, data in model.graph(level).nodes(data=True) if data["kind"] in ("op", "fn")]


def codes(found: list[Diagnostic]) -> list[str]:
    return [diagnostic.code for diagnostic in found]


def output(model: Model, name: str = "output") -> list[str]:
    return [str(size) for size in model.outputs[name].shape]


# Addresses -----------------------------------------------------------------------------------------------------------


def test_an_address_is_the_name_in_a_checkpoint_verbatim(load: Load) -> None:
    model = load(
        DENSE
        + """
block Net(layers = 2)(x [4]) -> [4] {
  return x
    |> encoder.layer[i].attention.self.query: Dense(4) for i in 0..layers
    |> decoder.0.proj_Q:                      Dense(4, bias = false)
    |> LayerNorm:                             Dense(4)
}
"""
    )
    assert list(shapes(model)) == [
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.0.attention.self.query.bias",
        "encoder.layer.1.attention.self.query.weight",
        "encoder.layer.1.attention.self.query.bias",
        "decoder.0.proj_Q.weight",
        "LayerNorm.weight",
        "LayerNorm.bias",
    ]


@pytest.mark.parametrize(
    "word", ["import", "dim", "fn", "layer", "block", "model", "export", "self", "output", "weight", "matmul"]
)
def test_words_that_begin_items_may_begin_an_address(load: Load, word: str) -> None:
    model = load(SCALE + f"block Net(n = 2)(x [n]) -> [n] {{\n  {word}.part: Scale(n)\n  return .{word}.part(x)\n}}\n")
    assert list(shapes(model)) == [f"{word}.part.weight"]


@pytest.mark.parametrize(
    "word",
    "if else for in return tie require role param buffer frozen unused expect and or not true false none inf as 0".split(),
)
def test_any_word_may_follow_the_first_dot_and_quotes_help_the_first(load: Load, word: str) -> None:
    model = load(
        SCALE
        + f"""
block Net(n = 2)(x [n]) -> [n] {{
  part.{word}.{word}: Scale(n)
  "{word}".part[0]:   Scale(n)
  return x |> .part.{word}.{word} |> ."{word}".part[0]
}}
"""
    )
    assert list(shapes(model)) == [f"part.{word}.{word}.weight", f"{word}.part.0.weight"]


def test_addresses_and_values_of_the_same_name_do_not_mix(load: Load) -> None:
    model = load(
        """
layer Net(bias = true, weight = 3)(x [weight]) -> [weight] {
  weight: param [weight, weight]
  bias:   param [weight] if bias
  y = linear(x, .weight, .bias)
  return y * weight
}
"""
    )
    assert shapes(model) == {"weight": (3, 3), "bias": (3,)}


def test_a_name_is_bound_once(findings: Find) -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  y = x |> a: Dense(4)\n  y = y |> b: Dense(4)\n  return y\n}\n"
    assert codes(findings(text)) == ["duplicate-name"]


# Declaring, applying, sharing ----------------------------------------------------------------------------------------


def test_what_is_declared_can_be_applied_often(load: Load) -> None:
    model = load(
        DENSE
        + """
block Net()(x [seq, 4], y [seq, 4]) -> ([seq, 4], [seq, 4]) {
  shared: Dense(4)
  a = x |> .shared |> .shared |> own: Dense(4)
  return a, .shared(y)
}
dim seq
"""
    )
    assert layers(model) == ["shared", "shared@2", "own", "shared@3"]
    nodes = model.graph().nodes
    assert (nodes["shared"]["params"], nodes["shared@2"]["params"], nodes["shared@3"]["params"]) == (20, 0, 0)
    assert nodes["shared@3"]["shared_with"] == ("shared",)
    assert {nodes[n]["address"] for n in ("shared", "shared@2", "shared@3")} == {"shared"}
    assert model.params.total == 40


def test_what_is_applied_where_it_is_owned_can_be_applied_again(load: Load) -> None:
    model = load(DENSE + "block Net()(x [4]) -> [4] {\n  y = x |> shared: Dense(4)\n  return .shared(y)\n}\n")
    assert layers(model) == ["shared", "shared@2"]


def test_a_part_of_what_is_owned_can_be_applied_and_its_tensors_read(load: Load) -> None:
    model = load(
        DENSE
        + """
block Pair(n)(x [..., n]) -> [..., n] {
  return x |> one: Dense(n) |> two: Dense(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  return x |> pair: Pair(4) |> .pair.one |> + .pair.two.bias
}
"""
    )
    assert layers(model) == ["pair.one", "pair.two", "pair.one@2"]
    assert model.params.total == 40


def test_an_encoder_may_apply_one_layer_as_often_as_it_likes(load: Load) -> None:
    """ALBERT: the number of layers changes what is computed, and not what is owned."""
    text = (
        DENSE
        + """
block Net(layers = 3)(x [..., 4]) -> [..., 4] {
  group.0.layer: Dense(4)
  return x |> .group.0.layer for i in 0..layers
}
"""
    )
    assert layers(load(text)) == ["group.0.layer", "group.0.layer@2", "group.0.layer@3"]
    assert load(text).params == load(text, layers=12).params
    assert len(layers(load(text, layers=12))) == 12


def test_what_nothing_applies_is_an_error_or_marked(findings: Find, load: Load) -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  idle: Dense(4)\n  return x |> a: Dense(4)\n}\n"
    assert codes(findings(text)) == ["unused-layer"]
    model = load(text.replace("idle: ", "idle: unused "))
    assert model.params.total == 40
    graph = model.graph()
    assert {n: graph.nodes[n]["params"] for n in graph if n.startswith("idle")} == {"idle.weight": 16, "idle.bias": 4}


# Ties ----------------------------------------------------------------------------------------------------------------


def test_a_tie_makes_two_names_one_tensor(load: Load) -> None:
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
def test_ties_may_form_chains_in_any_order(load: Load, ties: list[str]) -> None:
    lines = "\n".join(f"  tie {tie}" for tie in ties)
    steps = "x |> a: Scale(4) |> b: Scale(4) |> c: Scale(4)"
    model = load(SCALE + f"block Net()(x [4]) -> [4] {{\n{lines}\n  return {steps}\n}}\n")
    assert [t.tied_to for t in model.tensors] == ["c.weight", "c.weight", None]
    assert model.params.total == 4
    assert [model.graph().nodes[n]["params"] for n in "abc"] == [4, 0, 0]  # it stands where it is first used


def test_a_tie_of_subtrees_ties_every_tensor(load: Load) -> None:
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


def test_ties_stand_in_loops_and_under_conditions(load: Load) -> None:
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


def test_ties_see_the_indices_of_the_loops_around_them(load: Load) -> None:
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


def test_a_tie_inside_a_block_holds_wherever_the_block_is_used(load: Load) -> None:
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


def test_a_tensor_tied_to_a_frozen_one_is_frozen(load: Load) -> None:
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
def test_ties_that_make_no_sense(findings: Find, tie: str, code: str) -> None:
    text = DENSE + f"block Net()(x [4]) -> [4] {{\n  tie {tie}\n  return x |> a: Dense(4) |> b: Dense(4)\n}}\n"
    assert codes(findings(text)) == [code]


# Tensors -------------------------------------------------------------------------------------------------------------


def test_tensors_have_any_number_of_dimensions(load: Load) -> None:
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
    kinds_ = {n: d["kind"] for n, d in model.graph().nodes(data=True) if n in shapes(model)}
    assert kinds_ == dict.fromkeys(shapes(model), "param")


def test_a_buffer_is_stored_and_not_counted(load: Load) -> None:
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


def test_frozen_tensors_and_subtrees_are_counted_and_not_trained(load: Load) -> None:
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


def test_a_tensor_that_nothing_reads_is_an_error_or_marked(findings: Find, load: Load) -> None:
    text = "layer Net()(x [4]) -> [4] {\n  a: param [4]\n  b: param [2]\n  return x * .a\n}\n"
    assert codes(findings(text)) == ["unused-tensor"]
    model = load(text.replace("b: param", "b: unused param"))
    assert model.params.total == 6
    node = model.graph().nodes["b"]
    assert (node["kind"], node["params"]) == ("param", 2)


def test_constant_tables_are_checked_against_their_shape(load: Load, findings: Find) -> None:
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
    assert codes(findings(text.replace("sin(positions(count, n))", "sin(positions(n, count))"))) == ["dimension"]
    assert codes(findings(text.replace("buffer int", "buffer"))) != []


@pytest.mark.parametrize(
    ("initial", "code"),
    [
        ("normal(0.02)", None),
        ("uniform(-n, n ** -0.5)", None),
        ("truncated_normal(1)", None),
        ("xavier_uniform", None),
        ("xavier_uniform()", None),
        ("constant(1.0)", None),
        ("gauss(1.0)", "unknown-name"),
        ("normal", "missing-argument"),
        ("normal(0.0, 0.02)", "surplus-argument"),
        ('normal("x")', "wrong-kind"),
        ("normal(other)", "unknown-name"),
    ],
)
def test_how_a_parameter_starts_out(load: Load, findings: Find, initial: str, code: str | None) -> None:
    text = f"layer Net(n = 4)(x [..., n]) -> [..., n] {{\n  weight: param [n] ~ {initial}\n  return x * .weight\n}}\n"
    if code is None:
        assert load(text).params.total == 4
    else:
        assert codes(findings(text)) == [code]


# Options -------------------------------------------------------------------------------------------------------------


def test_a_step_is_skipped_or_replaced(load: Load) -> None:
    text = (
        DENSE
        + SCALE
        + """
block Net(wide = false, twice = false, gain = none)(x [..., 4]) -> [..., 4] {
  return x
    |> a: Dense(4) if wide else b: Scale(4)
    |> c: Scale(4) if twice
    |> * gain if gain != none
    |> + x if wide
}
"""
    )
    assert (layers(load(text)), kinds(load(text), "layer")) == (["b"], [])
    assert layers(load(text, wide=True, twice=True)) == ["a", "c"]
    assert kinds(load(text, wide=True, gain=0.5), "layer") == ["mul", "add"]


def test_values_are_absent_without_an_else(load: Load, findings: Find) -> None:
    text = (
        SCALE
        + """
block Net(side = false)(x [..., 4]) -> ([..., 4], [..., 4]) {
  extra = (x |> a: Scale(4) |> tanh) if side
  both  = x + extra if extra != none else x
  return both * 2.0, extra
}
"""
    )
    model = load(text)
    assert (layers(model), list(model.outputs)) == ([], ["output"])
    model = load(text, side=True)
    assert (layers(model), list(model.outputs)) == (["a"], ["0", "1"])
    broken = text.replace("x + extra if extra != none else x", "x + extra")
    assert codes(findings(broken)) == ["wrong-kind"]
    assert load(broken, side=True).params.total == 4


def test_branches_may_bind_the_same_name_and_own_at_the_same_address(load: Load) -> None:
    text = (
        DENSE
        + SCALE
        + """
block Net(kind = "dense")(x [..., 4]) -> [..., 4] {
  if kind == "dense" {
    y = x |> map: Dense(4)
    z = y |> more: Scale(4)
  } else if kind == "scale" {
    y = x |> map: Scale(4)
  } else {
    y = x
  }
  return y + z if z != none else y * 1.0
}
"""
    )
    assert shapes(load(text)) == {"map.weight": (4, 4), "map.bias": (4,), "more.weight": (4,)}
    assert shapes(load(text, kind="scale")) == {"map.weight": (4,)}
    assert shapes(load(text, kind="none")) == {}


def test_absent_inputs_are_asked_for(load: Load) -> None:
    text = """
dim batch, seq
block Net(n = 4)(x [batch, seq, n], mask bool [batch, seq] = none) -> [batch, seq, n] {
  seen = reshape([batch, seq, 1])(mask) if mask != none
  return where(seen, x, 0.0) if mask != none else x * 1.0
}
block Outer()(x [batch, seq, 4]) -> [batch, seq, 4] {
  return x |> a: Net() |> b: Net()(_, none) |> c: Net()(_, ones(batch, seq))
}
fn ones(batch_, seq_) -> bool [batch_, seq_] {
  return full([batch_, seq_], true)
}
model "net" = Net()
model "outer" = Outer()
"""
    path_model = load(text.replace('model "outer" = Outer()\n', "").replace("block Outer", "block Unused"))
    assert kinds(path_model) == ["reshape", "where"]  # every optional input is given to a model
    outer = load(text.replace('model "net" = Net()\n', ""))
    assert kinds(outer, "op") == ["mul", "mul", "full", "reshape", "where"]


def test_ownership_may_not_depend_on_inputs(findings: Find) -> None:
    text = (
        SCALE
        + """
block Net()(x [4], y [4] = none) -> [4] {
  return x |> a: Scale(4) if y != none
}
"""
    )
    assert codes(findings(text)) == ["ownership"]


def test_what_a_skipped_branch_would_own_is_absent(load: Load) -> None:
    model = load(
        DENSE
        + """
block Net(deep = false)(x [4]) -> [4] {
  if deep {
    extra: Dense(4)
  }
  return x |> main: Dense(4) |> .extra if deep
}
"""
    )
    assert layers(model) == ["main"]


# Repetition ----------------------------------------------------------------------------------------------------------


def test_every_third_layer_may_differ_and_the_first_go_without_a_norm(load: Load) -> None:
    text = (
        DENSE
        + SCALE
        + """
block Layer(n, index, window = none)(x [..., n]) -> [..., n] {
  return x
    |> norm:  Scale(n) if index > 0
    |> dense: Dense(n, bias = window == none)
    |> + x
}
block Net(n = 4, layers = 7, every = 3)(x [..., n]) -> [..., n] {
  return x |> layers[i]: Layer(n, i, window = 128 if i % every > 0) for i in 0..layers
}
"""
    )
    model = load(text)
    assert [t.name for t in model.tensors if "norm" in t.name] == [f"layers.{i}.norm.weight" for i in range(1, 7)]
    assert [t.name for t in model.tensors if "bias" in t.name] == [f"layers.{i}.dense.bias" for i in (0, 3, 6)]
    assert len([t for t in load(text, every=1).tensors if "bias" in t.name]) == 7


def test_the_first_layers_may_be_dense_and_the_rest_of_another_kind(load: Load) -> None:
    model = load(
        DENSE
        + SCALE
        + """
block Net(layers = 5, dense = 2)(x [..., 4]) -> [..., 4] {
  h = x
  for i in 0..layers {
    h = h |> layers[i].mlp: Dense(4) if i < dense else layers[i].gate: Scale(4)
  }
  return h
}
"""
    )
    assert layers(model) == ["layers.0.mlp", "layers.1.mlp", "layers.2.gate", "layers.3.gate", "layers.4.gate"]


def test_loops_carry_what_was_bound_before_them(load: Load) -> None:
    model = load(
        DENSE
        + """
block Net(rounds = 3)(x [..., 4]) -> [..., 4] {
  h = x
  sum = x
  for i in 0..rounds {
    step = h |> dense[i]: Dense(4)
    h = step + h
    sum = sum + h
  }
  return sum
}
"""
    )
    graph = model.graph()
    assert layers(model) == ["dense.0", "dense.1", "dense.2"]
    assert networkx.has_path(graph, "dense.0", "dense.2")
    assert kinds(model, "layer") == ["add"] * 6
    assert networkx.descendants(graph, "dense.2") == {"#add.4", "#add.5", "output:output"}


def test_a_loop_of_no_rounds_changes_nothing(load: Load) -> None:
    text = DENSE + "block Net(n = 0)(x [4]) -> [4] {\n  return x |> a[i]: Dense(4) for i in 0..n |> b: Dense(4)\n}\n"
    assert layers(load(text)) == ["b"]
    assert layers(load(text, n=-3)) == ["b"]
    assert layers(load(text.replace("0..n", "1..n"), n=3)) == ["a.1", "a.2", "b"]


def test_loops_carry_numbers_that_ownership_depends_on(load: Load) -> None:
    """A pyramid of convolutions whose channels double while its frames halve."""
    model = load(
        """
dim batch
layer Conv(from, to, kernel)(x [batch, from, length]) -> [batch, to, (length - kernel) // 2 + 1] {
  weight: param [to, from, kernel]
  return conv(stride = 2)(x, .weight)
}
dim length
block Net(stages = 3)(x [batch, 2, 64]) -> [batch, 2 * 2 ** stages, 7] {
  h = x
  channels = 2
  for i in 0..stages {
    wider = channels * 2
    h = h |> stage[i]: Conv(channels, wider, 2 if i < 2 else 4)
    channels = wider
  }
  return h
}
"""
    )
    assert shapes(model) == {"stage.0.weight": (4, 2, 2), "stage.1.weight": (8, 4, 2), "stage.2.weight": (16, 8, 4)}
    assert output(model) == ["batch", "16", "7"]


def test_loops_nest_and_indices_stand_anywhere_in_an_address(load: Load) -> None:
    model = load(
        SCALE
        + """
block Net(n = 2, m = 3)(x [4]) -> [4] {
  h = x
  for i in 0..n {
    for j in 0..m {
      h = h |> block[i][j].of[i * m + j]: Scale(4)
    }
    h = h |> end[n - 1 - i]: Scale(4)
  }
  return h
}
"""
    )
    assert layers(model) == [
        *(f"block.0.{j}.of.{j}" for j in range(3)),
        "end.1",
        *(f"block.1.{j}.of.{3 + j}" for j in range(3)),
        "end.0",
    ]


def test_a_loop_needs_its_index_in_the_address(findings: Find) -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  return x |> a: Dense(4) for i in 0..3\n}\n"
    assert codes(findings(text)) == ["duplicate-address"]


def test_a_name_bound_inside_a_loop_ends_with_it(findings: Find) -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  for i in 0..2 {\n    y = x |> a[i]: Dense(4)\n  }\n  return y\n}\n"
    found = findings(text)
    assert "unknown-name" in codes(found)
    assert any("before the loop" in (d.help or "") for d in found)


# Hyperparameters -----------------------------------------------------------------------------------------------------


def test_two_dots_forward_what_has_the_same_name(load: Load) -> None:
    text = (
        DENSE
        + """
block Inner(n = 2, m = 3, bias = true)(x [..., n]) -> [..., m] {
  return x |> dense: Dense(..)
}
block Outer(n = 5, bias = false, layers = 1)(x [..., n]) -> [..., 7] {
  return x |> inner[i]: Inner(.., m = 7) for i in 0..layers
}
"""
    )
    assert shapes(load(text)) == {"inner.0.dense.weight": (7, 5)}
    assert shapes(load(text, bias=True)) == {"inner.0.dense.weight": (7, 5), "inner.0.dense.bias": (7,)}


def test_a_head_takes_over_the_hyperparameters_of_another(load: Load) -> None:
    text = (
        DENSE
        + """
block Base(n = 4, m = n * 2, bias = true)(x [..., n]) -> [..., m] {
  return x |> dense: Dense(n, m, bias)
}
block Head(..Base, bias = false, labels = m)(x [..., n]) -> [..., labels] {
  return x |> base: Base(..) |> head: Dense(m, labels)
}
"""
    )
    model = load(text)
    assert model.hyperparameters == {"n": 4, "m": 8, "bias": False, "labels": 8}
    assert shapes(model) == {"base.dense.weight": (8, 4), "head.weight": (8, 8), "head.bias": (8,)}
    assert load(text, n=3).hyperparameters == {"n": 3, "m": 6, "bias": False, "labels": 6}
    assert load(text, m=5, labels=1).hyperparameters == {"n": 4, "m": 5, "bias": False, "labels": 1}


def test_defaults_use_earlier_hyperparameters(load: Load, findings: Find) -> None:
    text = "layer Net(n = 4, m = n // 2, k = max(m, 3))(x [..., n]) -> [..., n] {\n  w: param [m, k]\n  return x * sum(axis = [0, 1])(.w)\n}\n"
    assert shapes(load(text)) == {"w": (2, 3)}
    assert shapes(load(text, n=16)) == {"w": (8, 8)}
    assert shapes(load(text, m=1)) == {"w": (1, 3)}
    assert codes(findings(text.replace("n = 4, m = n // 2", "m = n // 2, n = 4"))) == ["unknown-name"]


def test_definitions_functions_and_lists_of_them_are_hyperparameters(load: Load) -> None:
    text = (
        DENSE
        + SCALE
        + """
fn double(x [...]) -> [...] {
  return x * 2.0
}
block Net(n = 4, Layer = Dense, activation = tanh, Rest = [Scale, Dense, Scale])(x [..., n]) -> [..., n] {
  return x
    |> first:   Layer(n)
    |> activation
    |> rest[i]: Rest[i](n) for i in 0..len(Rest)
    |> (exp if activation == double else activation)
}
model "net" = Net()
model "other" = Net(Layer = Scale, activation = double, Rest = [Dense])
"""
    )
    one = load(text.replace('model "other" = Net(Layer = Scale, activation = double, Rest = [Dense])\n', ""), n=3)
    assert shapes(one) == {
        "first.weight": (3, 3),
        "first.bias": (3,),
        "rest.0.weight": (3,),
        "rest.1.weight": (3, 3),
        "rest.1.bias": (3,),
        "rest.2.weight": (3,),
    }
    assert kinds(one, "layer") == ["tanh", "tanh"]
    other = load(text.replace('model "net" = Net()\n', ""))
    assert shapes(other) == {"first.weight": (4,), "rest.0.weight": (4, 4), "rest.0.bias": (4,)}
    assert kinds(other, "layer") == ["double", "exp"]
    assert other.hyperparameters == {"n": 4, "Layer": "Scale", "activation": "double", "Rest": ["Dense"]}


def test_hyperparameters_are_of_every_plain_kind(load: Load) -> None:
    text = """
layer Net(sizes = [2, 3], rate = 0.5, name = "a b", on = true, off = none, limit = inf)(x [...]) -> [...] {
  w: param sizes_ if on
  return x * rate
}
""".replace("sizes_", "[sizes[0], sizes[1]]")
    body = text.replace(
        "return x * rate",
        'return x * sum(axis = [0, 1])(.w) * rate * (1 if name == "a b" else 2) * min(limit, 1.0) if off == none else x',
    )
    model = load(body)
    assert model.hyperparameters == {
        "sizes": [2, 3],
        "rate": 0.5,
        "name": "a b",
        "on": True,
        "off": None,
        "limit": float("inf"),
    }
    assert shapes(load(body, sizes=[5, 1])) == {"w": (5, 1)}


def test_hyperparameters_come_first_and_tensors_second(load: Load, findings: Find) -> None:
    text = (
        DENSE
        + """
block Net()(x [..., 4]) -> [..., 4] {
  return dense: Dense(4)(x)
}
"""
    )
    assert layers(load(text)) == ["dense"]
    assert codes(findings(text.replace("Dense(4)(x)", "Dense(4, x)"))) != []
    assert codes(findings(text.replace("Dense(4)(x)", "Dense()(x)"))) == ["missing-argument"]
    assert codes(findings(text.replace("Dense(4)(x)", "Dense(4, width = 3)(x)"))) == ["unknown-argument"]
    assert codes(findings(text.replace("Dense(4)(x)", "Dense(4, n = 3)(x)"))) == ["repeated-argument"]
    assert codes(findings(text.replace("Dense(4)(x)", "Dense(4, 4, true, 1)(x)"))) == ["surplus-argument"]
    assert codes(findings(text.replace("Dense(4)(x)", "Dense(4)(x, x)"))) == ["surplus-argument"]


def test_numbers_are_pythons(load: Load) -> None:
    text = """
layer Net(a = 7, b = -2)(x [...]) -> [...] {
  w: param [a // 2, a % 4, 2 ** 3, -(a // b), 1_000 // 100, (1 + 2) * 3, floor(7 / 2)]
  return x * sum(axis = [0, 1, 2, 3, 4, 5, 6])(.w)
}
"""
    assert shapes(load(text)) == {"w": (3, 3, 8, 4, 10, 9, 3)}


# Roles, require, expect ----------------------------------------------------------------------------------------------


def test_the_nearest_role_wins(load: Load) -> None:
    model = load(
        DENSE
        + """
layer Norm(n)(x [..., n]) -> [..., n] {
  role norm
  weight: param [n]
  return x * .weight
}
block Attention(n)(x [..., n]) -> [..., n] {
  role attention
  scale: param []
  return x |> query: Dense(n, bias = false) |> norm: Norm(n) |> * .scale
}
block Net()(x [..., 4]) -> [..., 4] {
  role feed_forward for mlp.up, mlp.down
  role head for out
  return x
    |> attention: Attention(4)
    |> mlp.up:    Dense(4, bias = false)
    |> mlp.down:  Dense(4, bias = false)
    |> out.att:   Attention(4)
    |> last:      Dense(4, bias = false)
}
"""
    )
    assert {t.name: t.role for t in model.tensors} == {
        "attention.scale": "attention",
        "attention.query.weight": "attention",
        "attention.norm.weight": "norm",
        "mlp.up.weight": "feed_forward",
        "mlp.down.weight": "feed_forward",
        "out.att.scale": "attention",
        "out.att.query.weight": "attention",
        "out.att.norm.weight": "norm",
        "last.weight": None,
    }


def test_require_stops_with_its_message_and_the_values(findings: Find, load: Load) -> None:
    text = (
        DENSE
        + """
block Net(n = 8, heads = 2)(x [..., n]) -> [..., n] {
  require n % heads == 0, "n must be divisible by heads"
  return x |> dense: Dense(n)
}
"""
    )
    assert load(text, heads=4).params.total == 72
    (found,) = findings(text, heads=3)
    assert found.code == "require"
    assert "n must be divisible by heads" in found.message and "n = 8" in found.message and "heads = 3" in found.message


def test_expectations_hold_for_the_model_as_written_only(load: Load, findings: Find) -> None:
    text = (
        DENSE
        + 'block Net(n = 2)(x [n]) -> [n] {\n  return x |> a: Dense(n) |> b: frozen Dense(n)\n}\nmodel "it" = Net() {\n'
    )
    good = "  expect params == 12\n  expect trainable == 6\n  expect frozen == 6\n  expect tensors == 4\n  expect n <= 2\n}\n"
    assert load(text + good).params.total == 12
    assert load(text + good, n=3).params.total == 24
    found = findings(text + good.replace("12", "13").replace("tensors == 4", "tensors == 5").replace("n <= 2", "n > 2"))
    assert codes(found) == ["expect"] * 3
    assert "12" in found[0].message and "13" in found[0].message and "1 fewer" in found[0].message


# Shapes --------------------------------------------------------------------------------------------------------------


def test_dimensions_stay_symbolic_and_outputs_are_worked_out(load: Load) -> None:
    model = load(
        """
dim batch, seq
fn halves(x [batch, seq, 4]) -> [batch, seq // 2, 4] {
  return slice(axis = 1, stop = seq // 2)(x)
}
block Net()(x [batch, seq, 4], y [batch, 2 * seq, 4]) -> [batch, 3 * seq, 4] {
  return concat(axis = 1)(x, y)
}
"""
    )
    assert output(model) == ["batch", "3*seq", "4"]
    assert [str(d) for d in model.inputs["y"].shape] == ["batch", "2*seq", "4"]


def test_three_dots_stand_for_the_same_leading_dimensions_everywhere(load: Load, findings: Find) -> None:
    text = """
dim batch, seq
fn gate(x [..., 2], y [..., 3]) -> [..., 2] {
  return x * sum(axis = -1, keep = true)(y)
}
block Net()(x [batch, seq, 2], y [batch, seq, 3]) -> [batch, seq, 2] {
  return gate(x, y)
}
"""
    assert output(load(text)) == ["batch", "seq", "2"]
    (found,) = findings(
        text.replace(
            "y [batch, seq, 3]) -> [batch, seq, 2] {\n  return", "y [seq, batch, 3]) -> [batch, seq, 2] {\n  return"
        )
    )
    assert found.code == "dimension" and found.notes


def test_a_dimension_that_does_not_match_says_where_it_was_bound(findings: Find) -> None:
    (found,) = findings(
        """
dim batch, seq
fn join(x [batch, seq], y [batch, seq]) -> [batch, seq] {
  return x + y
}
block Net()(x [batch, 3], y [batch, 4]) -> [batch, 3] {
  return join(x, y)
}
"""
    )
    assert found.code == "dimension"
    assert any("`seq` was bound to 3" in note.text for note in found.notes)


def test_undeclared_dimensions_are_unknown_names(findings: Find) -> None:
    found = findings("layer Net()(x [batch, 4]) -> [batch, 4] {\n  w: param [4]\n  return x * .w\n}\n")
    assert set(codes(found)) == {"unknown-name"}


def test_what_is_written_of_an_output_is_checked(findings: Find) -> None:
    text = DENSE + "block Net()(x [..., 4]) -> [..., 5] {\n  return x |> a: Dense(4)\n}\n"
    (found,) = findings(text)
    assert found.code == "dimension" and "5]" in found.message and "4]" in found.message


def test_element_types_do_not_mix_by_themselves(load: Load, findings: Find) -> None:
    text = "layer Net()(x [4], keep bool [4], ids int [4]) -> [4] {\n  w: param [4]\n  return EXPR * .w\n}\n"
    assert codes(findings(text.replace("EXPR", "(x + keep + ids)"))) != []
    assert load(text.replace("EXPR", "where(keep, x, 0.0) * ids")).params.total == 4
    assert load(text.replace("EXPR", "(x + real(keep) + ids)")).params.total == 4


# Outputs -------------------------------------------------------------------------------------------------------------


def test_several_outputs_are_bound_together_and_some_not_at_all(load: Load, findings: Find) -> None:
    text = (
        DENSE
        + """
block Two(n)(x [..., n]) -> (sum [..., n], [..., n]) {
  y = x |> dense: Dense(n)
  return x + y, y
}
block Net()(x [..., 4]) -> (a [..., 4], b [..., 4], c [..., 4]) {
  one, _ = left: Two(4)(x)
  _, two = right: Two(4)(x)
  big, small = split([3, 1])(x)
  return one, two, concat(axis = -1)(small, big)
}
"""
    )
    model = load(text)
    assert list(model.outputs) == ["a", "b", "c"]
    assert [n for n in model.graph() if n.startswith("output:")] == ["output:a", "output:b", "output:c"]
    assert codes(findings(text.replace("one, _ = left", "one = left"))) == ["output"]
    assert codes(findings(text.replace("big, small = split", "big, small, _ = split"))) == ["output"]


def test_edges_say_which_output_feeds_which_argument(load: Load) -> None:
    model = load(
        """
block Net()(x [4]) -> [2] {
  scale: param []
  a, b = split([2, 2])(x)
  return b * a * .scale
}
"""
    )
    edge = model.graph().edges["#split.0", "#mul.0"]
    assert sorted(edge["uses"]) == [(0, "b"), (1, "a")]
    assert model.graph().nodes["#split.0"]["shapes"] == ((2,), (2,))


def test_optional_outputs_are_there_or_not(load: Load) -> None:
    text = (
        DENSE
        + """
block Inner(pooler)(x [..., 4]) -> (hidden [..., 4], pooled [..., 4]) {
  pooled = (x |> pool: Dense(4) |> tanh) if pooler
  return x * 1.0, pooled
}
block Net(pooler = true)(x [..., 4]) -> (hidden [..., 4], pooled [..., 4]) {
  h, pooled = inner: Inner(pooler)(x)
  best = pooled * 2.0 if pooled != none
  return h, best
}
"""
    )
    assert list(load(text).outputs) == ["hidden", "pooled"]
    assert list(load(text, pooler=False).outputs) == ["hidden"]


# What families need --------------------------------------------------------------------------------------------------


def test_weights_may_be_stored_in_by_out(load: Load) -> None:
    model = load(
        """
layer Conv1D(n, m)(x [..., n]) -> [..., m] {
  weight: param [n, m]
  bias:   param [m]
  return matmul(x, .weight) + .bias
}
dim batch, seq
block Net()(x [batch, seq, 4]) -> [batch, seq, 12] {
  return x |> c_attn: Conv1D(4, 12)
}
"""
    )
    assert shapes(model) == {"c_attn.weight": (4, 12), "c_attn.bias": (12,)}


@pytest.mark.parametrize("layout", ["side by side", "head by head", "grouped"])
def test_queries_keys_and_values_may_be_fused_in_several_layouts(load: Load, layout: str) -> None:
    cut = {
        "side by side": "q, k, v = split([hidden, hidden, hidden], axis = -1)(mixed)",
        "head by head": """parts = mixed |> reshape([batch, seq, heads, 3, hidden // heads])
  q = parts |> pick(axis = 3, index = 0) |> reshape([batch, seq, hidden])
  k = parts |> pick(axis = 3, index = 1) |> reshape([batch, seq, hidden])
  v = parts |> pick(axis = 3, index = 2) |> reshape([batch, seq, hidden])""",
        "grouped": """threes = mixed |> reshape([batch, seq, 3, hidden]) |> permute([2, 0, 1, 3])
  q = threes |> pick(axis = 0, index = 0)
  k = threes |> pick(axis = 0, index = 1)
  v = threes |> pick(axis = 0, index = 2)""",
    }[layout]
    model = load(
        f"""
import std {{ Linear, attention, split_heads, merge_heads }}
dim batch, seq
block Net(hidden = 8, heads = 2)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  mixed = x |> qkv: Linear(hidden, 3 * hidden)
  {cut}
  return attention(split_heads(heads)(q), split_heads(heads)(k), split_heads(heads)(v))
    |> merge_heads
    |> proj: Linear(hidden, hidden)
}}
"""
    )
    assert shapes(model)["qkv.weight"] == (24, 8)
    assert output(model) == ["batch", "seq", "8"]


def test_a_head_need_not_be_hidden_over_heads(load: Load) -> None:
    model = load(
        """
import std { Linear, attention, split_heads, merge_heads }
dim batch, seq
block Net(hidden = 6, heads = 4, size = 5)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  q = q: Linear(hidden, heads * size, bias = false)(x) |> split_heads(heads)
  k = k: Linear(hidden, size, bias = false)(x)         |> split_heads(1)
  v = v: Linear(hidden, size, bias = false)(x)         |> split_heads(1)
  return attention(q, k, v)
    |> merge_heads
    |> o: Linear(heads * size, hidden, bias = false)
}
"""
    )
    assert shapes(model) == {"q.weight": (20, 6), "k.weight": (5, 6), "v.weight": (5, 6), "o.weight": (6, 20)}


@pytest.mark.parametrize(
    ("step", "weight", "frames"),
    [
        ("Conv1d(4, 8, 3, padding = 1)", (8, 4, 3), "32"),
        ("Conv1d(4, 8, 3, groups = 2)", (8, 2, 3), "30"),
        ("Conv1d(4, 4, 3, groups = 4, padding = 2, dilation = 2)", (4, 1, 3), "32"),
        ("Conv1d(4, 8, 4, stride = 4)", (8, 4, 4), "8"),
        ("Up(4, 2, 4)", (4, 2, 4), "66"),
    ],
)
def test_convolutions_grouped_depthwise_and_transposed(
    load: Load, step: str, weight: tuple[int, ...], frames: str
) -> None:
    used = "Conv1d" if "Conv1d" in step else "Linear"
    up = """
layer Up(from, to, kernel)(x [batch, from, length]) -> [batch, to, 2 * (length - 1) + kernel] {
  weight: param [from, to, kernel]
  return conv(stride = 2, transposed = true)(x, .weight)
}
"""
    model = load(
        f"""
import std {{ {used} }}
dim batch{", length" if used == "Linear" else ""}
{up if used == "Linear" else ""}
block Net()(x [batch, 4, 32]) -> [batch, {weight[1] if used == "Linear" else weight[0]}, {frames}] {{
  {"scaled = x |> pre: Linear(32, 32)" if used == "Linear" else "scaled = x * 2.0"}
  return scaled |> conv: {step}
}}
"""
    )
    assert shapes(model)["conv.weight"] == weight


def test_a_bias_table_that_layer_0_owns_serves_all(load: Load) -> None:
    """T5: the table of relative positions stands in the first layer's attention."""
    model = load(
        """
import std { Linear, Embedding, split_heads, merge_heads }
dim batch, seq
fn distance(length) -> int [length, length] {
  position = arange(length)
  return min(abs(position - reshape([length, 1])(position)), 31)
}
block Attention(hidden, heads, first)
               (x [batch, seq, hidden], bias [1, heads, seq, seq] = none)
               -> (out [batch, seq, hidden], bias [1, heads, seq, seq]) {
  if first {
    table = distance(seq)
      |> relative_attention_bias: Embedding(32, heads)
      |> permute([2, 0, 1])
      |> reshape([1, heads, seq, seq])
  }
  used = table if first else bias
  q = q: Linear(hidden, hidden, bias = false)(x) |> split_heads(heads)
  k = k: Linear(hidden, hidden, bias = false)(x) |> split_heads(heads)
  weights = softmax(matmul(q, transpose(k)) + used)
  return matmul(weights, k) |> merge_heads |> + x, used
}
block Net(layers = 3)(x [batch, seq, 8]) -> [batch, seq, 8] {
  h, bias = block[0].attention: Attention(8, 2, true)(x)
  for i in 1..layers {
    h, _ = block[i].attention: Attention(8, 2, false)(h, bias)
  }
  return h
}
"""
    )
    tables = [t.name for t in model.tensors if "relative" in t.name]
    assert tables == ["block.0.attention.relative_attention_bias.weight"]
    graph = model.graph()
    assert all(networkx.has_path(graph, tables[0][:-7], f"block.{i}.attention#softmax.0") for i in range(3))


def test_experts_may_lie_in_one_tensor_with_the_best_of_them_chosen(load: Load) -> None:
    model = load(
        """
import std { Linear, gelu }
dim batch, seq
layer Experts(count, n, m)(x [..., n], chosen int [...]) -> [..., m] {
  weight: param [count, m, n]
  bias:   param [count, m]
  return expert_linear(x, chosen, .weight, .bias)
}
block Net(n = 4, m = 8, count = 6, best = 2)(x [batch, seq, n]) -> [batch, seq, n] {
  scores = x |> router: Linear(n, count, bias = false)
  top, chosen = topk(k = best)(scores)
  shares = softmax(top) |> reshape([batch, seq, best, 1])
  each = x |> reshape([batch, seq, 1, n]) |> expand([batch, seq, best, n])
  wide = up: Experts(count, n, m)(each, chosen) |> gelu
  down = down: Experts(count, m, n)(wide, chosen)
  return sum(axis = 2)(down * shares)
}
"""
    )
    assert shapes(model) == {
        "router.weight": (6, 4),
        "up.weight": (6, 8, 4),
        "up.bias": (6, 8),
        "down.weight": (6, 4, 8),
        "down.bias": (6, 4),
    }
    assert output(model) == ["batch", "seq", "4"]


# Lines and files -----------------------------------------------------------------------------------------------------


def test_lines_end_statements_but_not_in_brackets_or_before_a_step(load: Load) -> None:
    model = load(
        DENSE
        + """
block Net(
  n = 4,   # the width
)(
  x [..., n],
) -> [..., n]
{
  y = (x
    + x)     # still within the brackets

  return y   # and a comment between steps

    # of its own
    |> a: Dense(
      n,
      bias = false,
    )
    |> b: Dense(n)
}
"""
    )
    assert layers(model) == ["a", "b"]


def test_two_hashes_document_what_follows(load: Load) -> None:
    model = load(
        DENSE
        + '\n## Not this.\n# nor this\nblock Net()(x [4]) -> [4] {\n  return x |> a: Dense(4)\n}\n## A net\n## of one layer.\nmodel "it" = Net()\n'
    )
    assert model.doc == "A net\nof one layer."


def test_files_import_from_files_beside_and_below_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "dense.arch").write_text(DENSE)
    (tmp_path / "parts" / "all.arch").write_text(
        'export "dense.arch" { Dense as Map }\nexport ops { tanh as squash }\n'
    )
    (tmp_path / "net.arch").write_text(
        """
import "parts/all.arch" { Map as Affine, squash }
block Net()(x [..., 4]) -> [..., 4] {
  return x |> a: Affine(4) |> squash
}
model "net" = Net()
"""
    )
    model = archspec.load(str(tmp_path / "net.arch"))
    assert (model.params.total, kinds(model)) == (20, ["linear", "tanh"])
    assert model.tensors[0].type == "Dense"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('import "../outside.arch" { Dense }', "import-outside"),
        ('import "/etc/passwd" { Dense }', "import-outside"),
        ('import "missing.arch" { Dense }', "missing-file"),
        ("import std { Linaer }", "unknown-import"),
        ("import nothing { Dense }", "unknown-import"),
        ("import std { Linear }", "unused-import"),
        ("dim idle", "unused-dimension"),
    ],
)
def test_imports_that_do_not_do(findings: Find, line: str, code: str) -> None:
    text = f"{line}\n" + SCALE + "block Net()(x [4]) -> [4] {\n  return x |> a: Scale(4)\n}\n"
    assert code in codes(findings(text))


def test_one_file_may_have_several_models(tmp_path: Path) -> None:
    path = tmp_path / "two.arch"
    path.write_text(SCALE + 'model "small" = Scale(2)\nmodel "a: big one" = Scale(n = 20)\n')
    assert archspec.load(f"{path}:small").params.total == 2
    assert archspec.load(f"{path}:a: big one").params.total == 20
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(path))
    assert codes(caught.value.diagnostics) == ["which-model"]
    assert "small" in str(caught.value) and "a: big one" in str(caught.value)
