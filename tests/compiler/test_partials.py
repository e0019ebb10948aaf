"""Definitions with some of their hyperparameters bound, as values."""

from pathlib import Path

import pytest
import torch_compare
from paths import DATA
from small import DENSE, findings, load, shapes

import archspec
from archspec.codegen.build import torch_source
from archspec.testing import main

SPEC = DATA / "translated" / "partials.arch"
INNER = (
    DENSE
    + """
dim batch
fn leaky(slope = 0.01)(x [...]) -> [...] {
  return max(x, x * slope)
}
block Inner(n = 4, m = 2 * n, bias = true)(x [batch, n]) -> [batch, n] {
  return x |> a: Dense(n, m, bias) |> b: Dense(m, n, bias)
}
"""
)


def outer(head: str, value: str) -> str:
    return f"{INNER}block Outer({head})(x [batch, 4]) -> [batch, 4] {{\n  return {value}\n}}\n"


@pytest.mark.parametrize(
    ("head", "value", "first"),
    [
        ("Part = Inner(n = 4)", "inner: Part()(x)", (8, 4)),
        ("Part = Inner(m = 3)", "inner: Part(4)(x)", (3, 4)),
        ("Part = Inner(4, bias = false)", "inner: Part(5)(x)", (5, 4)),
        ("Part = Inner", "inner: Part(m = 6)(x)", (6, 4)),
        ("Parts = [Inner, Inner(m = 3)]", "inner: Parts[1]()(x)", (3, 4)),
        ("n = 3, Part = Inner(m = n + 4)", "inner: Part()(x)", (7, 4)),
        ("m = 9, bias = false, Part = Inner(m = 3)", "inner: Part(..)(x)", (3, 4)),
        ("wide = true", "inner: (Inner(m = 9) if wide else Inner)()(x)", (9, 4)),
        ("", "x |> inner: (Inner(m = 9))", (9, 4)),
    ],
)
def test_bound_hyperparameters_are_those_of_the_application(head: str, value: str, first: tuple[int, int]) -> None:
    model = load(outer(head, value))
    assert shapes(model)["inner.a.weight"] == first
    assert ("inner.a.bias" in shapes(model)) == ("bias" not in head)


def test_a_partial_binds_more() -> None:
    text = f"""{INNER}
block Outer(Part = Inner(bias = false))(x [batch, 4]) -> [batch, 4] {{
  Wide = Part(m = 20)
  require Wide == Inner(m = 20, bias = false) and Wide != Part and Part != Inner
  return x |> a: Wide |> b: Part(m = 3) |> c: Wide(4)
}}
"""
    assert [shape for name, shape in shapes(load(text)).items() if name.endswith("a.weight")] == [
        (20, 4),
        (3, 4),
        (20, 4),
    ]


def test_values_are_shown_as_they_are_written() -> None:
    model = archspec.load(f"{SPEC}:pair")
    assert model.hyperparameters["Image"] == "Tower(hidden = 6, layers = 1, Part = Mlp(activation = gelu))"
    mixed = archspec.load(f"{SPEC}:mixed").hyperparameters["Parts"]
    assert mixed == [
        "Mlp",
        "Mlp(inner = 5)",
        "Mlp(activation = leaky(slope = 0.2))",
        "Mlp(inner = 3, activation = leaky)",
    ]
    assert archspec.load(f"{SPEC}:pair", Text="Mlp").params.total < model.params.total


def test_true_1_and_1_0_are_different_values() -> None:
    text = f"""{INNER}
fn shift(by = 1.0)(x [...]) -> [...] {{
  return x * by
}}
block Outer(Acts = [shift(by = 1), shift(by = 1.0), leaky])(x [batch, 4]) -> [batch, 4] {{
  for i in 0..len(Acts) {{
    x = x |> Acts[i] |> inner[i]: Inner
  }}
  return x
}}
"""
    assert load(text).params.total == 3 * 76


def test_formulas_and_other_analyses() -> None:
    formula = archspec.formula(f"{SPEC}:further", "hidden")
    assert formula.at(hidden=4) == archspec.load(f"{SPEC}:further").params.total
    other = archspec.load(f"{SPEC}:further", hidden=10).params.total
    assert formula.at(hidden=10) == other
    assert archspec.cost(f"{SPEC}:pair")
    assert archspec.diff(f"{SPEC}:pair", f"{SPEC}:pair-other")


MISTAKES = [
    (
        "Part = Inner(k = 4)",
        "inner: Part()(x)",
        "error[unknown-argument]: unknown hyperparameter `k` in call to `Inner`",
    ),
    (
        "Part = Inner(n = true)",
        "inner: Part()(x)",
        "error[wrong-kind]: hyperparameter `n` of `Inner` expects type integer, found the boolean true",
    ),
    (
        "Part = Inner(m = true)",
        "inner: Part()(x)",
        "error[wrong-kind]: hyperparameter `m` of `Inner` expects type integer, found the boolean true",
    ),
    (
        "Part = Inner(n = 4)",
        "inner: Part(n = 4)(x)",
        "error[repeated-argument]: hyperparameter `n` is already bound in `Inner(n = 4)`",
    ),
    (
        "Part = Inner(n = 4)",
        "inner: Part(8, true, 3)(x)",
        "error[surplus-argument]: too many hyperparameters for `Inner`: expected at most 2, found 3",
    ),
    (
        "Act = leaky(slope = 0.1)",
        "x |> Act(slope = 0.2)",
        "error[repeated-argument]: hyperparameter `slope` is already bound in `leaky(slope = 0.1)`",
    ),
    (
        "Act = leaky(slope = none)",
        "Act(x)",
        "error[wrong-kind]: `*` expects a tensor, found `none`",
    ),
    (
        "n = 4",
        "x |> inner: (Inner(.., m = 3))",
        "error[surplus-argument]: `..` cannot bind hyperparameters of `Inner`",
    ),
    ("n = 4", "Inner(n)", "error[wrong-kind]: expected a tensor as output, found a block `Inner(n = 4)`"),
    ("n = 4", "Inner(x)", "error[wrong-kind]: `Inner` is a block and needs an address"),
    ("n = 4", "Inner()", "error[wrong-kind]: `Inner` is a block and needs an address"),
    ("n = 4", "x |> Inner(4, 8, true)", "error[wrong-kind]: `Inner` is a block and needs an address"),
    ("Part = Inner(n = 4)", "Part(x)", "error[wrong-kind]: `Inner` is a block and needs an address"),
    ("n = 4", "leaky(slope = x)", "error[wrong-kind]: a hyperparameter of `leaky` cannot depend on an input"),
]


@pytest.mark.parametrize(("head", "value", "message"), MISTAKES)
def test_mistakes(head: str, value: str, message: str) -> None:
    found = [d.render().splitlines()[0] for d in findings(outer(head, value)) if d.severity == "error"]
    assert [line for line in found if "unused-input" not in line] == [message]


def test_another_kind_is_refused_with_its_value() -> None:
    text = outer("Part = Inner(n = 4)", "inner: Part()(x)") + 'model "m" = Outer(Part = leaky(slope = 0.1))\n'
    assert [d.message for d in findings(text)] == [
        "hyperparameter `Part` of `Outer` expects type block, found a function `leaky(slope = 0.1)`"
    ]


# PyTorch -------------------------------------------------------------------------------------------------------------


def test_partials_are_those_of_functools() -> None:
    source = torch_source(archspec.load(f"{SPEC}:pair"))
    assert "from functools import partial\n" in source
    assert "self.image = Tower(hidden=6, layers=1, Part=partial(Mlp, activation=gelu))" in source
    assert "self.text = Tower(hidden=4, Part=Mlp)" in source


def test_a_forwarded_value_that_only_some_partials_bind_is_refused() -> None:
    text = f"""{INNER}
block Outer(m = 5, Parts = [Inner(m = 3), Inner])(x [batch, 4]) -> [batch, 4] {{
  for i in 0..2 {{
    x = x |> layer[i]: Parts[i](..)
  }}
  return x
}}
"""
    assert [shape[0] for name, shape in shapes(load(text)).items() if name.endswith("a.weight")] == [3, 5]
    with pytest.raises(archspec.ArchError, match="other hyperparameters are bound in what is applied here"):
        torch_source(load(text))


def test_an_argument_that_partials_match_differently_is_refused() -> None:
    text = f"""{INNER}
block Outer(Parts = [Inner(4), Inner(m = 4)])(x [batch, 4]) -> [batch, 4] {{
  for i in 0..2 {{
    x = x |> layer[i]: Parts[i](4)
  }}
  return x
}}
"""
    assert load(text).params.total == 2 * 2 * 20
    with pytest.raises(archspec.ArchError, match="other hyperparameters are bound in what is applied here"):
        torch_source(load(text))


CHOSEN = f"""{INNER}
block Chosen(Part = Inner(m = 3))(x [batch, 4]) -> [batch, 4] {{
  return (a: Inner()(x) if Part == Inner(m = 3) else b: Part()(x))
}}
"""


def test_a_comparison_that_differs_between_uses() -> None:
    pytest.importorskip("torch")
    text = f"""{CHOSEN}
block Outer(n = 4)(x [batch, n]) -> [batch, n] {{
  return x |> a: Chosen |> b: Chosen(Part = Inner)
}}
"""
    model = load(text)
    assert [name for name in shapes(model) if name.endswith("a.weight")] == ["a.a.a.weight", "b.b.a.weight"]
    torch_compare.agrees(model)


def test_a_comparison_that_differs_in_a_loop_is_refused() -> None:
    text = f"""{CHOSEN}
block Outer(n = 4, parts = [Inner(m = 3), Inner])(x [batch, n]) -> [batch, n] {{
  return x |> p[i]: Chosen(parts[i]) for i in 0..2
}}
"""
    with pytest.raises(archspec.ArchError, match="definitions with bound hyperparameters cannot be compared"):
        torch_source(load(text))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pair", "pair-other", "mixed", "kinds", "further", "further-narrow", "uses", "acts"])
def test_modules_compute_what_the_spec_says(name: str) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(archspec.load(f"{SPEC}:{name}"))


# Set outside a spec ---------------------------------------------------------------------------------------------------

SET = outer("Part = Inner", "x |> p: Part") + 'model "net" = Outer()\n'


def test_a_definition_with_bound_hyperparameters_can_be_set(tmp_path: Path) -> None:
    spec = tmp_path / "net.arch"
    spec.write_text(SET)
    for text in ("Inner(m = 5)", "Inner(4, 5)"):
        model = archspec.load(spec, Part=text)
        assert shapes(model) == shapes(archspec.loads(SET.replace("Outer()", "Outer(Part = Inner(m = 5))")))
    assert main(["count", str(spec), "--set", "Part=Inner(m = 5)", "--format", "json"]) == 0


def test_a_variant_with_a_bound_definition_is_written(tmp_path: Path) -> None:
    spec, made = tmp_path / "net.arch", tmp_path / "made.arch"
    spec.write_text(SET)
    assert main(["new", str(made), "--from", str(spec), "--set", "Part=Inner(m = 5)"]) == 0
    assert 'import "net.arch" { Outer, Inner }' in made.read_text()
    assert 'model "made" = Outer(Part = Inner(m = 5))' in made.read_text()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("Inner(k = 5)", "unknown-argument", "unknown hyperparameter `k` in call to `Inner`"),
        ("Inner(m = k)", "unknown-name", "unknown name `k`"),
        ("Iner(m = 5)", "unknown-name", "unknown name `Iner` in <text>"),
        ("Inner(m = 5)(x)", "wrong-kind", "`Inner` is a block and needs an address"),
        ("leaky(slope = 0.1)", "wrong-kind", "hyperparameter `Part` expects type block, found a function"),
    ],
)
def test_wrong_definitions_that_are_set_are_reported(text: str, code: str, message: str) -> None:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.loads(SET, Part=text)
    (first, *_) = caught.value.diagnostics
    assert (first.code, first.message[: len(message)]) == (code, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("act = 3", "hyperparameter `act` of `Part` expects type function, found the integer 3"),
        ("k = gelu", "hyperparameter `k` of `Part` expects type integer, found a function `gelu`"),
        ("k = 2.5", "hyperparameter `k` of `Part` expects type integer, found the real 2.5"),
        ("act = relu, k = 3, both = 5", ""),
    ],
)
def test_what_is_bound_is_checked_where_nothing_is_applied(given: str, message: str) -> None:
    text = f"""
import std {{ gelu, relu }}
dim batch
layer Part(n, act = gelu, k = 2, both = n)(x [batch, n]) -> [batch, n] {{
  w: param [n]
  return act(x) * .w * k * both
}}
block Net(n = 4, Inner = Part({given}))(x [batch, n]) -> [batch, n] {{
  return x |> p: Inner(n) |> q: Inner(n) if n > 9
}}
""".replace("|> p: Inner(n) ", "|> p: Part(n) ")
    if message:
        assert [each.message for each in findings(text) if each.severity == "error"] == [message]
    else:
        assert load(text).params.total == 4
