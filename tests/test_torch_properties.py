"""The PyTorch modules of specs drawn at random compute what the reference does."""

import pytest
import torch_compare
from hypothesis import given, settings
from hypothesis import strategies as st
from small import load
from test_properties import Options, options
from torch_attention import attention
from torch_programs import Program

import archspec

pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    """Blocks of options, loops, branches and chains, used with several numbers each."""
    try:
        model = load(Program(seed).text())
    except archspec.ArchError as error:
        assert "an index in an address is an integer from 0" in str(error)
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
