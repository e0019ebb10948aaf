"""The PyTorch modules of specs drawn at random compute what the reference does."""

import inspect
from typing import Any

import pytest
import torch_compare
from building import build
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import Options, options
from small import load
from torch_attention import attention
from torch_programs import Program

import archspec

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    """Blocks of options, loops, branches and chains, used with several numbers each."""
    try:
        model = load(Program(seed).text())
    except archspec.ArchError as error:
        said = str(error)  # what the drawn numbers come to, and no other mistake
        assert "expected a non-negative integer as address index" in said or "is below its start" in said
        return
    torch_compare.agrees(model, within=1e-9)


@settings(max_examples=25, deadline=None)
@given(options())
def test_random_encoders(chosen: Options) -> None:
    torch_compare.agrees(load(chosen.text))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_random_attention(seed: int) -> None:
    """Scores scaled, biased and masked in any order: one call of PyTorch's where that is the same."""
    torch_compare.agrees(load(attention(seed)), within=1e-9)


OTHERS = [{"k": 1}, {"k": 3}, {"k": 4}, {"n": 4}, {"flag": False}, {"k": 3, "flag": False}]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(OTHERS))
def test_a_class_made_with_other_numbers_is_right_or_refuses_them(seed: int, other: dict[str, Any]) -> None:
    """What a file of one model computes for another model's numbers is what that one's file does, if anything."""
    text = Program(seed).text()
    try:
        load(text)
        wanted = load(text, **other)
    except archspec.ArchError:
        return
    namespace: dict[str, Any] = {}
    exec(build(text), namespace)
    if not set(other) <= set(inspect.signature(namespace["Net"].__init__).parameters):
        return
    try:
        with torch_compare.default_dtype(torch.float64):
            module = namespace["Net"](**other)
        torch_compare.computes(wanted, module, within=1e-9)
    except ValueError as error:
        assert "required: " in str(error)
