"""Recurrent layers of PyTorch in exported programs: one operation for any length.

`torch.export` unrolls them into a step for each token, so that the program is for one length only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

from archspec.pytorch.calls.values import as_list
from archspec.pytorch.patches.intercepting import Function, intercept_mode
from archspec.pytorch.patches.own_operations import define_operation

if TYPE_CHECKING:
    from torch import Tensor

STATES = {"lstm": "Tensor[]", "gru": "Tensor", "rnn_tanh": "Tensor", "rnn_relu": "Tensor"}
"""The type of the states that a layer starts with."""


def recurrent_layer_mode() -> AbstractContextManager[object]:
    """Return a mode that records each recurrent layer as one operation with known shapes (not executable)."""
    return intercept_mode(_kept)


def _kept(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    operation = _operations().get(getattr(func, "__name__", ""))
    if operation is not None and len(args) == 9 and isinstance(args[3], bool):  # other calls are of packed ones
        return operation(*args)
    return func(*args, **named)


@cache
def _operations() -> dict[str, Callable[..., object]]:
    return {name: _operation(name, states) for name, states in STATES.items()}


def _operation(name: str, states: str) -> Callable[..., object]:
    """Define an operation that has the arguments and results of one of `aten`, where sequences are padded."""
    import torch

    def shapes(
        x: Tensor,
        first: Tensor | list[Tensor],
        params: list[Tensor],
        is_biased: bool,
        layers: int,
        dropout: float,
        train: bool,
        is_double: bool,
        is_batch_first: bool,
    ) -> tuple[Tensor, ...]:
        starts = as_list(first)
        output = x.new_empty((*x.shape[:-1], starts[0].shape[-1] * (1 + is_double)))
        return (output, *[torch.empty_like(start) for start in starts])

    results = "Tensor, Tensor, Tensor" if name == "lstm" else "Tensor, Tensor"
    schema = (
        f"{name}(Tensor input, {states} hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
        f"bool train, bool bidirectional, bool batch_first) -> ({results})"
    )
    return define_operation(schema, shapes)
