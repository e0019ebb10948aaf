"""Reductions, orders and statistics of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ParamSpec

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.forms import along
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.forms import shape as shapes
from archspec.ir.normal.nodes import Element
from archspec.pytorch.calls.values import (
    Axes,
    Handler,
    Operand,
    array_of,
    as_list,
    as_number,
    cast_to_type,
    elementwise_handler,
    refuse,
    unary_function,
)

_MAX_FACTORS = 16

P = ParamSpec("P")


def axes_of(rank: int, dim: Axes) -> list[int]:
    """Return the axes of a tensor of some rank that an argument names; all for none."""
    return list(range(rank)) if dim is None or dim == [] else [axis % rank for axis in as_list(dim)]


def _negated(n: Arrays, x: Array) -> Array:
    return n.each(x.shape, forms.negate, x)


def _smallest(n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    return _negated(n, along.largest(n, _negated(n, x), axes_of(len(x.shape), dim), keepdim))


def _extreme(is_largest: bool) -> Handler:
    """Return the handler of `max` or `min`: of two tensors, of all elements, or along an axis with its place."""

    def call(
        n: Arrays, types: Sequence[Type], x: Array, dim: Array | int | None = None, keepdim: bool = False
    ) -> Array | list[Array]:
        if isinstance(dim, Array):
            return elementwise_handler(forms.larger if is_largest else forms.smaller)(n, types, x, dim)
        turned = x if is_largest else _negated(n, x)
        found = along.largest(n, turned, axes_of(len(x.shape), dim), keepdim)
        value = found if is_largest else _negated(n, found)
        return value if dim is None else [value, along.place_of_largest(n, turned, dim, keepdim)]

    return call


def _place_of_smallest(
    n: Arrays, types: Sequence[Type], x: Array, dim: int | None = None, keepdim: bool = False
) -> Array:
    if dim is None:
        refuse("argmin")
    return along.place_of_largest(n, _negated(n, x), dim, keepdim)


def _top(
    n: Arrays, types: Sequence[Type], x: Array, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Array]:
    values, places = along.first_in_order(n, x if largest else _negated(n, x), k, dim)
    return [values if largest else _negated(n, values), places]


def _order(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = False,
) -> list[Array]:
    turned = x if descending else _negated(n, x)
    values, places = along.first_in_order(n, turned, x.shape[dim], dim)
    return [values if descending else _negated(n, values), places]


def _second(handler: Callable[P, list[Array]]) -> Callable[P, Array]:
    """Return what computes only the second result."""

    def call(*args: P.args, **keywords: P.kwargs) -> Array:
        return handler(*args, **keywords)[1]

    return call


_places_in_order = _second(_order)


def _any(n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    x = as_number(n, cast_to_type(n, x, Type(x.shape, "bool")), Type((), "int"))
    return cast_to_type(n, along.largest(n, x, axes_of(len(x.shape), dim), keepdim), types[0])


def _all(n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    e = n.elements
    opposite = n.array(x.shape, e.negation(cast_to_type(n, x, Type(x.shape, "bool")).element))
    found = _any(n, types, opposite, dim, keepdim)
    return n.array(found.shape, e.negation(found.element))


def _moments(n: Arrays, x: Array, axes: list[int], keepdim: bool, correction: float) -> tuple[Array, Array]:
    """Return the variance and the mean."""
    e = n.elements
    x = n.array(x.shape, e.real(x.element))
    count = e.real(e.integer(product([x.shape[axis] for axis in axes])))

    def mean(part: Array, keep: bool, by: Element) -> Array:
        summed = along.total(n, part, axes, keep)
        return n.array(summed.shape, e.product([(summed.element, 1.0), (by, -1.0)]))

    centred = n.each(x.shape, forms.subtract, x, mean(x, True, count))
    square = n.each(x.shape, forms.multiply, centred, centred)
    return mean(square, keepdim, e.combination([(1.0, count)], -float(correction))), mean(x, keepdim, count)


def _variance(power: float, with_mean: bool = False) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        dim: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Array | list[Array]:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        by = (1.0 if unbiased else 0.0) if correction is None else correction
        variance, mean = _moments(n, x, axes_of(len(x.shape), dim), keepdim, by)
        found = n.array(variance.shape, n.elements.product([(variance.element, power)]))
        return [found, mean] if with_mean else found

    return call


def norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    ord: float | None = 2,
    dim: Axes = None,
    keepdim: bool = False,
    **rest: object,
) -> Array:
    """Return the root of the sum of powers of absolute values, or the largest of these."""
    e = n.elements
    ord = 2 if ord is None else ord
    size = n.each(x.shape, unary_function("abs"), x)
    axes = axes_of(len(x.shape), dim)
    if ord == math.inf:
        return along.largest(n, size, axes, keepdim)
    if ord == -math.inf or ord == 0:
        refuse("norm")
    raised = (
        n.each(x.shape, forms.multiply, x, x) if ord == 2 else n.array(x.shape, e.product([(size.element, float(ord))]))
    )
    summed = along.total(n, raised, axes, keepdim)
    return n.array(summed.shape, e.product([(summed.element, 1 / ord)]))


def is_of_vectors(rank: int, ord: object, dim: Axes) -> bool:
    """Whether `torch.linalg.norm` computes norms of vectors, and not of matrices."""
    return ord is None or (rank == 1 if dim is None else len(as_list(dim)) == 1)


def _norm_of_vectors(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    ord: float | str | None = None,
    dim: Axes = None,
    keepdim: bool = False,
    **rest: object,
) -> Array:
    if isinstance(ord, str) or not is_of_vectors(len(x.shape), ord, dim):
        refuse("linalg_norm")
    return norm(n, types, x, ord, dim, keepdim)


def _log_sum_exp(n: Arrays, types: Sequence[Type], x: Array, dim: Axes, keepdim: bool = False) -> Array:
    """Return log(sum(exp(x))), computed without overflow."""
    most = along.largest(n, x, axes_of(len(x.shape), dim), True)
    exponential = n.each(x.shape, unary_function("exp"), n.each(x.shape, forms.subtract, x, most))
    logarithm = n.each(most.shape, unary_function("log"), along.total(n, exponential, axes_of(len(x.shape), dim), True))
    return n.reshape(n.each(most.shape, forms.add, logarithm, most), types[0].shape)


def _log_softmax(n: Arrays, types: Sequence[Type], x: Array, dim: int, *rest: object, **keywords: object) -> Array:
    axis = dim % len(x.shape)
    kept = Type((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return n.each(x.shape, forms.subtract, x, _log_sum_exp(n, [kept], x, dim, True))


def _product(
    n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False, **rest: object
) -> Array:
    """Return the product along axes of few elements."""
    (axis,) = axes_of(len(x.shape), dim) if len(axes_of(len(x.shape), dim)) == 1 else refuse("prod")
    size = x.shape[axis]
    if not isinstance(size, int) or size > _MAX_FACTORS:
        refuse("prod")
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    parts = [as_number(n, shapes.pick(n, x, axis, i), types[0]) for i in range(size)]
    found = parts[0]
    for part in parts[1:]:
        found = n.each(shape, forms.multiply, found, part)
    return cast_to_type(n, n.reshape(found, types[0].shape), types[0])


def _cosine(n: Arrays, types: Sequence[Type], a: Array, b: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    if a.shape[dim] != b.shape[dim]:  # of a repeated number, the norm is that of all repetitions
        refuse("cosine_similarity")
    shape = tuple([y if x == 1 else x for x, y in zip(a.shape, b.shape, strict=True)])
    summed = along.total(n, n.each(shape, forms.multiply, a, b), dim, False)

    def size(x: Array) -> Array:
        return n.each(summed.shape, forms.larger, norm(n, types, x, 2, dim), array_of(n, eps))

    by_a = n.each(summed.shape, forms.divide, summed, size(a))
    return n.each(summed.shape, forms.divide, by_a, size(b))


def _bucket(
    n: Arrays, types: Sequence[Type], x: Operand, boundaries: Array, *, out_int32: bool = False, right: bool = False
) -> Array:
    """Return how many boundaries are below each element."""
    e = n.elements
    x = array_of(n, x)
    over = n.axes.index("s0", boundaries.shape[0])
    bound = n.at(boundaries, [over])

    def element(i: Indices) -> Element:
        part = n.at(x, i)
        hit = forms.less_or_equal(e, bound, part) if right else forms.less(e, bound, part)
        return n.total(forms.to_integer(e, hit), [(over, boundaries.shape[0])])

    return n.make(x.shape, element)


def _sought(n: Arrays, types: Sequence[Type], boundaries: Array, x: Operand, **keywords: object) -> Array:
    if len(boundaries.shape) != 1 or keywords.get("sorter") is not None or keywords.get("side") == "right":
        refuse("searchsorted")
    return _bucket(n, types, x, boundaries, right=bool(keywords.get("right")))


def _is_among(
    n: Arrays, types: Sequence[Type], x: Operand, values: Operand, *, invert: bool = False, **rest: object
) -> Array:
    """Return which elements are equal to one of a list."""
    e = n.elements
    x, values = array_of(n, x), array_of(n, values)
    size = values.shape[0] if values.shape else 1
    over = n.axes.index("s0", size)

    def element(i: Indices) -> Element:
        hit = forms.equal(e, n.at(x, i), n.at(values, [over] if values.shape else []))
        count = n.total(forms.to_integer(e, hit), [(over, size)])
        found = e.at_least_zero(e.integer(e.polynomial(count) - 1))
        return e.negation(found) if invert else found

    return n.make(x.shape, element)


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
    _variance(1.0): "var",
    _variance(0.5): "std",
    _variance(1.0, True): "var_mean",
    _variance(0.5, True): "std_mean",
    norm: "norm linalg_vector_norm",
    _norm_of_vectors: "linalg_norm",
    _log_sum_exp: "logsumexp",
    _log_softmax: "log_softmax _log_softmax",
    _product: "prod",
    _cosine: "cosine_similarity",
    _bucket: "bucketize",
    _sought: "searchsorted",
    _is_among: "isin",
}
"""The names of the operations that each function is for."""
