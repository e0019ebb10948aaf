"""Definitions with some of their hyperparameters bound, as values."""

from pathlib import Path

import pytest
import torch_compare
from paths import DATA
from small import DENSE, load, shapes

import archspec
from archspec import testing
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


def test_formulas_and_other_analyses() -> None:
    formula = archspec.formula(f"{SPEC}:further", "hidden")
    assert formula.at(hidden=4) == archspec.load(f"{SPEC}:further").params.total
    other = archspec.load(f"{SPEC}:further", hidden=10).params.total
    assert formula.at(hidden=10) == other
    assert archspec.cost(f"{SPEC}:pair")
    assert archspec.diff(f"{SPEC}:pair", f"{SPEC}:pair-other")


# PyTorch -------------------------------------------------------------------------------------------------------------


def test_partials_are_those_of_functools() -> None:
    source = testing.run("build", f"{SPEC}:pair").output
    assert "from functools import partial\n" in source
    assert "self.image = Tower(hidden=6, layers=1, Part=partial(Mlp, activation=gelu))" in source
    assert "self.text = Tower(hidden=4, Part=Mlp)" in source


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
