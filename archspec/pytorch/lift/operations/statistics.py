"""Reductions and statistics of PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.pytorch.calls.contractions import BILINEAR, Equation, equation_of
from archspec.pytorch.calls.reductions import axes_of
from archspec.pytorch.calls.values import Axes
from archspec.pytorch.lift.operations.handlers import Handler, Results, Types, constant, convert, fixed_size
from archspec.pytorch.lift.operations.shape import diagonal
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Setting, Value


def _along(x: Value, dim: Axes, keepdim: bool) -> dict[str, Setting]:
    axes = axes_of(len(x.shape), dim)
    places = [-1 if axis == len(x.shape) - 1 else axis for axis in axes]
    return {"axis": places[0] if len(places) == 1 else places, **({"keep": True} if keepdim else {})}


def _smallest(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return b.op("neg", b.op("amax", b.op("neg", x), **_along(x, dim, keepdim)))


def _extreme(is_largest: bool) -> Handler:
    """Return the handler of `max` or `min`: of two tensors, of all elements, or along an axis with its place."""

    def call(b: Builder, types: Types, x: Value, dim: Value | int | None = None, keepdim: bool = False) -> Results:
        if isinstance(dim, Value):
            return b.op("max" if is_largest else "min", x, dim)
        turned = x if is_largest else b.op("neg", x)
        found = b.op("amax", turned, **_along(x, dim, keepdim))
        value = found if is_largest else b.op("neg", found)
        return value if dim is None else [value, b.op("argmax", turned, **_along(x, dim, keepdim))]

    return call


def _place_of_smallest(b: Builder, types: Types, x: Value, dim: int, keepdim: bool = False) -> Value:
    return b.op("argmax", b.op("neg", x), **_along(x, dim, keepdim))


def _top(
    b: Builder, types: Types, x: Value, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Value]:
    axis = {} if dim in (-1, len(x.shape) - 1) else {"axis": dim}
    values, places = b.ops("topk", x if largest else b.op("neg", x), k=k, **axis)
    return [values if largest else b.op("neg", values), places]


def _order(
    b: Builder, types: Types, x: Value, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> list[Value]:
    return _top(b, types, x, x.shape[dim], dim, descending)


def _places_in_order(
    b: Builder, types: Types, x: Value, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Value:
    return _order(b, types, x, dim, descending)[1]


def _any(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    found = b.op("amax", b.op("int", convert(b, x, "bool")), **_along(x, dim, keepdim))
    return convert(b, found, "bool")


def _all(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return b.op("not", _any(b, types, b.op("not", convert(b, x, "bool")), dim, keepdim))


def _mean(b: Builder, x: Value, axes: list[int], keep: bool, correction: float = 0) -> Value:
    count = product([x.shape[axis] for axis in axes])
    by = count - int(correction) if float(correction).is_integer() else constant(count, "real") - correction
    return b.op("div", b.op("sum", x, **_along(x, axes, keep)), by)


def _variance(is_root: bool, with_mean: bool = False) -> Handler:
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
        found = b.op("sqrt", variance) if is_root else variance
        return [found, _mean(b, x, axes, keepdim)] if with_mean else found

    return call


def _norm(
    b: Builder, types: Types, x: Value, ord: float | None = 2, dim: Axes = None, keepdim: bool = False, **rest: object
) -> Value:
    """Return the root of the sum of powers of absolute values, or the largest of these."""
    along, ord = _along(x, dim, keepdim), 2 if ord is None else ord
    if ord == math.inf:
        return b.op("amax", b.op("abs", x), **along)
    if ord == 2:
        return b.op("sqrt", b.op("sum", b.op("mul", x, x), **along))
    if ord == 1:
        return b.op("sum", b.op("abs", x), **along)
    return b.op("pow", b.op("sum", b.op("pow", b.op("abs", x), float(ord)), **along), 1 / ord)


def _log_sum_exp(b: Builder, types: Types, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    most = b.op("amax", x, **_along(x, dim, True))
    summed = b.op("sum", b.op("exp", b.op("sub", x, most)), **_along(x, dim, True))
    return b.reshape(b.op("add", b.op("log", summed), most), types[0].shape)


def _log_softmax(b: Builder, types: Types, x: Value, dim: int, *rest: object, **keywords: object) -> Value:
    return b.op("sub", x, _log_sum_exp(b, _kept(b, x, dim), x, dim, True))


def _kept(b: Builder, x: Value, dim: int) -> Types:
    axis = dim % len(x.shape)
    return [Type((*x.shape[:axis], 1, *x.shape[axis + 1 :]))]


def _product(b: Builder, types: Types, x: Value, dim: Axes = None, keepdim: bool = False, **rest: object) -> Value:
    """Return the product along an axis of few elements."""
    (axis,) = axes_of(len(x.shape), dim)
    found = b.op("pick", x, axis=axis, index=0)
    for index in range(1, fixed_size(x.shape[axis])):
        found = b.op("mul", found, b.op("pick", x, axis=axis, index=index))
    return b.reshape(found, types[0].shape)


def _einsum(b: Builder, types: Types, equation: str, tensors: list[Value], **rest: object) -> Value:
    """Return the sum of products, as matrix products of two tensors at a time."""
    parsed = equation_of(equation, [x.shape for x in tensors])
    (letters, found), *others = [_without_diagonals(b, *side) for side in zip(parsed.terms, tensors, strict=True)]
    for turn, (other, tensor) in enumerate(others, 2):
        later = {*parsed.result, *[letter for term in parsed.terms[turn:] for letter in term]}
        letters, found = _multiplied(b, parsed, (letters, found), (other, tensor), later)
    summed = [axis for axis, letter in enumerate(letters) if letter not in parsed.result]
    if summed:
        found = b.op("sum", found, axis=summed[0] if len(summed) == 1 else summed)
        letters = [letter for letter in letters if letter in parsed.result]
    return b.permute(found, [letters.index(letter) for letter in parsed.result])


def _without_diagonals(b: Builder, letters: list[str], x: Value) -> tuple[list[str], Value]:
    """Return the elements of a tensor whose indices along axes with the same letter are the same."""
    while len(set(letters)) < len(letters):
        axis = next(axis for axis, letter in enumerate(letters) if letter in letters[:axis])
        kept = [at for at in range(len(letters)) if at not in (axis, letters.index(letters[axis]))]
        shape = (*[x.shape[at] for at in kept], x.shape[axis])
        x = diagonal(b, [Type(shape)], x, 0, letters.index(letters[axis]), axis)
        letters = [*[letters[at] for at in kept], letters[axis]]
    return letters, x


def _multiplied(
    b: Builder, parsed: Equation, left: tuple[list[str], Value], right: tuple[list[str], Value], later: set[str]
) -> tuple[list[str], Value]:
    """Return the product of two tensors, summed over what is not needed later."""
    sides: list[tuple[list[str], Value]] = []
    for (letters, x), (others, _) in ((left, right), (right, left)):
        alone = [axis for axis, letter in enumerate(letters) if letter not in later and letter not in others]
        if alone:
            x = b.op("sum", x, axis=alone[0] if len(alone) == 1 else alone)
            letters = [letter for axis, letter in enumerate(letters) if axis not in alone]
        sides.append((letters, x))
    (first, x), (second, y) = sides
    both = [letter for letter in first if letter in second]
    batch, inner = [at for at in both if at in later], [at for at in both if at not in later]
    rows = [letter for letter in first if letter not in both]
    columns = [letter for letter in second if letter not in both]
    if not inner:
        return _product_of_axes(b, parsed, (first, x), (second, y))
    lead = tuple([parsed.sizes[letter] for letter in batch])

    def matrix(letters: list[str], value: Value, order: Sequence[list[str]]) -> Value:
        flat = [letter for group in order for letter in group]
        turned = b.permute(value, [letters.index(letter) for letter in [*batch, *flat]])
        sizes = tuple([product([parsed.sizes[letter] for letter in group]) for group in order])
        return b.reshape(turned, (*lead, *sizes))

    above = [rows] if batch or len(rows) < 2 else [[letter] for letter in rows]  # one matrix is for all rows of others
    made = b.op("matmul", matrix(first, x, (*above, inner)), matrix(second, y, (inner, columns)))
    found = [*batch, *rows, *columns]
    return found, b.reshape(made, tuple([parsed.sizes[letter] for letter in found]))


def _product_of_axes(
    b: Builder, parsed: Equation, left: tuple[list[str], Value], right: tuple[list[str], Value]
) -> tuple[list[str], Value]:
    """Return the product of two tensors, with all their axes: of those that have different ones, each one's own."""
    letters = [letter for letter in parsed.result if letter in (*left[0], *right[0])]
    letters += [letter for letter in dict.fromkeys([*left[0], *right[0]]) if letter not in letters]

    def laid_out(own: list[str], x: Value) -> Value:
        turned = b.permute(x, [own.index(letter) for letter in letters if letter in own])
        return b.reshape(turned, tuple([parsed.sizes[letter] if letter in own else 1 for letter in letters]))

    return letters, b.op("mul", laid_out(*left), laid_out(*right))


def _bilinear(b: Builder, types: Types, x: Value, y: Value, weight: Value, bias: Value | None = None) -> Value:
    found = _einsum(b, types, BILINEAR, [x, weight, y])
    return found if bias is None else b.op("add", found, bias)


def _outer(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("mul", b.reshape(x, (x.shape[0], 1)), y)


def _inner(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("sum", b.op("mul", x, y), axis=0)


def _cosine(b: Builder, types: Types, x: Value, y: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    found = b.op("sum", b.op("mul", x, y), **_along(x, dim, False))
    for part in (x, y):
        found = b.op("div", found, b.op("max", _norm(b, types, part, 2, dim), eps))
    return found


def _bucket(b: Builder, types: Types, x: Value, boundaries: Value, *, right: bool = False, **rest: object) -> Value:
    """Return how many boundaries are below each element."""
    hits = b.op("le" if right else "lt", boundaries, b.reshape(x, (*x.shape, 1)))
    return b.op("sum", b.op("int", hits), axis=-1)


def _sought(b: Builder, types: Types, boundaries: Value, x: Value, *, right: bool = False, **rest: object) -> Value:
    return _bucket(b, types, x, boundaries, right=right)


def _is_among(b: Builder, types: Types, x: Value, values: Value, *, invert: bool = False, **rest: object) -> Value:
    hits = b.op("eq", b.reshape(x, (*x.shape, 1)), values)
    return b.op("lt" if invert else "ge", b.op("sum", b.op("int", hits), axis=-1), 1)


def _weight_norm(b: Builder, types: Types, v: Value, g: Value, dim: int = 0) -> Results:
    """Return directions times magnitudes."""
    size = _norm(b, types, v, 2, [axis for axis in range(len(v.shape)) if axis != dim % len(v.shape)], True)
    found = b.op("mul", v, b.op("div", g, size))
    return [found, size] if len(types) == 2 else found


def _normalized(
    b: Builder, x: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value, eps: float
) -> Value:
    """Return elements less a stored mean, over the root of a stored variance."""
    ones = [1] * (len(x.shape) - 2)

    def channels(part: Value) -> Value:
        return b.reshape(part, (*part.shape, *ones))

    found = b.op("div", b.op("sub", x, channels(mean)), b.op("sqrt", b.op("add", channels(variance), eps)))
    found = found if weight is None else b.op("mul", found, channels(weight))
    return found if bias is None else b.op("add", found, channels(bias))


def _normalized_alone(b: Builder, x: Value, weight: Value | None, bias: Value | None, eps: float) -> Value:
    """Return elements that are normalized by the statistics of their own channel."""
    args = [weight, bias] if bias is not None else [weight] if weight is not None else []
    return b.op("group_norm", x, *args, groups=x.shape[1], eps=eps)


def _batch_norm(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, mean: Value | None,
                variance: Value | None, training: bool, momentum: float, eps: float,
                *rest: object) -> Value:  # fmt: skip
    if mean is None or variance is None:
        return _normalized_alone(b, x, weight, bias, eps)
    return _normalized(b, x, weight, bias, mean, variance, eps)


def _evaluated_batch_norm(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, mean: Value,
                          variance: Value, momentum: float, eps: float) -> list[Value | None]:  # fmt: skip
    return [_normalized(b, x, weight, bias, mean, variance, eps), *[None] * (len(types) - 1)]


def _batch_statistics(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, training: bool,
                      momentum: float, eps: float) -> list[Value | None]:  # fmt: skip
    return [_normalized_alone(b, x, weight, bias, eps), *[None] * (len(types) - 1)]


def _instance_norm(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, mean: Value | None,
                   variance: Value | None, own: bool, momentum: float, eps: float,
                   *rest: object) -> Value:  # fmt: skip
    found = (None, None) if own else (mean, variance)
    return _batch_norm(b, types, x, weight, bias, *found, own, momentum, eps)


NAMES: dict[Handler, str] = {
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
    _norm: "norm linalg_vector_norm linalg_norm",
    _log_sum_exp: "logsumexp",
    _log_softmax: "log_softmax _log_softmax",
    _product: "prod",
    _einsum: "einsum",
    _bilinear: "bilinear",
    _outer: "outer ger",
    _inner: "dot vdot inner",
    _cosine: "cosine_similarity",
    _bucket: "bucketize",
    _sought: "searchsorted",
    _is_among: "isin",
    _weight_norm: "_weight_norm _weight_norm_interface",
    _batch_norm: "batch_norm",
    _evaluated_batch_norm: "_native_batch_norm_legit_no_training",
    _batch_statistics: "_native_batch_norm_legit",
    _instance_norm: "instance_norm",
}
"""The names of the operations that each function is for."""
