"""Calls of modules for the shapes and names of what they compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import CellType, FunctionType
from typing import TYPE_CHECKING, cast

from archspec.core.optional import silence_loggers
from archspec.pytorch.passes.intercepting import restore_attributes

if TYPE_CHECKING:
    import torch
    from torch import nn

MAX_ELEMENTS = 20_000_000
"""Larger modules are called without computing values."""

MAX_INPUTS = 2_000_000
"""So are modules whose inputs have more elements, such as large images."""

MAX_FILLED = 100_000_000
"""Parameters of larger modules have no values."""


def copy_module(module: nn.Module, memo: dict[int, object] | None = None) -> nn.Module:
    """Return a copy of a module. Functions that its parts keep, such as a lambda, close over parts of the copy.

    `memo` has copies of objects by their ids, as for `copy.deepcopy`.
    """
    memo = {} if memo is None else memo
    copy = deepcopy(module, memo)
    for part in copy.modules():
        attributes = vars(part)
        attributes |= {name: _rebound(value, memo) for name, value in attributes.items()}
    return copy


def _rebound(value: object, memo: dict[int, object]) -> object:
    """Return a function, or a list or dict of some, that closes over copies."""
    if isinstance(value, FunctionType) and value.__closure__:
        cells = [CellType(_rebound(deepcopy(cell.cell_contents, memo), memo)) for cell in value.__closure__]
        function = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
        function.__kwdefaults__ = value.__kwdefaults__
        return function
    if type(value) is list:
        return [_rebound(item, memo) for item in cast("list[object]", value)]
    if type(value) is dict:
        return {key: _rebound(item, memo) for key, item in cast("dict[object, object]", value).items()}
    return value


def call_module(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    """Return the outputs of a module, which is then as before. Those of a large one have shapes, but no values, unless
    it reads values.
    """
    with restore_attributes(module):
        return call_keeping_changes(module, inputs)


def call_exception(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> Exception | None:
    """Return the exception that calling a module raises."""
    try:
        call_module(module, inputs)
    except Exception as problem:  # of any class, as it comes from the module
        return problem
    return None


def call_keeping_changes(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    """Return the outputs of a module, which may keep something of the call."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException

    parameters = _count(module.parameters())
    with torch.no_grad():
        if parameters > MAX_ELEMENTS or _count(inputs.values()) > MAX_INPUTS:
            try:
                return _called_for_shapes(module, inputs)
            except DataDependentOutputException:
                if parameters > MAX_FILLED:
                    raise
        return module(**inputs)


def _called_for_shapes(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> object:
    from torch._subclasses import FakeTensorMode
    from torch._subclasses.fake_tensor import DataDependentOutputException

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, silence_loggers("torch._subclasses.fake_tensor"):
        try:
            return module(**inputs)
        except DataDependentOutputException:  # a module may skip what depends on data if its inputs have no values
            return module(**{name: mode.from_tensor(value) for name, value in inputs.items()})


def _count(tensors: Iterable[torch.Tensor]) -> int:
    return sum([tensor.numel() for tensor in tensors])
