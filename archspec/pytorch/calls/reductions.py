"""Reductions, orders, statistics and searches of PyTorch."""

from __future__ import annotations

import math

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.pytorch.calls.rows import (
    Results,
    Row,
    Types,
    along,
    axes_of,
    constant,
    convert,
    number_of,
    reduced,
    tensor_of,
)
from archspec.pytorch.values.arguments import Axes, as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Value

NONE, MEAN = 0, 1
"""How losses are reduced; otherwise they are added up."""

MAX_FACTORS = 16
"""Products are of at most so many elements."""


def _smallest(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    turned = b.op("neg", number_of(b, x))
    return convert(b, b.op("neg", reduced(b, "amax", turned, dim, keepdim)), types[0].dtype)


def _extreme(is_largest: bool) -> Row:
    """Return the row of `max` or `min`: of two tensors, of all elements, or along an axis with its place."""

    def call(b: Builder, types: Types, x: Value, dim: Value | int | None = None, keepdim: bool = False) -> Results:
        if isinstance(dim, Value):
            if types[0].dtype == "bool":
                return b.op("or" if is_largest else "and", x, dim)
            first, second = [convert(b, side, types[0].dtype) for side in (x, dim)]
            return b.op("max" if is_largest else "min", first, second)
        turned = number_of(b, x) if is_largest else b.op("neg", number_of(b, x))
        most = reduced(b, "amax", turned, dim, keepdim)
        value = convert(b, most if is_largest else b.op("neg", most), types[0].dtype)
        return value if dim is None else [value, b.op("argmax", turned, **along(x, dim, keepdim))]

    return call


def _place_of_smallest(b: Builder, types: Types, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return refuse("argmin") if dim is None else b.op("argmax", b.op("neg", x), **along(x, dim, keepdim))


def _top(
    b: Builder, types: Types, x: Value, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Value]:
    axis = {} if dim in (-1, len(x.shape) - 1) else {"axis": dim}
    values, places = b.ops("topk", x if largest else b.op("neg", x), k=k, **axis)
    return [values if largest else b.op("neg", values), places]


def _order(
    b: Builder, types: Types, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = False
) -> list[Value]:
    return _top(b, types, x, x.shape[dim], dim, descending)


def _places_in_order(
    b: Builder, types: Types, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = False
) -> Value:
    return _order(b, types, x, dim, descending)[1]


def _any(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    most = reduced(b, "amax", b.op("int", convert(b, x, "bool")), dim, keepdim)
    return convert(b, most, "bool")


def _all(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return b.op("not", _any(b, types, b.op("not", convert(b, x, "bool")), dim, keepdim))


def _mean(b: Builder, x: Value, axes: list[int], keep: bool, correction: float = 0) -> Value:
    count = product([x.shape[axis] for axis in axes])
    by = count - int(correction) if float(correction).is_integer() else constant(count, "real") - correction
    return b.op("div", reduced(b, "sum", x, axes, keep), by)


def _variance(is_root: bool, with_mean: bool = False) -> Row:
    def call(
        b: Builder,
        types: Types,
        x: Value,
        dim: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Results:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        by = (1 if unbiased else 0) if correction is None else correction
        axes = axes_of(len(x.shape), dim)
        centred = b.op("sub", x, _mean(b, x, axes, True))
        variance = _mean(b, b.op("mul", centred, centred), axes, keepdim, by)
        made = b.op("sqrt", variance) if is_root else variance
        return [made, _mean(b, x, axes, keepdim)] if with_mean else made

    return call


def norm(
    b: Builder, types: Types, x: Value, ord: float | None = 2, dim: Axes = None, keepdim: bool = False, **rest: object
) -> Value:
    """Return the root of the sum of powers of absolute values, or the largest of these."""
    ord = 2 if ord is None else ord
    if ord == math.inf:
        return reduced(b, "amax", b.op("abs", x), dim, keepdim)
    if ord == -math.inf or ord == 0:
        refuse("norm")
    if ord == 2:
        return b.op("sqrt", reduced(b, "sum", b.op("mul", x, x), dim, keepdim))
    if ord == 1:
        return reduced(b, "sum", b.op("abs", x), dim, keepdim)
    return b.op("pow", reduced(b, "sum", b.op("pow", b.op("abs", x), float(ord)), dim, keepdim), 1 / ord)


def _norm_of_vectors(
    b: Builder,
    types: Types,
    x: Value,
    ord: float | str | None = None,
    dim: Axes = None,
    keepdim: bool = False,
    **rest: object,
) -> Value:
    is_of_vectors = ord is None or (len(x.shape) == 1 if dim is None else len(as_list(dim)) == 1)
    if isinstance(ord, str) or not is_of_vectors:
        refuse("linalg_norm")
    return norm(b, types, x, ord, dim, keepdim)


def _log_sum_exp(b: Builder, types: Types, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    """Return log(sum(exp(x))), computed without overflow."""
    x = convert(b, x, "real")
    most = reduced(b, "amax", x, dim, True)
    summed = reduced(b, "sum", b.op("exp", b.op("sub", x, most)), dim, True)
    return b.reshape(b.op("add", b.op("log", summed), most), types[0].shape)


def _log_softmax(b: Builder, types: Types, x: Value, dim: int, *rest: object, **keywords: object) -> Value:
    axis = dim % len(x.shape)
    kept = Type((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return b.op("sub", convert(b, x, "real"), _log_sum_exp(b, [kept], x, dim, True))


def _cross_entropy(
    b: Builder,
    types: Types,
    x: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Value:
    """Return the loss of the classes along the last axis, or the second of several, without targets to be ignored."""
    if weight is not None or label_smoothing or target.dtype != "int" or len(x.shape) == 1:
        refuse("cross_entropy_loss")
    last = [0, *range(2, len(x.shape)), 1]
    scores = _log_softmax(b, types, x if len(x.shape) == 2 else b.permute(x, last), -1)
    is_target = b.op("eq", b.op("arange", stop=x.shape[1]), b.reshape(target, (*target.shape, 1)))
    losses = b.op("neg", b.op("sum", b.op("where", is_target, scores, 0.0), axis=-1))
    counts = b.op("ne", target, ignore_index)
    losses = b.op("where", counts, losses, 0.0)
    if reduction == NONE:
        return losses
    total = reduced(b, "sum", losses, None)
    return b.op("div", total, reduced(b, "sum", b.op("real", counts), None)) if reduction == MEAN else total


def _product(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
    """Return the product along an axis of few elements."""
    axis, *others = axes_of(len(x.shape), dim)
    size = x.shape[axis]
    if others or not isinstance(size, int) or size > MAX_FACTORS:
        refuse("prod")
    first, *parts = [convert(b, number_of(b, b.op("pick", x, axis=axis, index=turn)), types[0].dtype)
                     for turn in range(size)]  # fmt: skip
    for part in parts:
        first = b.op("mul", first, part)
    return b.reshape(first, types[0].shape)


def _cosine(b: Builder, types: Types, x: Value, y: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    if x.shape[dim] != y.shape[dim]:  # of a repeated number, the norm is that of all repetitions
        refuse("cosine_similarity")
    made = b.op("sum", b.op("mul", x, y), **along(x, dim))
    for part in (x, y):
        made = b.op("div", made, b.op("max", norm(b, types, part, 2, dim), eps))
    return made


def _bucket(b: Builder, types: Types, x: Operand, boundaries: Value, *, right: bool = False, **rest: object) -> Value:
    """Return how many boundaries are below each element."""
    x = tensor_of(b, x)
    hits = b.op("le" if right else "lt", boundaries, b.reshape(x, (*x.shape, 1)))
    return b.op("sum", b.op("int", hits), axis=-1)


def _sought(
    b: Builder,
    types: Types,
    boundaries: Value,
    x: Operand,
    *,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
    **rest: object,
) -> Value:
    if len(boundaries.shape) != 1 or sorter is not None or side == "right":
        refuse("searchsorted")
    return _bucket(b, types, x, boundaries, right=right)


def _is_among(b: Builder, types: Types, x: Operand, values: Operand, *, invert: bool = False, **rest: object) -> Value:
    """Return which elements are equal to one of a list."""
    x, values = tensor_of(b, x), tensor_of(b, values)
    hits = b.op("eq", b.reshape(x, (*x.shape, 1)), b.reshape(values, (product(values.shape),)))
    return b.op("lt" if invert else "ge", b.op("sum", b.op("int", hits), axis=-1), 1)


NAMES: dict[Row, str] = {
    _smallest: "amin",
    _extreme(True): "max",
    _extreme(False): "min",
    _place_of_smallest: "argmin",
    _top: "topk",
    _order: "sort",
    _places_in_order: "argsort",
    _any: "any",
    _all: "all",
    _variance(False): "var",
    _variance(True): "std",
    _variance(False, True): "var_mean",
    _variance(True, True): "std_mean",
    norm: "norm linalg_vector_norm",
    _norm_of_vectors: "linalg_norm",
    _log_sum_exp: "logsumexp",
    _log_softmax: "log_softmax _log_softmax",
    _cross_entropy: "cross_entropy_loss",
    _product: "prod",
    _cosine: "cosine_similarity",
    _bucket: "bucketize",
    _sought: "searchsorted",
    _is_among: "isin",
}
"""The names of the operations that each row is for."""
