"""Calls of modules for the shapes and names of what they compute."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

MOST_ELEMENTS = 20_000_000
"""Larger modules are called without computing values."""

MOST_INPUTS = 2_000_000
"""So are modules whose inputs have more elements, such as large images."""


def called(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> Any:
    """Return the outputs of a module. Those of a large one have shapes, but no values."""
    import torch
    from torch._subclasses import FakeTensorMode
    from torch._subclasses.fake_tensor import DataDependentOutputException

    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if _count(module.parameters()) <= MOST_ELEMENTS and _count(inputs.values()) <= MOST_INPUTS:
            return module(**inputs)
        mode = stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_quietly("torch._subclasses.fake_tensor"))
        try:
            return module(**inputs)
        except DataDependentOutputException:  # a module may skip what depends on data if its inputs have no values
            return module(**{name: mode.from_tensor(value) for name, value in inputs.items()})


def _count(tensors: Iterable[torch.Tensor]) -> int:
    return sum([tensor.numel() for tensor in tensors])


@contextmanager
def _quietly(name: str) -> Generator[None]:
    """Let a logger be silent."""
    logger = logging.getLogger(name)
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False
