"""A stand-in for torch: it runs what a generated file does when it makes a model, and keeps shapes and no numbers.

So what a file makes can be compared with the spec where PyTorch is not installed, and at once for any size. It knows
what generated files use. Anything else is an error, so that nothing passes unchecked.
"""

from __future__ import annotations
import __future__

import builtins
import math
import typing
from collections import abc
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple, cast

from archspec.codegen.stand_in.modules import LAYERS, Module, ModuleDict, ModuleList
from archspec.codegen.stand_in.tensors import (
    FUNCTIONS,
    OF_NUMBERS,
    DType,
    Parameter,
    Tensor,
    applied,
    bool_,
    float32,
    float64,
    int64,
    sizes_of,
)
from archspec.ir.ops import OPS


def record(source: str) -> Module:
    """What `build()` of a generated file makes. Raises Exception of any class where the file does something else."""
    known = {name: getattr(builtins, name) for name in _BUILTINS} | {"__import__": _import}
    namespace: dict[str, object] = {"__name__": "recorded", "__builtins__": known}
    exec(compile(source, "<generated>", "exec"), namespace)
    made = cast("Callable[[], object]", namespace["build"])()
    if not isinstance(made, Module):
        raise TypeError("build() makes no module")
    return made


# The names of torch ---------------------------------------------------------------------------------------------------


def _made(shape: object, dtype: DType = float32, device: None = None) -> Tensor:
    return Tensor(sizes_of(shape, 1), dtype)


def _full(shape: object, value: object, dtype: DType | None = None, device: None = None) -> Tensor:
    return Tensor(sizes_of(shape, 1), dtype or OF_NUMBERS[value.__class__])


def _tensor(values: object, dtype: DType | None = None, device: None = None) -> Tensor:
    if not isinstance(values, tuple):
        return Tensor((), dtype or OF_NUMBERS[values.__class__])
    parts = [_tensor(item, dtype) for item in cast("tuple[object, ...]", values)]
    return Tensor((len(parts), *parts[0].shape), max(part.dtype for part in parts))


def _arange(stop: int, dtype: DType = int64, device: None = None) -> Tensor:
    return Tensor((stop,), dtype)


def _sort(x: Tensor, dim: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    return x.to(x.dtype), x.long()


def _same(x: Tensor, approximate: str = "none") -> Tensor:
    return x.to(x.dtype)


def _pad(x: Tensor, pad: Sequence[int], value: object = None) -> Tensor:
    filled = (False if x.dtype == bool_ else 0) if value is None else value
    for i in range(0, len(pad), 2):
        settings = {"axis": -1 - i // 2, "before": pad[i], "after": pad[i + 1], "value": filled}
        x = cast("Tensor", applied(OPS["pad"], [x], settings))
    return x


def _transformed(x: Tensor, dim: object) -> SimpleNamespace:
    return SimpleNamespace(real=applied(OPS["fft"], [x], {"axis": dim}))


def _normalized(x: Tensor, shape: object, weight: object, bias: object, eps: float) -> object:
    return applied(OPS["layer_norm"], [x, weight, bias], {"eps": eps})


def _initial(least: int = 0) -> Callable[..., Tensor]:
    """A function that fills a tensor of at least so many axes."""

    def fill(x: Tensor, *numbers: float, **named: float) -> Tensor:
        if len(x.shape) < least:
            raise ValueError("a matrix is needed")
        return x

    return fill


def _convolution_over(rank: int, transposed: bool) -> Callable[..., object]:
    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None, **settings: object) -> object:
        if len(x.shape) != rank + 2:
            raise TypeError("the input has other axes")
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "transposed": transposed}
        return applied(OPS["conv"], [x, weight, bias], {**usual, **settings})

    return convolve


class _FInfo(NamedTuple):
    """The limits of an element type."""

    dtype: DType
    min: float = -1.0


_INITIAL = ("normal_", "zeros_", "ones_", "constant_", "trunc_normal_", "uniform_")
_nn = SimpleNamespace(
    Module=Module,
    ModuleList=ModuleList,
    ModuleDict=ModuleDict,
    Parameter=Parameter,
    **{name.removeprefix("nn."): layer for name, layer in LAYERS.items()},
    init=SimpleNamespace(
        **{name: _initial() for name in _INITIAL},
        xavier_uniform_=_initial(2),
        kaiming_uniform_=_initial(2),
    ),
    functional=SimpleNamespace(
        **dict.fromkeys(("gelu", "relu", "silu"), _same),
        **FUNCTIONS["F"],
        layer_norm=_normalized,
        pad=_pad,
        dropout=lambda x, rate, training: _same(x),  # pyright: ignore
        scaled_dot_product_attention=lambda q, k, v, **_: Tensor((*q.shape[:-1], v.shape[-1]), q.dtype),  # pyright: ignore
        **{f"conv{rank}d": _convolution_over(rank, transposed=False) for rank in (1, 2, 3)},
        **{f"conv_transpose{rank}d": _convolution_over(rank, transposed=True) for rank in (1, 2, 3)},
    ),
)
_OTHERS = SimpleNamespace(
    Tensor=Tensor,
    nn=_nn,
    float32=float32,
    float64=float64,
    int64=int64,
    bool=bool_,
    contiguous_format=None,
    get_default_dtype=lambda: float32,
    promote_types=max,
    empty=_made,
    zeros=_made,
    full=_full,
    tensor=_tensor,
    finfo=_FInfo,
    arange=_arange,
    sort=_sort,
    floor=_same,
    fft=SimpleNamespace(fftn=_transformed),
)
torch = SimpleNamespace(**FUNCTIONS["torch"] | vars(_OTHERS))
"""What generated files use of torch."""

_BUILTINS = [
    "__build_class__",
    "abs",
    "bool",
    "dict",
    "enumerate",
    "float",
    "id",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "object",
    "range",
    "str",
    "super",
    "tuple",
    "zip",
    "AttributeError",
    "NotImplementedError",
    "ValueError",
]

_IMPORTED: dict[str, object] = {
    "__future__": __future__,
    "collections.abc": abc,
    "functools": SimpleNamespace(partial=partial),
    "math": math,
    "torch": torch,
    "torch.nn.functional": torch,
    "typing": typing,
}


def _import(name: str, *rest: object) -> object:
    """`import` as generated files use it."""
    return _IMPORTED[name]
