"""Operations that this package defines in PyTorch: they have shapes, and so are exported, but cannot be run.

    # before                                                        # after
    embedding_bag(table, reshape(ids, [-1]), arange(0, m, n), ...)  sum(embedding(table, ids), [1])  embedding_bag_mode
    max_pool1d(x, sym_size(x, 2))                                   amax(x, [2], keepdim=True)       whole_window_mode
    gru(x, state, weights, ...), for sequences of 7 tokens          archspec.gru(x, state, weights, ...), for any length

`nn.EmbeddingBag` needs the first (click models such as DLRM); convolutional networks that pool over all of a text or
image, as in `max_pool1d(x, x.size(2))`, need the second; `nn.LSTM`, `nn.GRU` and `nn.RNN` need the third.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from archspec.pytorch.passes.intercepting import Function, intercept_mode
from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    from torch import SymInt, Tensor


# Sums and means of embeddings of PyTorch, as those of rows of the table: `torch.export` has an operation of its own
# for them, which takes all bags one after the other.

UNSUPPORTED_ARGUMENTS = ("per_sample_weights", "max_norm", "padding_idx", "offsets")
"""Arguments without which the bags are rows of a matrix of ids, all of which count."""


def embedding_bag_mode() -> AbstractContextManager[object]:
    """Return the mode in which bags that are the rows of a matrix of ids are looked up and reduced."""
    return intercept_mode(_looked_up)


def _looked_up(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    import torch

    if func is not torch.nn.functional.embedding_bag:
        return func(*args, **named)
    ids, weight = cast("Sequence[Tensor]", args)  # PyTorch passes all others by name
    if ids.dim() != 2 or any(named.get(name) is not None for name in UNSUPPORTED_ARGUMENTS):
        return func(*args, **named)
    rows = torch.nn.functional.embedding(ids, weight)
    mode = str(named["mode"])
    return rows.amax(1) if mode == "max" else getattr(rows, mode)(1)


# Pooling in one window over all positions, as a reduction: `torch.export` fixes the sizes of windows.

POOLING = re.compile(r"(max|avg)_pool([123])d")


def whole_window_mode() -> AbstractContextManager[object]:
    """Return the mode in which pooling in one window over all positions is a maximum or a mean."""
    return intercept_mode(_reduced)


def _reduced(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    kind = POOLING.fullmatch(getattr(func, "__name__", ""))
    if kind is None:
        return func(*args, **named)
    is_largest, count = kind[1] == "max", int(kind[2])
    names = ("input", "kernel_size", "stride", "padding", "dilation" if is_largest else "ceil_mode")
    arguments = {**dict(zip(names, args, strict=False)), **named}
    usual = {"padding": 0, "dilation": 1, "return_indices": False, "divisor_override": None}
    x, window = cast("Tensor", arguments["input"]), as_list(arguments["kernel_size"])
    sizes = [str(size) for size in window * (1 if len(window) > 1 else count)]
    is_whole = not all(isinstance(size, int) for size in window) and sizes == [*map(str, x.shape[-count:])]
    if (
        not is_whole
        or len(args) > len(names)
        or any(arguments.get(name, value) != value for name, value in usual.items())
    ):
        return func(*args, **named)
    axes = [*range(-count, 0)]
    return x.amax(axes, keepdim=True) if is_largest else x.mean(axes, keepdim=True)


NAMESPACE = "archspec"


def define_operation(schema: str, shapes: Callable[..., object] | None) -> Callable[..., Any]:
    """Define an operation; `shapes` returns results of the right shapes. Without it, only nodes can have it."""
    torch = _torch()
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _LIBRARIES.append(library)
    library.define(schema)
    name = schema.partition("(")[0]
    if shapes is not None:
        torch.library.register_fake(f"{NAMESPACE}::{name}", shapes, lib=library)
    return getattr(torch.ops.archspec, name).default


def new_size() -> SymInt:
    """Return a size that is not known, in a function that returns results of the right shapes."""
    return _torch().library.get_ctx().new_dynamic_size(min=0)


def _torch() -> Any:
    """Return PyTorch, whose module `library` has no types."""
    from importlib import import_module

    return import_module("torch")


_LIBRARIES: list[object] = []
"""Definitions of operations, which last as long as these."""


# Recurrent layers of PyTorch: one operation for any length. `torch.export` unrolls them into a step for each token, so
# that the program is for one length only.

STATES = {"lstm": "Tensor[]", "gru": "Tensor", "rnn_tanh": "Tensor", "rnn_relu": "Tensor"}
"""The type of the states that a layer starts with."""


def recurrent_layer_mode() -> AbstractContextManager[object]:
    """Return a mode that records each recurrent layer as one operation with known shapes (not executable)."""
    return intercept_mode(_recurrent)


def _recurrent(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    operation = _recurrent_operations().get(getattr(func, "__name__", ""))
    if operation is not None and len(args) == 9 and isinstance(args[3], bool):  # other calls are of packed ones
        return operation(*args)
    return func(*args, **named)


@cache
def _recurrent_operations() -> dict[str, Callable[..., object]]:
    return {name: _recurrent_operation(name, states) for name, states in STATES.items()}


def _recurrent_operation(name: str, states: str) -> Callable[..., object]:
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
