"""Reductions, products and normalization of PyTorch as values."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim, product
from archspec.pytorch.calls.values import Axes, Sizes, as_list
from archspec.pytorch.lift.idioms.attention import attention
from archspec.pytorch.lift.idioms.experts import gated_experts, product_of_experts
from archspec.pytorch.lift.idioms.layers import ACTIVATIONS
from archspec.pytorch.lift.operations.handlers import Handler, Types, convert, number_of
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Setting, Value


def _softmax(b: Builder, types: Types, x: Value, dim: int, *rest: object, **keywords: object) -> Value:
    return b.op("softmax", x, axis=dim % len(x.shape) - len(x.shape))


def _reduction(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
        found = b.op(name, _summand(b, x, types), **_along(x, dim, keepdim))
        return gated_experts(b, found, ACTIVATIONS) or convert(b, found, types[0].dtype)

    return call


def _summand(b: Builder, x: Value, types: Types) -> Value:
    """Return what is summed: integers if it is booleans, or if the sums are to be integers."""
    return convert(b, x, "int") if x.dtype == "bool" or types[0].dtype == "int" else x


def _along(x: Value, dim: Axes, keepdim: bool) -> dict[str, Setting]:
    axes = list(range(len(x.shape))) if dim is None or dim == [] else as_list(dim)
    places = [axis - len(x.shape) if axis == len(x.shape) - 1 else axis for axis in axes]
    settings: dict[str, Setting] = {"axis": places[0] if len(places) == 1 else places}
    return settings | ({"keep": True} if keepdim else {})


def _mean(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
    axes: list[int] = list(range(len(x.shape))) if dim is None or dim == [] else as_list(dim)
    return b.op("div", b.op("sum", x, **_along(x, dim, keepdim)), product([x.shape[axis] for axis in axes]))


def _cumsum(b: Builder, types: Types, x: Value, dim: int, **rest: object) -> Value:
    return b.op("cumsum", _summand(b, x, types), axis=dim)


def _argmax(b: Builder, types: Types, x: Value, dim: int, keepdim: bool = False) -> Value:
    return b.op("argmax", number_of(b, x), axis=dim, **({"keep": True} if keepdim else {}))


def _matmul(b: Builder, types: Types, x: Value, y: Value) -> Value:
    left = b.reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
    right = b.reshape(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    if left.shape[-1] == 1:
        return b.reshape(b.op("mul", left, right), types[0].shape)
    found = b.op("matmul", left, right)
    return b.reshape(product_of_experts(b, left, right, found.array) or found, types[0].shape)


def _linear(b: Builder, types: Types, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if len(weight.shape) == 1:
        return b.reshape(b.op("linear", x, b.reshape(weight, (1, *weight.shape))), types[0].shape)
    return b.op("linear", x, weight, *([bias] if bias is not None else []))


def _addmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, **rest: object) -> Value:
    flat = b.op("add", b.op("matmul", x, y), bias)
    found = b.reshape(b.op("add", b.op("matmul", b.unflattened(x), y), bias), types[0].shape)
    return found if found.array == flat.array else flat  # the form of stacked rows depends on where they are flattened


def _baddbmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    return b.op("add", b.op("mul", b.op("matmul", x, y), float(alpha)), b.op("mul", bias, float(beta)))


def _solve_triangular(b: Builder, types: Types, x: Value, y: Value, **rest: object) -> Value:
    return b.op("forward_substitution", x, y)


def convolution(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Value:
    """Return a convolution."""
    settings = conv_settings(stride, padding, dilation, groups)
    return b.op("conv", x, weight, *([bias] if bias is not None else []), **settings)


def conv_settings(stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> dict[str, Setting]:
    """Return the settings of a convolution that are not the usual ones."""
    named = {"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1), "groups": (groups, 1)}
    return {name: _alike(value) for name, (value, default) in named.items() if _alike(value) != default}


def _alike(value: Sizes) -> Sizes:
    """Return one number for a list of equal ones."""
    values = as_list(value)
    return values[0] if len(set(values)) == 1 else values


def _layer_norm(
    b: Builder,
    types: Types,
    x: Value,
    shape: Sequence[Dim],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Value:
    args = [weight, bias] if bias is not None else [weight] if weight is not None else []
    return b.op("layer_norm", x, *args, eps=eps)


def _group_norm(
    b: Builder,
    types: Types,
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Value:
    args = [weight, bias] if bias is not None else [weight] if weight is not None else []
    return b.op("group_norm", x, *args, groups=groups, eps=eps)


def _rms_norm(b: Builder, types: Types, x: Value, shape: Sequence[Dim], weight: Value | None, eps: float) -> Value:
    square = _mean(b, types, b.op("mul", x, x), list(range(-len(shape), 0)), True)
    found = b.op("div", x, b.op("sqrt", b.op("add", square, eps)))
    return found if weight is None else b.op("mul", found, weight)


def _attention(
    b: Builder,
    types: Types,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value | None:
    return attention(b, query, key, value, attn_mask, is_causal, scale)


NAMES: dict[Handler, str] = {
    _softmax: "softmax _softmax",
    _reduction("sum"): "sum",
    _reduction("amax"): "amax",
    _mean: "mean",
    _cumsum: "cumsum",
    _argmax: "argmax",
    _matmul: "matmul bmm mm mv",
    _linear: "linear",
    _addmm: "addmm",
    _baddbmm: "baddbmm",
    _solve_triangular: "linalg_solve_triangular",
    _layer_norm: "layer_norm",
    _group_norm: "group_norm",
    _rms_norm: "rms_norm",
    _attention: "scaled_dot_product_attention",
}
"""The names of the operations that each function is for."""
