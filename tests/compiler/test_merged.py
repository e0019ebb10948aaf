"""Definitions that own the parts of another one without a prefix: `..: Inner(..)(..)`."""

import pytest
import torch_compare
from paths import DATA
from small import DENSE, SCALE, load

import archspec
from archspec import testing

SPEC = DATA / "translated" / "merged.arch"
NAMES = ["encoder", "other", "third", "parts", "wrapped", "both"]
INNER = (
    DENSE
    + SCALE
    + """
dim batch
block Inner(n = 4, m = 2, scaled = true, depth = 2)(x [batch, n]) -> [batch, n] {
  h = x |> layers[i]: Dense(n, n) for i in 0..depth
  y = h |> a.up: Dense(n, m) |> a.down: Dense(m, n)
  tie layers[1].weight = layers[0].weight if depth > 1
  role body for layers
  return y |> scale: Scale(n) if scaled
}
"""
)


def outer(body: str, head: str = "..Inner") -> str:
    return f"{INNER}block Outer({head})(..Inner) -> [batch, n] {{\n{body}\n}}\n"


def test_formulas() -> None:
    names = {"hidden": 6, "layers": 2}
    formula = archspec.formula(f"{SPEC}:third", list(names))
    for values in (names, {"hidden": 8, "layers": 5}, {"hidden": 3, "layers": 1}):
        assert formula.at(**values) == archspec.load(f"{SPEC}:third", **values).params.total


# PyTorch -------------------------------------------------------------------------------------------------------------


def test_a_class_is_derived() -> None:
    source = testing.run("build", f"{SPEC}:third").output
    assert "class Third(Other):" in source
    assert "class Other(Encoder):" in source
    assert "logits = super().forward(ids)" in source


SHARED = {
    "plain": "a.top: Dense(n)",
    "a container in it": "a.top.last: Dense(n)",
    "the next number": "layers[2]: Dense(n)",
    "a later number": "layers[7]: Dense(n)",
    "a loop": "layers[i + 2]: Dense(n) for i in 0..3",
    "numbers in a plain container": "a.parts[i].dense: Dense(n) for i in 0..2",
    "a condition": "a.top: Dense(n) if scaled",
}


@pytest.mark.parametrize("part", SHARED.values(), ids=SHARED)
def test_a_derived_class_adds_parts_to_containers_of_its_base_class(part: str) -> None:
    pytest.importorskip("torch")
    model = load(outer(f"  h = ..: Inner(..)(..)\n  return h |> {part} |> own: Inner()"))
    torch_compare.agrees(model)


def test_three_classes_fill_one_container() -> None:
    pytest.importorskip("torch")
    middle = outer("  return ..: Inner(..)(..) |> a.top: Dense(n)")
    last = middle.replace("Outer", "Middle") + (
        "block Outer(..Middle)(..Middle) -> [batch, n] {\n"
        "  return ..: Middle(..)(..) |> layers[5]: Dense(n) |> a.parts[1]: Dense(n) |> other: Middle(..)\n}\n"
    )
    torch_compare.agrees(load(last))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_modules_compute_what_the_spec_says(name: str) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(archspec.load(f"{SPEC}:{name}"))
