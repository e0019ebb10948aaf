"""`rearrange` and `repeat`: the primitives they become, against einops, and every wrong pattern with its message."""

from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
import torch_compare
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import read_spec
from reference import Array, evaluate_model
from small import load

import archspec


def block(call: str, shape: str = "batch, seq, n", out: str = "...", head: str = "(n = 8)") -> str:
    body = f"  w: param [1]\n  y = x * .w\n  return {call}\n"
    return f"dim batch, seq\nblock B{head}(x [{shape}]) -> [{out}] {{\n{body}}}\n"


def model_of(call: str, shape: tuple[int, ...], out: tuple[int, ...]) -> archspec.Model:
    return load(block(call, ", ".join(map(str, shape)), ", ".join(map(str, out)), head="()"))


def computed(model: archspec.Model, x: Array) -> Array:
    return evaluate_model(model, {"x": x}, {"w": np.ones(1)}).outputs["output"]


# What they become -----------------------------------------------------------------------------------------------------


def test_values() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    split = computed(model_of('rearrange("b s (h d) -> b h s d", h = 2)(y)', (2, 3, 4), (2, 2, 3, 2)), x)
    assert (split == x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3)).all()
    repeated = computed(model_of('repeat("b s d -> b (s t) d", t = 2)(y)', (2, 3, 4), (2, 6, 4)), x)
    assert (repeated == x.repeat(2, axis=1)).all()
    tiled = computed(model_of('repeat("b s d -> b (t s) d", t = 2)(y)', (2, 3, 4), (2, 6, 4)), x)
    assert (tiled == np.tile(x, (1, 2, 1))).all()


# Against einops -------------------------------------------------------------------------------------------------------


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, str, dict[str, int], tuple[int, ...]]:
    """A word, a pattern, the sizes that are given, and the shape of a tensor."""
    names = list("abcde")[: draw(st.integers(1, 5))]
    lengths = {name: draw(st.integers(1, 3)) for name in names}
    word = draw(st.sampled_from(["rearrange", "repeat"]))
    new = draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=2)) if word == "repeat" else []
    lengths |= {name: draw(st.integers(1, 3)) for name in new}
    others = draw(st.lists(st.integers(1, 3), max_size=2)) if draw(st.booleans()) else None

    def side(words: list[str], may_nest: bool) -> list[list[str]]:
        groups: list[list[str]] = []
        for name in words:
            if groups and draw(st.booleans()) and (may_nest or "..." not in (name, *groups[-1])):
                groups[-1].append(name)
            else:
                groups.append([name])
        for _ in range(draw(st.integers(0, 2))):
            groups.insert(draw(st.integers(0, len(groups))), [])
        return groups

    def text(groups: list[list[str]]) -> str:
        words = [draw(st.sampled_from(["1", "()"])) if not g else f"({' '.join(g)})" for g in groups]
        return " ".join(g[0] if len(g) == 1 and draw(st.booleans()) else w for g, w in zip(groups, words, strict=True))

    named = names + (["..."] if others is not None else [])
    left = side(draw(st.permutations(named)), may_nest=False)
    right = side(draw(st.permutations(named + new)), may_nest=True)
    given = {name: lengths[name] for name in new}
    shape: list[int] = []
    for group in left:
        if group == ["..."]:
            shape += others or []
            continue
        shape.append(int(np.prod([lengths[name] for name in group])))
        free = draw(st.sampled_from(group)) if group else ""
        given |= {name: lengths[name] for name in group if name != free}
    pattern = f"{text(left)} -> {text(right)}".replace("(...) ->", "... ->")
    first, _, second = pattern.partition(" -> ")
    return word, f"{first.replace('(...)', '...')} -> {second}", given, tuple(shape)


def compare(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> tuple[archspec.Model, Array, Array]:
    einops = pytest.importorskip("einops")
    word, pattern, sizes, shape = case
    x = np.arange(np.prod(shape), dtype=float).reshape(shape) if shape else np.array(1.0)
    expected = getattr(einops, word)(x, pattern, **sizes)
    given = "".join(f", {name} = {size}" for name, size in sizes.items())
    model = model_of(f'{word}("{pattern}"{given})(y)', x.shape, expected.shape)
    return model, x, expected


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(patterns())
def test_einops_computes_the_same(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> None:
    model, x, expected = compare(case)
    assert (computed(model, x) == expected).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(patterns())
def test_pytorch_computes_the_same(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(compare(case)[0])


# In PyTorch -----------------------------------------------------------------------------------------------------------

VARYING = read_spec("rearrange_varying").replace("dim batch, seq", "dim batch, seq, width")


@pytest.mark.slow
def test_a_function_for_any_number_of_axes() -> None:
    pytest.importorskip("torch")
    model = load(VARYING)
    assert "x.unflatten(-1, (2, -1)).transpose(-3, -2)" in cases.build(VARYING)
    torch_compare.agrees(model)


# What is wrong --------------------------------------------------------------------------------------------------------


def test_the_formula_of_a_split_assumes_that_it_divides(tmp_path: Path) -> None:
    text = block('rearrange("b s (h d) -> b h s d", h = k)(y)', "batch, seq, n", "batch, k, seq, n // k")
    path = tmp_path / "spec.arch"
    path.write_text(text.replace("B(n = 8)", "B(n = 8, k = 2)") + 'model "b" = B()\n')
    formula: Any = archspec.formula(str(path), ["n", "k"])
    assert any("k" in str(assumption) for assumption in formula.assumptions), formula
