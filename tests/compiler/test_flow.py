"""What a spec means, rule by rule: options and repetition."""

import networkx
import pytest
from paths import DATA
from small import DENSE, SCALE, codes, findings, layers, load, operations, output, shapes

import archspec

# Options -------------------------------------------------------------------------------------------------------------


def test_a_step_is_skipped_or_replaced() -> None:
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
    assert (layers(load(text)), operations(load(text))) == (["b"], [])
    assert layers(load(text, wide=True, twice=True)) == ["a", "c"]
    assert operations(load(text, wide=True, gain=0.5)) == ["mul", "add"]


def test_values_are_absent_without_an_else() -> None:
    text = (
        SCALE
        + """
block Net(side = false)(x [..., 4]) -> ([..., 4], [..., 4]?) {
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
    assert codes(broken) == ["wrong-kind"]
    assert load(broken, side=True).params.total == 4


def test_branches_may_bind_the_same_name_and_own_at_the_same_address() -> None:
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


def test_absent_inputs_are_asked_for() -> None:
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
    assert operations(path_model, "op") == ["reshape", "where"]  # every optional input is given to a model
    outer = load(text.replace('model "net" = Net()\n', ""))
    assert operations(outer, "op") == ["mul", "mul", "full", "reshape", "where"]


def test_ownership_may_not_depend_on_inputs() -> None:
    text = (
        SCALE
        + """
block Net()(x [4], y [4] = none) -> [4] {
  return x |> a: Scale(4) if y != none
}
"""
    )
    assert codes(text) == ["ownership"]


def test_what_a_skipped_branch_would_own_is_absent() -> None:
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


def test_assignments_in_a_skipped_branch_declare_no_addresses() -> None:
    model = load(
        DENSE
        + """
block Net(deep = false)(x [4]) -> [4] {
  role additional for extra
  if deep {
    y = extra: Dense(4)(x)
  } else {
    y = x
  }
  return x |> main: Dense(4) |> + y
}
"""
    )
    assert layers(model) == ["main"]


# Repetition ----------------------------------------------------------------------------------------------------------


def test_every_third_layer_may_differ_and_the_first_go_without_a_norm() -> None:
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


def test_the_first_layers_may_be_dense_and_the_rest_of_another_kind() -> None:
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


def test_loops_carry_what_was_bound_before_them() -> None:
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
    assert operations(model) == ["add"] * 6
    assert networkx.descendants(graph, "dense.2") == {"#add.4", "#add.5", "output:output"}


def test_a_loop_of_no_rounds_changes_nothing() -> None:
    text = DENSE + "block Net(n = 0)(x [4]) -> [4] {\n  return x |> a[i]: Dense(4) for i in 0..n |> b: Dense(4)\n}\n"
    assert layers(load(text)) == ["b"]
    assert layers(load(text.replace("0..n", "1..n"), n=1)) == ["b"]
    assert layers(load(text.replace("0..n", "1..n"), n=3)) == ["a.1", "a.2", "b"]


def test_a_loop_does_not_count_down() -> None:
    """-3 layers are a mistake, and no model without layers."""
    text = DENSE + "block Net(n = 0)(x [4]) -> [4] {\n  return x |> a[i]: Dense(4) for i in 0..n |> b: Dense(4)\n}\n"
    with pytest.raises(archspec.ArchError, match="loop end -3 is below its start 0"):
        load(text, n=-3)
    same = DENSE + "fn same(x [4]) -> [4] {\n  for i in 3..1 { x = x + x }\n  return x\n}\n"
    with pytest.raises(archspec.ArchError, match="loop end 1 is below its start 3"):
        load(same + "block Net()(x [4]) -> [4] {\n  return same(x) |> b: Dense(4)\n}\n")


def test_loops_carry_numbers_that_ownership_depends_on() -> None:
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


def test_what_is_forwarded_in_a_loop_has_the_values_of_the_iteration() -> None:
    text = """
layer Wide(n)(x [4]) -> [4] {
  w: param [n]
  return x * sum(axis = 0)(.w)
}
block Net(n = 2)(x [4]) -> [4] {
  for i in 0..3 {
    n = 2 * n
    x = x + wide[i]: Wide(..)(x)
  }
  return x
}
"""
    assert shapes(load(text)) == {"wide.0.w": (4,), "wide.1.w": (8,), "wide.2.w": (16,)}


def test_equal_layers_in_a_loop_take_the_inputs_of_their_iteration() -> None:
    text = """
layer Add(n)(x [n], y [n]) -> [n] {
  w: param [n]
  return x * .w + y
}
block Net(n = 2)(x [n], y [3, n]) -> [n] {
  return x |> add[i]: Add(n)(_, reshape([n])(slice(0, i, i + 1)(y))) for i in 0..3
}
"""
    assert operations(load(text), "op") == ["slice", "reshape", "mul", "add"] * 3
    alternating = text.replace(
        "reshape([n])(slice(0, i, i + 1)(y))) for", "reshape([n])(slice(0, 0, 1)(y))) if i != 1 for"
    )
    assert shapes(load(alternating)) == {"add.0.w": (2,), "add.2.w": (2,)}


def test_loops_nest_and_indices_stand_anywhere_in_an_address() -> None:
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


def test_a_loop_needs_its_index_in_the_address() -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  return x |> a: Dense(4) for i in 0..3\n}\n"
    assert codes(text) == ["duplicate-address"]


def test_what_a_round_binds_is_gone_in_the_next() -> None:
    text = (
        SCALE
        + """
block Net()(x [4]) -> [4] {
  a: Scale(4)
  h = x
  for i in 0..3 {
    if i == 0 {
      y = h |> .a
      k = 1
    }
    g = h + y if y != none else h * 2.0
    h = g |> b[i]: Scale(4) if k == none
  }
  return h
}
"""
    )
    assert operations(load(text)) == ["add", "mul", "mul"]
    assert layers(load(text)) == ["a", "b.1", "b.2"]


def test_an_index_cannot_be_assigned() -> None:
    body = "  h = x\n  for i in 0..2 {\n    i = 1\n    h = h |> a: Scale(4)\n  }\n  return h\n"
    assert "duplicate-name" in codes(SCALE + f"block Net()(x [4]) -> [4] {{\n{body}}}\n")


def test_a_name_bound_inside_a_loop_ends_with_it() -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  for i in 0..2 {\n    y = x |> a[i]: Dense(4)\n  }\n  return y\n}\n"
    found = findings(text)
    assert "unknown-name" in [d.code for d in found]
    assert any("before the loop" in (d.help or "") for d in found)


def test_the_piped_value_is_that_of_the_outer_chain_again_after_an_inner_one() -> None:
    model = load(
        DENSE
        + """
fn both(a [..., n], b [..., n]) -> [..., n] { return a - b }
dim n
block B(k = 4)(x [batch, k]) -> [batch, k] {
  return x |> a: Dense(k, k) |> both((x |> gelu), _)
}
dim batch
import std { gelu }
"""
    )
    graph = model.graph()
    (node,) = (n for n, data in graph.nodes(data=True) if data["type"] == "both")
    uses = {argument: source for source, _, data in graph.in_edges(node, data=True) for _, argument in data["uses"]}
    assert uses["b"] == "a" and graph.nodes[uses["a"]]["type"] == "gelu"


def test_an_initializer_for_matrices_says_that_a_vector_is_none() -> None:
    (found,) = findings("layer A(n = 4)(x [n]) -> [n] {\n  w: param [n] ~ xavier_uniform()\n  return x * .w\n}")
    assert found.message == "`xavier_uniform` expects a tensor with two axes or more, found a vector"


FAULTS = DATA / "faults"


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ("residual_first_round.arch", []),
        ("residual_widths.arch", []),
        ("residuals.arch:last", []),
        ("residuals.arch:beside", []),
        ("residuals.arch:none", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:highway", []),
        ("residuals.arch:gated", []),
        ("residuals.arch:projected", []),
        ("residuals.arch:joined", []),
        ("residuals.arch:split", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:mapped", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:activated", ["no residual connection carries `x` from one iteration to the next"]),
        ("residuals.arch:recurrent", []),
        ("residuals.arch:constant", ["no residual connection carries `x` from one iteration to the next"]),
        ("residuals.arch:silent", []),
        *[(f"residuals_vision.arch:{name}", []) for name in ("stem", "resnet", "option", "mask")],
        ("residuals.arch:named", ["no residual connection carries `x` from one iteration to the next"]),
    ],
)
def test_a_missing_residual_connection_is_missing_in_every_iteration(spec: str, warned: list[str]) -> None:
    warnings = archspec.load(str(FAULTS / spec)).warnings
    assert [warning.message for warning in warnings if warning.code == "no-residual"] == warned
