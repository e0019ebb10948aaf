"""What a spec means, rule by rule: hyperparameters, roles, requirements, shapes and outputs."""

import numpy as np
import pytest
import reference
from paths import DATA
from small import DENSE, SCALE, codes, findings, layers, load, operations, output, shapes

import archspec
from archspec.pipeline.model import get_compilation

TAKEN = """
dim batch
block Inner(n = 4)(x [batch, n], mask bool [batch] = none, y [batch, n] = none) -> [batch, n] {
  w: param [n]
  return (where(reshape([batch, 1])(mask), x, 0.0) if mask != none else x) * .w + (y if y != none else x)
}
block Outer(..Inner)(..Inner, scale [n] = none) -> [batch, n] {
  h = inner: Inner(..)(..)
  return h * scale if scale != none else h
}
model "outer" = Outer()
"""


def test_inputs_are_taken_over_with_types_and_defaults() -> None:
    model = load(TAKEN)
    assert {name: type.dtype for name, type in model.inputs.items()} == {
        "x": "real",
        "mask": "bool",
        "y": "real",
        "scale": "real",
    }
    spelt = load(TAKEN.replace("Inner(..)(..)", "Inner(..)(x, y = y, mask = mask)"))
    assert operations(model, "op") == operations(spelt, "op")
    positional = TAKEN.replace("Inner(..)(..)", "Inner(..)(x * 2.0, ..)")
    assert load(positional).params.total == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(..Inner, scale", "(..Innner, scale", "unknown definition `Innner`"),
        ("Inner(..)(..)", "Inner(..)(.., ..)", "`..` is specified more than once"),
        ("(..Inner, scale", "(..Inner, x [n], scale", "input `x` of `Inner` expects shape [batch, 4], found [4]"),
        ("block Outer(..Inner)(", "block Outer(m = 4)(", "unknown name `n`"),
    ],
)
def test_taken_inputs_that_do_not_do(old: str, new: str, message: str) -> None:
    assert old in TAKEN
    assert any(message in d.render() for d in findings(TAKEN.replace(old, new)))


# Hyperparameters -----------------------------------------------------------------------------------------------------


def test_two_dots_forward_what_has_the_same_name() -> None:
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


def test_a_head_takes_over_the_hyperparameters_of_another() -> None:
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


def test_defaults_use_earlier_hyperparameters() -> None:
    text = """
layer Net(n = 4, m = n // 2, k = max(m, 3))(x [..., n]) -> [..., n] {
  w: param [m, k]
  return x * sum(axis = [0, 1])(.w)
}
"""
    assert shapes(load(text)) == {"w": (2, 3)}
    assert shapes(load(text, n=16)) == {"w": (8, 8)}
    assert shapes(load(text, m=1)) == {"w": (1, 3)}
    assert codes(text.replace("n = 4, m = n // 2", "m = n // 2, n = 4")) == ["unknown-name"]


def test_definitions_functions_and_lists_of_them_are_hyperparameters() -> None:
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
    assert operations(one) == ["tanh", "tanh"]
    other = load(text.replace('model "net" = Net()\n', ""))
    assert shapes(other) == {"first.weight": (4,), "rest.0.weight": (4, 4), "rest.0.bias": (4,)}
    assert operations(other) == ["double", "exp"]
    assert other.hyperparameters == {"n": 4, "Layer": "Scale", "activation": "double", "Rest": ["Dense"]}


def test_hyperparameters_are_of_every_plain_kind() -> None:
    text = """
layer Net(sizes = [2, 3], rate = 0.5, name = "a b", on = true, off = none, limit = inf)(x [...]) -> [...] {
  w: param [sizes[0], sizes[1]] if on
  scale = min(limit, rate) if name == "a b" and off == none else 2.0
  return x * scale * sum(axis = [0, 1])(.w)
}
"""
    assert load(text).hyperparameters == {
        "sizes": [2, 3],
        "rate": 0.5,
        "name": "a b",
        "on": True,
        "off": None,
        "limit": float("inf"),
    }
    assert shapes(load(text, sizes=[5, 1], name="b", limit=1, off="on")) == {"w": (5, 1)}


def test_hyperparameters_come_first_and_tensors_second() -> None:
    text = (
        DENSE
        + """
block Net()(x [..., 4]) -> [..., 4] {
  return dense: Dense(4)(x)
}
"""
    )
    assert layers(load(text)) == ["dense"]
    assert codes(text.replace("Dense(4)(x)", "Dense(4, x)")) != []
    assert codes(text.replace("Dense(4)(x)", "Dense()(x)")) == ["missing-argument"]
    untaken = "Dense()(x) if on else x".join(text.replace("Net()", "Net(n = 4, on = n > 4)").split("Dense(4)(x)"))
    assert codes(untaken) == ["missing-argument"], (
        "also where the definition around it has a hyperparameter of the name"
    )
    assert codes(text.replace("Dense(4)(x)", "Dense(4, width = 3)(x)")) == ["unknown-argument"]
    assert codes(text.replace("Dense(4)(x)", "Dense(4, n = 3)(x)")) == ["repeated-argument"]
    assert codes(text.replace("Dense(4)(x)", "Dense(4, 4, true, 1)(x)")) == ["surplus-argument"]
    assert codes(text.replace("Dense(4)(x)", "Dense(4)(x, x)")) == ["surplus-argument"]


def test_numbers_are_pythons() -> None:
    text = """
layer Net(a = 7, b = -2)(x [...]) -> [...] {
  w: param [a // 2, a % 4, 2 ** 3, -(a // b), 1_000 // 100, (1 + 2) * 3, floor(7 / 2)]
  return x * sum(axis = [0, 1, 2, 3, 4, 5, 6])(.w)
}
"""
    assert shapes(load(text)) == {"w": (3, 3, 8, 4, 10, 9, 3)}


def test_operations_on_numbers_take_their_operands_by_name() -> None:
    text = """
fn f(k, op = max) { return op(b = k, a = 2) + mod(b = 3, a = k) }
layer Net(n = 4, m = f(n), half = floordiv(b = 2, a = n), root = sqrt(x = n))(x [n]) -> [n] {
  h = min(b = n, a = 3)
  w: param [h, n]
  if max(a = 2, b = h) > 2 { v: param [m + half, n] }
  for i in 0..mod(n, b = 3) { u[i]: param [n] }
  return x * (sum(axis = 0)(.w) + sum(axis = 0)(.v)) * .u[0] * root
}
model "it" = Net(mod(b = 5, a = 9))
"""
    model = load(text)
    assert model.hyperparameters == {"n": 4, "m": 5, "half": 2, "root": 2.0}
    assert shapes(model) == {"w": (3, 4), "v": (7, 4), "u.0": (4,)}
    assert codes(text.replace("sqrt(x = n)", "sqrt(y = n)")) == ["unknown-argument"]
    assert codes(text.replace("op(b = k, a = 2)", "op(c = k, a = 2)")) == ["unknown-argument"]
    assert codes(text.replace("op(b = k, a = 2)", "op(k)")) == ["missing-argument"]


# Roles, require, expect ----------------------------------------------------------------------------------------------


def test_the_nearest_role_wins() -> None:
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


def test_roles_reach_addresses_inside_other_definitions() -> None:
    text = (
        DENSE
        + SCALE
        + """
block Inner(n)(x [..., n]) -> [..., n] {
  role gate for up
  scale: param [n]
  return x * .scale |> up: Dense(n, bias = false) |> down: Dense(n) |> last: Dense(n, bias = false)
}
block Middle(n)(x [..., n]) -> [..., n] {
  role output for inner.down.bias
  role expert for inner.down
  return x |> inner: Inner(n) |> a.norm: Scale(n) |> a.other: Scale(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  role head for middle.inner.up, middle.inner.down, middle.a.norm
  role pooler for middle.inner
  role embedding for middle.a
  return x |> middle: Middle(4) |> end: Scale(4)
}
"""
    )
    assert {t.name: t.role for t in load(text).tensors} == {
        "middle.inner.scale": "pooler",
        "middle.inner.up.weight": "gate",
        "middle.inner.down.weight": "expert",
        "middle.inner.down.bias": "output",
        "middle.inner.last.weight": "pooler",
        "middle.a.norm.weight": "head",
        "middle.a.other.weight": "embedding",
        "end.weight": None,
    }


@pytest.mark.parametrize(
    ("addresses", "wrong"),
    [
        ("part.a, part.a.b, part.a.b.bias, part.a.b.weight", []),
        ("part.c, part.c.d, part, part.a.b.bias", []),
        ("part.e, part.a.bias", ["part.e", "part.a.bias"]),
        ("part.a.b.weight.x, par, part.a.b.c", ["part.a.b.weight.x", "par", "part.a.b.c"]),
    ],
)
def test_roles_are_for_what_may_be_declared_inside(addresses: str, wrong: list[str]) -> None:
    text = (
        DENSE
        + f"""
block Part(n, more)(x [..., n]) -> [..., n] {{
  h = x |> a.b: Dense(n, bias = false)
  return h |> c.d: Dense(n) if more
}}
block Net()(x [..., 4]) -> [..., 4] {{
  role head for {addresses}
  return x |> part: Part(4, more = false)
}}
"""
    )
    if wrong:
        assert [found.message for found in findings(text)] == [f"nothing is declared at `{word}`" for word in wrong]
    else:
        assert shapes(load(text)) == {"part.a.b.weight": (4, 4)}


def test_require_stops_with_its_message_and_the_values() -> None:
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


def test_expectations_hold_for_the_model_as_written_only() -> None:
    text = (
        DENSE
        + """
block Net(n = 2)(x [n]) -> [n] {
  return x |> a: Dense(n) |> b: frozen Dense(n)
}
model "it" = Net() {
  expect params == 12
  expect trainable == 6
  expect frozen == 6
  expect tensors == 4
  expect n <= 2
}
"""
    )
    assert load(text).params.total == 12
    assert load(text, n=3).params.total == 24
    found = findings(text.replace("12", "13").replace("tensors == 4", "tensors == 5").replace("n <= 2", "n > 2"))
    assert [d.code for d in found] == ["expect"] * 3
    assert all(part in found[0].message for part in ("12", "13", "1 fewer"))


# Shapes --------------------------------------------------------------------------------------------------------------


def test_dimensions_stay_symbolic_and_outputs_are_worked_out() -> None:
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


def test_three_dots_stand_for_the_same_leading_dimensions_everywhere() -> None:
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


def test_a_dimension_that_does_not_match_says_where_it_was_bound() -> None:
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
    assert any("`seq` of `join` was bound to 3" in note.text for note in found.notes)


def test_undeclared_dimensions_are_unknown_names() -> None:
    found = findings("layer Net()(x [batch, 4]) -> [batch, 4] {\n  w: param [4]\n  return x * .w\n}\n")
    assert {d.code for d in found} == {"unknown-name"}


def test_what_is_written_of_an_output_is_checked() -> None:
    text = DENSE + "block Net()(x [..., 4]) -> [..., 5] {\n  return x |> a: Dense(4)\n}\n"
    (found,) = findings(text)
    assert found.code == "dimension" and "5]" in found.message and "4]" in found.message


def test_element_types_do_not_mix_by_themselves() -> None:
    text = "layer Net()(x [4], keep bool [4], ids int [4]) -> [4] {\n  w: param [4]\n  return EXPR * .w\n}\n"
    assert codes(text.replace("EXPR", "(x + keep + ids)")) != []
    assert load(text.replace("EXPR", "where(keep, x, 0.0) * ids")).params.total == 4
    assert load(text.replace("EXPR", "(x + real(keep) + ids)")).params.total == 4


# Outputs -------------------------------------------------------------------------------------------------------------


def test_several_outputs_are_bound_together_and_some_not_at_all() -> None:
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
    assert codes(text.replace("one, _ = left", "one = left")) == ["output"]
    assert codes(text.replace("big, small = split", "big, small, _ = split")) == ["output"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[parts(x)]", "expected numbers or names in this list, found a group of outputs"),
        ("parts(x)[0]", "expected a list to index, found a group of outputs"),
        ("parts(x) + x", "`+` expects a tensor, found a group of outputs"),
        ("reshape(parts(x))(x)", "hyperparameter `shape` of `reshape` expects a constant, found a group of outputs"),
    ],
)
def test_several_outputs_are_not_one_value(expression: str, message: str) -> None:
    text = "fn parts(x [8]) -> ([4], [4]) {\n  return split([4, 4])(x)\n}\n"
    text += f'layer It()(x [8]) -> [8] {{\n  y = {expression}\n  return y\n}}\nmodel "it" = It()\n'
    assert message in [finding.message for finding in findings(text)]


def test_outputs_have_names_of_their_own() -> None:
    text = SCALE + "block Net()(x [4]) -> (y [4], y [4]) {\n  y = x |> a: Scale(4)\n  return y, y * 2.0\n}\n"
    assert codes(text) == ["duplicate-name"]


def test_edges_say_which_output_feeds_which_argument() -> None:
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


def test_optional_outputs_are_there_or_not() -> None:
    text = (
        DENSE
        + """
block Inner(pooler)(x [..., 4]) -> (hidden [..., 4], pooled [..., 4]?) {
  pooled = (x |> pool: Dense(4) |> tanh) if pooler
  return x * 1.0, pooled
}
block Net(pooler = true)(x [..., 4]) -> (hidden [..., 4], pooled [..., 4]?) {
  h, pooled = inner: Inner(pooler)(x)
  best = pooled * 2.0 if pooled != none
  return h, best
}
"""
    )
    assert list(load(text).outputs) == ["hidden", "pooled"]
    assert list(load(text, pooler=False).outputs) == ["hidden"]
    undeclared = text.replace("pooled [..., 4]?)", "pooled [..., 4])")
    assert list(load(undeclared).outputs) == ["hidden", "pooled"]
    with pytest.raises(archspec.ArchError, match="output `pooled` of `Inner` is `none` here"):
        load(undeclared, pooler=False)


def test_every_combination_of_optional_inputs_is_compiled() -> None:
    text = (
        DENSE
        + """
block Net(n = 4)(x [..., n], a [..., n] = none, b [..., n] = none) -> [..., n] {
  only_a: unused Dense(n)
  y = reshape([2, n])(a) if a != none and b == none else x
  return y + x
}
"""
    )
    with pytest.raises(archspec.ArchError, match="without `b`"):
        load(text)


def test_what_only_the_absence_of_an_input_uses_is_used() -> None:
    text = (
        DENSE
        + """
block Net(n = 4)(x [..., n], extra [..., n] = none) -> [..., n] {
  other: Dense(n)
  shift: param [n]
  return x + extra if extra != none else .other(x) + .shift
}
"""
    )
    assert load(text).params.total == load(text, n=4).params.total == 24
    spare = text.replace("  return x +", "  spare: Dense(n)\n  y = .spare(x)\n  return x +")
    with pytest.raises(archspec.ArchError, match="`spare` does not affect any output"):
        load(spare)


def test_comparing_a_layer_with_none_asks_whether_it_is_there() -> None:
    text = (
        DENSE
        + """
block Net(n = 4, flag = true)(x [..., n]) -> [..., n] {
  a: Dense(n) if flag
  return x if .a == none else .a(x)
}
"""
    )
    assert [load(text, flag=flag).params.total for flag in (True, False)] == [20, 0]


def test_reals_of_dimensions_are_refused_in_words_of_the_language() -> None:
    """Nobody knows `seq * 2.0` when a spec is compiled; Python's own words about it would help nobody."""
    text = """
dim seq
block Net(n = 4)(x [seq, n]) -> [seq, n] {
  return x * (seq * 2.0) + (0.5 + seq) + min(seq, 2.0)
}
"""
    messages = [found.message for found in findings(text)]
    assert messages == [
        "`*` cannot combine a real and a symbolic dimension",
        "`+` cannot combine a real and a symbolic dimension",
        "`min` cannot combine a real and a symbolic dimension",
    ]


@pytest.mark.parametrize("condition", ["seq < 3", "3 < seq", "seq == 3", "3 != seq", "seq >= batch"])
def test_whether_a_dimension_is_a_number_is_not_known(condition: str) -> None:
    found = findings(
        f"""
dim batch, seq
fn f(x [batch, seq]) -> [batch, seq] {{ return x if {condition} else x + 1.0 }}
layer L(x [batch, seq]) -> [batch, seq] {{
  w: param []
  return f(x) * .w
}}
"""
    )
    left, operator, right = condition.split()
    assert [each.message for each in found] == [f"`{left} {operator} {right}` is not a compile-time constant"]


@pytest.mark.parametrize("quotient", ["seq / 2", "8 / seq"])
def test_a_dimension_is_divided_with_two_strokes(quotient: str) -> None:
    head = "dim batch, seq\nlayer L(x [batch, seq]) -> [batch, seq] {\n  w: param []\n"
    text = f"{head}  return x * .w * ({quotient})\n}}\n"
    (found,) = findings(text)
    assert (found.message, found.help) == ("`/` cannot divide symbolic dimensions", "use `//` for integer division")


def test_names_of_a_definition_hide_dimensions() -> None:
    model = archspec.load(str(DATA / "faults" / "hidden_dimensions.arch:outer"))
    assert {name: type.shape[1:] for name, type in (model.inputs | model.outputs).items()} == {
        "x": (6, 4),
        "n": (3,),
        "y": (4, 6),
        "z": (3,),
    }


def test_an_input_is_no_size() -> None:
    text = "dim batch, seq\nfn f(x [batch, seq], seq [batch]) -> [batch] { return seq + sum(axis = 1)(x) }\n"
    block = "block B()(x [batch]) -> [batch] { return x * 2.0 }"
    found, unused = findings(text + block)
    assert unused.message == "unused dimension `seq`"
    assert (found.code, found.message, found.help) == (
        "wrong-kind",
        "expected a size, found the input `seq`",
        "rename the input to use the dimension",
    )
    (found,) = findings(text.replace("dim batch, seq", "dim batch") + block)
    assert (found.message, found.help) == ("expected a size, found the input `seq`", None)


UNTAKEN = """
import std { Linear, mean, relu }
dim batch, seq
fn two(x [batch]) -> ([batch], [batch]) { return x, x }
block Net(n = 4, on = false)(x [batch, seq, n], mask int [batch, seq] = none) -> [batch, n] {
  if on {
    BODY
  }
  return mean(x, mask)
}
model "net" = Net()
"""


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("y = mean(Linear, mask)", "wrong-kind", "input `x` of `mean` expects a tensor, found a layer `Linear`"),
        ('y = mean("x")', "wrong-kind", 'input `x` of `mean` expects a tensor, found the string "x"'),
        ("y = relu(none)", "wrong-kind", "input `x` of `relu` expects a tensor, found `none`"),
        ("y = x + Linear", "wrong-kind", "`+` expects a tensor or number, found a layer `Linear`"),
        ("y = x |> relu |> + [1]", "wrong-kind", "`+` expects a tensor or number, found the list [1]"),
        ("y = Linear |> relu", "wrong-kind", "input `x` of `relu` expects a tensor, found a layer `Linear`"),
        ("y, z = relu(x)", "output", "cannot assign 1 output to 2 names"),
        ("y = x |> two", "output", "cannot assign 2 outputs to 1 name"),
        ("y = relu(two(x))", "wrong-kind", "input `x` of `relu` expects one tensor, found 2 outputs"),
        ("return x, x", "output", "`Net` declares 1 output but returns 2"),
        (
            "y = a: Linear(n, n, bias = 3)(x)",
            "wrong-kind",
            "hyperparameter `bias` of `Linear` expects type boolean, found the integer 3",
        ),
        ("y = x if 3 else x", "wrong-kind", "expected a boolean condition, found the integer 3"),
        ("y = x if not 3 else x", "wrong-kind", "`not` expects a boolean, found the integer 3"),
        ("for i in 0..2.5 { y = x }", "wrong-kind", "expected an integer loop bound, found the real 2.5"),
        ("y = 3(x)", "wrong-kind", "cannot apply the integer 3"),
        ("y = .absent", "unknown-address", "nothing is declared at `.absent`"),
    ],
)
def test_branches_that_no_model_takes_are_checked(body: str, code: str, message: str) -> None:
    found = [f for f in findings(UNTAKEN.replace("BODY", body)) if f.severity == "error"]
    assert [(f.code, f.message) for f in found] == [(code, message)]


@pytest.mark.parametrize(
    "body",
    [
        "y = x + 2 + true",
        "y = relu(2)",
        "y = mean(x, none)",
        "p, q = two(x)",
        "y = x if mask == none else (none if n > 3 else x)",
        "act = relu\n  y = act(x) |> act",
        "y = x if Linear == Linear else relu(x)",
        "y = a: Linear(n, n, bias = none)(x)",
        "y = x |> l[i]: Linear(n, n) for i in 0..n",
    ],
)
def test_branches_that_no_model_takes_may_be_right(body: str) -> None:
    load(UNTAKEN.replace("BODY", body))


def test_an_integer_for_a_real_input_is_that_number() -> None:
    model = load("""
dim batch
fn times(x [batch, 3], by []) -> [batch, 3] {
  return x * by
}
layer Net()(x [batch, 3]) -> [batch, 3] {
  weight: param [3]
  return times(x, 3) * .weight
}
""")
    x = np.arange(6.0).reshape(2, 3)
    outputs = reference.evaluate(get_compilation(model).body, {"x": x}, {"weight": np.ones(3)}).outputs
    np.testing.assert_array_equal(outputs["output"], 3 * x)


NUMBERS = "fn f(k) {{\n  {}\n}}\nblock Net(n = 4)(x [n]) -> [n] {{\n  return x * f(n)\n}}"
POWER = "dim seq\nblock Net(n = 4)(x [seq, n]) -> [seq, n] {{\n  return x * real({})\n}}"
RULES = [
    (NUMBERS.format("a, b = k\n  return a + b"), "output", "cannot assign one value to 2 names"),
    (NUMBERS.format("if k > 5 { return 1 }"), "missing-return", "`f` does not return a value here"),
    (
        "block Net(n = 4)(x [n]) -> [n] {\n  for i in n..2 { x = x * 2.0 }\n  return x\n}",
        "wrong-kind",
        "loop end 2 is below its start 4",
    ),
    ("block Net(n = 2.5)(x [n]) -> [n] {\n  return x\n}", "wrong-kind", "expected an integer size, found the real 2.5"),
    (
        "dim q\nblock Net(n = 4)(x [n]) -> [n] {\n  return x * (1.0 if q > 2 else 2.0)\n}",
        "unbound-dimension",
        "dimension `q` has no size here",
    ),
    (
        POWER.format("2 ** seq"),
        "wrong-kind",
        "`**` expects a compile-time constant as exponent, found the dimension seq",
    ),
    (
        POWER.format("seq ** 9"),
        "wrong-kind",
        "`**` can only raise a symbolic dimension to an integer power from 0 to 8",
    ),
    (
        POWER.format("(-8.0) ** 0.5"),
        "arithmetic",
        "`**` is undefined for these operands: cannot take a root of a negative number",
    ),
    (
        POWER.format("0 ** (0 - n)"),
        "arithmetic",
        "`**` is undefined for these operands: zero cannot be raised to a negative power",
    ),
    (POWER.format("9 ** (n * 50)"), "budget", "this power does not fit in 64 bits"),
]


@pytest.mark.parametrize(("text", "code", "message"), RULES)
def test_the_rule_that_is_broken_is_said(text: str, code: str, message: str) -> None:
    found = findings(text)[0]
    assert (found.code, found.message) == (code, message)


def test_a_power_of_0_is_1() -> None:
    found = load(
        "dim seq\nblock Net(n = 0 ** 0, m = 0.0 ** 0)(x [seq]) -> [seq] {\n  return x * (n + m) * seq ** 0\n}\n"
    )
    assert {**found.hyperparameters} == {"n": 1, "m": 1.0}


def test_leading_axes_have_a_name_of_their_own() -> None:
    model = load("dim leading\nblock Net()(x [..., leading]) -> [..., leading] {\n  return x\n}\n")
    assert [str(size) for size in model.inputs["x"].shape] == ["leading_", "leading"]
