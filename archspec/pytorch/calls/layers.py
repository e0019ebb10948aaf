"""Sums, products and attention of PyTorch."""

from __future__ import annotations

import math

from archspec.core.algebra import Dim, product
from archspec.pytorch.calls.rows import Row, Types, axes_of, constant, convert, number_of, reduced
from archspec.pytorch.values.arguments import Axes, UntranslatableError, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value


def _softmax(b: Builder, types: Types, x: Value, dim: int, *rest: object, **keywords: object) -> Value:
    return b.op("softmax", convert(b, x, "real"), axis=dim % len(x.shape) - len(x.shape))


def _reduction(name: str) -> Row:
    def call(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
        return convert(b, reduced(b, name, _summand(b, x, types), dim, keepdim), types[0].dtype)

    return call


def _summand(b: Builder, x: Value, types: Types) -> Value:
    """Return what is summed: integers if it is booleans, or if the sums are to be integers."""
    return convert(b, x, "int") if x.dtype == "bool" or types[0].dtype == "int" else x


def mean(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
    """Return the mean along axes."""
    count = product([x.shape[axis] for axis in axes_of(len(x.shape), dim)])
    return b.op("div", reduced(b, "sum", convert(b, x, "real"), dim, keepdim), count)


def _cumsum(b: Builder, types: Types, x: Value, dim: int, **rest: object) -> Value:
    return convert(b, b.op("cumsum", _summand(b, x, types), axis=dim), types[0].dtype)


def _argmax(b: Builder, types: Types, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    if dim is None:
        refuse("argmax")
    return b.op("argmax", number_of(b, x), axis=dim, **({"keep": True} if keepdim else {}))


def _matmul(b: Builder, types: Types, x: Value, y: Value) -> Value:
    left = b.reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
    right = b.reshape(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    return b.reshape(b.op("mul" if left.shape[-1] == 1 else "matmul", left, right), types[0].shape)


def _linear(b: Builder, types: Types, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if len(weight.shape) == 1:  # one column, which the result has no axis for
        weight = b.reshape(weight, (1, *weight.shape))
        bias = b.reshape(bias, (1,)) if bias is not None else None
    made = b.op("linear", x, weight, *([bias] if bias is not None else []))
    return b.reshape(made, types[0].shape) if made.shape != types[0].shape else made


def _addmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    if (beta, alpha) != (1, 1):
        return _baddbmm(b, types, bias, x, y, beta=beta, alpha=alpha)
    flat = b.op("add", b.op("matmul", x, y), bias)
    made = b.reshape(b.op("add", b.op("matmul", b.unflattened(x), y), bias), types[0].shape)
    return made if made.array == flat.array else flat  # the form of stacked rows depends on where they are flattened


def _baddbmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    scales = [constant(scale, types[0].dtype) for scale in (alpha, beta)]
    return b.op("add", *[b.op("mul", part, by) for part, by in zip((b.op("matmul", x, y), bias), scales, strict=True)])


def _solve_triangular(
    b: Builder, types: Types, x: Value, y: Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Value:
    if upper or not left or not unitriangular:
        raise UntranslatableError("it solves a triangular system other than a unit lower-triangular one")
    return b.op("forward_substitution", x, y)


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
) -> Value:
    if dropout_p:
        raise UntranslatableError("attention dropout is active: the module is in training mode")
    size = query.shape[-1]
    by = float(size**-0.5) if isinstance(size, int) else refuse("scaled_dot_product_attention")
    made = attended(b, query, key, value, attn_mask, is_causal, by if scale is None else scale)
    return b.recognize("attention", made, query, key, value, attn_mask, is_causal, scale)


def attended(
    b: Builder, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float
) -> Value:
    """Return scaled dot-product attention, in which adjacent heads of queries may share one of keys and values."""
    b, heads = Builder(b.arrays), query.shape[-3] if len(query.shape) > 2 else 1
    if len(key.shape) > 2 and key.shape[-3] not in (1, heads):
        key, value = [_repeated(b, x, heads // x.shape[-3]) for x in (key, value)]
    last = len(key.shape) - 1
    turned = b.permute(key, [*range(last - 1), last, last - 1])
    scores = b.op("mul", b.op("matmul", query, turned), scale)
    if mask is not None:
        is_test = mask.dtype == "bool"
        scores = b.op("where", mask, scores, -math.inf) if is_test else b.op("add", scores, mask)
    if is_causal:
        rows, columns = scores.shape[-2:]
        places = b.reshape(b.op("arange", stop=rows), (rows, 1))
        scores = b.op("where", b.op("ge", places, b.op("arange", stop=columns)), scores, -math.inf)
    return b.op("matmul", b.op("softmax", scores, axis=-1), value)


def _repeated(b: Builder, x: Value, times: Dim) -> Value:
    """Repeat each head."""
    *lead, heads, rows, columns = x.shape
    wide = b.expand(b.reshape(x, (*lead, heads, 1, rows, columns)), (*lead, heads, times, rows, columns))
    return b.reshape(wide, (*lead, heads * times, rows, columns))


NAMES: dict[Row, str] = {
    _softmax: "softmax _softmax",
    _reduction("sum"): "sum",
    _reduction("amax"): "amax",
    mean: "mean",
    _cumsum: "cumsum",
    _argmax: "argmax",
    _matmul: "matmul bmm mm mv",
    _linear: "linear",
    _addmm: "addmm",
    _baddbmm: "baddbmm",
    _solve_triangular: "linalg_solve_triangular",
    _attention: "scaled_dot_product_attention",
}
"""The names of the operations that each row is for."""
