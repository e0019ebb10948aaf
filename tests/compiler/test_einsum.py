"""`einsum`: random equations against NumPy and PyTorch, and the exact work of what they become."""

from math import prod
from typing import NamedTuple

import numpy as np
import pytest
import torch_compare
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Array, evaluate_model
from small import load

import archspec

LENGTHS = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}
OUTER = (2, 3)


class Case(NamedTuple):
    terms: list[list[str]]
    result: list[str]
    outer: list[int | None]  # the number of axes that `...` stands for, by tensor


def shape_of(names: list[str], outer: int | None) -> tuple[int, ...]:
    parts = [OUTER[len(OUTER) - (outer or 0) :] if name == "..." else (LENGTHS[name],) for name in names]
    return tuple(size for part in parts for size in part)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = st.lists(st.sampled_from([*LENGTHS]), unique=True, max_size=4)
    terms = draw(st.lists(names, min_size=1, max_size=4))
    outer = [draw(st.sampled_from([None, None, 0, 1, 2])) for _ in terms]
    every = sorted({name for term in terms for name in term})
    result = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    terms = [[*term, "..."] if count is not None else term for term, count in zip(terms, outer, strict=True)]
    terms = [draw(st.permutations(term)) for term in terms]
    if any(count is not None for count in outer):
        result = draw(st.permutations([*result, "..."]))
    return Case(terms, result, outer)


def model_of(case: Case) -> archspec.Model:
    inputs = [shape_of(*side) for side in zip(case.terms, case.outer, strict=True)]
    output = shape_of(case.result, max([count or 0 for count in case.outer]))
    equation = f"{', '.join(map(' '.join, case.terms))} -> {' '.join(case.result)}"
    entries = ", ".join(f"x{i} [{', '.join(map(str, shape))}]" for i, shape in enumerate(inputs))
    call = f'einsum("{equation}")({", ".join(f"x{i}" for i in range(len(inputs)))})'
    sizes = ", ".join(map(str, output))
    return load(f"block B()({entries}) -> [{sizes}] {{\n  w: param [1]\n  return {call} * reshape([])(.w)\n}}\n")


def expected(case: Case, values: list[Array]) -> Array:
    equation = f"{','.join(map(''.join, case.terms))}->{''.join(case.result)}"
    return np.einsum(equation, *values)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_numpy_computes_the_same(case: Case) -> None:
    model = model_of(case)
    rng = np.random.default_rng(0)
    shapes = [shape_of(*side) for side in zip(case.terms, case.outer, strict=True)]
    values = [rng.normal(size=shape) for shape in shapes]
    inputs = {f"x{i}": value for i, value in enumerate(values)}
    computed = evaluate_model(model, inputs, {"w": np.ones(1)}).outputs["output"]
    assert np.allclose(computed, expected(case, values), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(cases())
def test_pytorch_computes_the_same(case: Case) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(model_of(case))


@pytest.mark.parametrize(
    ("terms", "result", "axes"),
    [
        (["abc", "adc"], "abd", "abcd"),
        (["abc", "cde"], "abde", "abcde"),
        (["abc", "cb"], "a", "abc"),
        (["abe", "cb"], "ac", "abc"),  # `e` is summed first
        (["ab", "bc", "ce"], "ae", "abc ace"),
        (["ab", "cd"], "abcd", ""),
        (["ab", "ab"], "ab", ""),
    ],
)
def test_the_work_is_that_of_products_of_two(terms: list[str], result: str, axes: str) -> None:
    case = Case([list(term) for term in terms], list(result), [None] * len(terms))
    macs = sum(prod([LENGTHS[name] for name in product]) for product in axes.split())
    assert archspec.cost(model_of(case)).to_dict()["work"]["macs"] == macs
