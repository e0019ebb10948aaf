"""Calls of modules for the shapes and names of what they compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from archspec.equivalence.restoring import restored
from archspec.libraries import silent

if TYPE_CHECKING:
    import torch
    from torch import nn

MOST_ELEMENTS = 20_000_000
"""Larger modules are called without computing values."""

MOST_INPUTS = 2_000_000
"""So are modules whose inputs have more elements, such as large images."""

MOST_FILLED = 100_000_000
"""Parameters of larger modules have no values."""


def called(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    """Return the outputs of a module, which is then as before. Those of a large one have shapes, but no values, unless
    it reads values.
    """
    with restored(module):
        return called_changing(module, inputs)


def failure(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> Exception | None:
    """Return the exception that calling a module raises."""
    try:
        called(module, inputs)
    except Exception as problem:  # of any class, as it comes from the module
        return problem
    return None


def called_changing(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    """Return the outputs of a module, which may keep something of the call."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException

    parameters = _count(module.parameters())
    with torch.no_grad():
        if parameters > MOST_ELEMENTS or _count(inputs.values()) > MOST_INPUTS:
            try:
                return _called_for_shapes(module, inputs)
            except DataDependentOutputException:
                if parameters > MOST_FILLED:
                    raise
        return module(**inputs)


def _called_for_shapes(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    from torch._subclasses import FakeTensorMode
    from torch._subclasses.fake_tensor import DataDependentOutputException

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, silent("torch._subclasses.fake_tensor"):
        try:
            return module(**inputs)
        except DataDependentOutputException:  # a module may skip what depends on data if its inputs have no values
            return module(**{name: mode.from_tensor(value) for name, value in inputs.items()})


def _count(tensors: Iterable[torch.Tensor]) -> int:
    return sum([tensor.numel() for tensor in tensors])
