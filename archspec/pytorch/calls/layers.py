"""Sums, products, convolutions, pooling and attention of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms import along, weights
from archspec.ir.normal.forms.elementwise import add, divide, multiply
from archspec.ir.normal.forms.shape import pad, transpose
from archspec.ir.normal.nodes import Element
from archspec.pytorch.calls.values import (
    Axes,
    Handler,
    Sizes,
    UntranslatableError,
    array_of,
    as_list,
    cast_to_type,
    refuse,
)


def _softmax(n: Arrays, types: Sequence[Type], x: Array, dim: int, *rest: object, **keywords: object) -> Array:
    return along.normalized(n, x, dim)


def _reduction(function: Callable[..., Array]) -> Handler:
    def call(
        n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False, **rest: object
    ) -> Array:
        axes = list(range(len(x.shape))) if dim is None or dim == [] else dim
        return cast_to_type(n, function(n, _summand(n, x, types[0]), axes, keepdim), types[0])

    return call


def _summand(n: Arrays, x: Array, result: Type) -> Array:
    """Return what is summed: integers if it is booleans, or if the sums are to be integers."""
    return cast_to_type(n, x, Type((), "int")) if n.dtype(x) == "bool" or result.dtype == "int" else x


def mean(n: Arrays, types: Sequence[Type], x: Array, dim: Axes = None, keepdim: bool = False, **rest: object) -> Array:
    axes = list(range(len(x.shape))) if dim is None or dim == [] else as_list(dim)
    e = n.elements
    summed = along.total(n, n.array(x.shape, e.real(x.element)), axes, keepdim)
    count = product([x.shape[axis] for axis in axes])
    return n.array(summed.shape, e.product([(summed.element, 1.0), (e.real(e.integer(count)), -1.0)]))


def _cumsum(n: Arrays, types: Sequence[Type], x: Array, dim: int, **rest: object) -> Array:
    return cast_to_type(n, along.running_total(n, _summand(n, x, types[0]), dim), types[0])


def _argmax(n: Arrays, types: Sequence[Type], x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return along.place_of_largest(n, x, dim, keepdim) if dim is not None else refuse("argmax")


def _matmul(n: Arrays, types: Sequence[Type], a: Array, b: Array) -> Array:
    left = n.reshape(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = n.reshape(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    return n.reshape(weights.matmul(n, left, right), types[0].shape)


def _linear(n: Arrays, types: Sequence[Type], x: Array, weight: Array, bias: Array | None = None) -> Array:
    if len(weight.shape) == 1:  # one column, which the result has no axis for
        return n.reshape(weights.linear(n, x, n.reshape(weight, (1, *weight.shape)), bias), types[0].shape)
    return weights.linear(n, x, weight, bias)


def _addmm(
    n: Arrays, types: Sequence[Type], bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1
) -> Array:
    if (beta, alpha) != (1, 1):
        refuse("addmm")
    return n.each(types[0].shape, add, weights.matmul(n, a, b), bias)


def _baddbmm(
    n: Arrays, types: Sequence[Type], bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1
) -> Array:
    product = n.each(types[0].shape, multiply, weights.matmul(n, a, b), array_of(n, float(alpha)))
    return n.each(types[0].shape, add, product, n.each(bias.shape, multiply, bias, array_of(n, float(beta))))


def _solve_triangular(
    n: Arrays, types: Sequence[Type], a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    if upper or not left or not unitriangular:
        raise UntranslatableError("it solves a triangular system other than a unit lower-triangular one")
    return weights.forward_substitution(n, a, b)


def _convolution(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Array:
        if len(x.shape) == rank + 1:
            whole = call(n, types, n.reshape(x, (1, *x.shape)), weight, bias, stride, padding, dilation, groups)
            return n.reshape(whole, types[0].shape)
        if padding == "valid":
            padding = 0
        elif isinstance(padding, str):
            both = [gap * (size - 1) for gap, size in zip(per_axis(dilation, rank), weight.shape[2:], strict=True)]
            padding = [end // 2 if end % 2 == 0 else refuse("conv") for end in both]
        spaces = _spaces(rank, stride=stride, padding=padding, dilation=dilation)
        return weights.convolution(n, x, weight, bias, **spaces, groups=groups, transposed=False)

    return call


def _transposed_convolution(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,  # which has an effect on the shape only
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Array:
        spaces = [per_axis(value, rank) for value in (stride, padding, dilation)]
        if len(x.shape) == rank + 1:
            x = n.reshape(x, (1, *x.shape))
        found = weights.transposed_convolution(n, x, weight, bias, tuple(spaces), groups, types[0].shape[-rank:])
        return n.reshape(found, types[0].shape)

    return call


def _spaces(rank: int, **values: Sizes) -> dict[str, list[Dim]]:
    """Return hyperparameters with one value for each spatial axis."""
    return {name: per_axis(value, rank) for name, value in values.items()}


def per_axis(value: Sizes, rank: int) -> list[Dim]:
    """Return a value for each axis."""
    given = as_list(value)
    return given * rank if len(given) == 1 else given


def _max_pool(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Array:
        if any(gap != 1 for gap in per_axis(dilation, rank)):
            refuse("max_pool")
        windows = windows_of(rank, kernel, stride, padding)
        return weights.max_pool(n, _lengthened(n, x, types[0].shape, windows, -math.inf), *windows)

    return call


def _mean_pool(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        if divisor_override is not None:
            refuse("avg_pool")
        windows = sizes, steps, ends = windows_of(rank, kernel, stride, padding)
        whole = _lengthened(n, x, types[0].shape, windows, 0.0)
        found = weights.mean_pool(n, whole, *windows)
        if whole.shape == x.shape and (count_include_pad or not any(ends)):
            return found
        places, counted = x.shape[-rank:], ends
        if count_include_pad:
            places, counted = [size + 2 * end for size, end in zip(places, ends, strict=True)], [0] * rank
        ones = n.array((*x.shape[:-rank], *places), n.elements.number(1.0))
        ones = _lengthened(n, ones, types[0].shape, [sizes, steps, counted], 0.0)
        return n.each(found.shape, divide, found, weights.mean_pool(n, ones, sizes, steps, counted))

    return call


def _lengthened(n: Arrays, x: Array, shape: Sequence[Dim], windows: Sequence[Sequence[Dim]], value: float) -> Array:
    """Return a tensor that is long enough for as many windows as the result has, if its size is rounded up."""
    for axis, missing in missing_ends(x.shape, shape, windows):
        x = pad(n, x, axis, 0, missing, value)
    return x


def missing_ends(
    shape: Sequence[Dim], result: Sequence[Dim], windows: Sequence[Sequence[Dim]]
) -> Iterator[tuple[int, int]]:
    """Yield the axes of a shape that are too short for as many windows as a result has, and how much they lack."""
    for axis, (size, step, end) in enumerate(zip(*windows, strict=True), len(shape) - len(windows[0])):
        missing = (result[axis] - 1) * step + size - (shape[axis] + 2 * end)
        if isinstance(missing, int) and missing > 0:
            yield axis, missing


def windows_of(rank: int, kernel: Sizes, stride: Sizes | None, padding: Sizes) -> list[list[Dim]]:
    """Return the sizes, steps and padding of windows along each axis."""
    steps = kernel if stride is None or stride == [] else stride
    return [per_axis(value, rank) for value in (kernel, steps, padding)]


def _attention(
    n: Arrays,
    types: Sequence[Type],
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    if dropout_p:
        raise UntranslatableError("attention dropout is active: the module is in training mode")
    e = n.elements
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = [_repeated(n, x, times) for x in (key, value)]
    size = query.shape[-1]
    if scale is None:
        scale = float(size**-0.5) if isinstance(size, int) else refuse("scaled_dot_product_attention")
    scores = weights.matmul(n, query, transpose(n, key, -1, -2))
    scores = n.each(scores.shape, multiply, scores, array_of(n, scale))
    if attn_mask is not None:
        function = _hide if n.dtype(attn_mask) == "bool" else add
        scores = n.each(scores.shape, function, scores, attn_mask)
    if is_causal:
        rows, columns = scores.shape[-2:]
        visible = n.make((rows, columns), lambda i: e.at_least_zero(e.integer(i[0] - i[1])))
        scores = n.each(scores.shape, _hide, scores, visible)
    return weights.matmul(n, along.normalized(n, scores, -1), value)


def _repeated(n: Arrays, x: Array, times: Dim) -> Array:
    """Repeat each head."""
    *lead, heads, rows, columns = x.shape
    return n.view(
        x, (*lead, heads * times, rows, columns), lambda i: [*i[:-3], n.axes.divide(i[-3], times)[0], *i[-2:]]
    )


def _hide(e: Elements, score: Element, visible: Element) -> Element:
    return e.where(visible, score, e.number(-math.inf))


NAMES: dict[Handler, str] = {
    _softmax: "softmax _softmax",
    _reduction(along.total): "sum",
    _reduction(along.largest): "amax",
    mean: "mean",
    _cumsum: "cumsum",
    _argmax: "argmax",
    _matmul: "matmul bmm mm mv",
    _linear: "linear",
    _addmm: "addmm",
    _baddbmm: "baddbmm",
    _solve_triangular: "linalg_solve_triangular",
    _attention: "scaled_dot_product_attention",
    **{_convolution(rank): f"conv{rank}d" for rank in (1, 2, 3)},
    **{_transposed_convolution(rank): f"conv_transpose{rank}d" for rank in (1, 2, 3)},
    **{_max_pool(rank): f"max_pool{rank}d" for rank in (1, 2, 3)},
    **{_mean_pool(rank): f"avg_pool{rank}d" for rank in (1, 2, 3)},
}
"""The names of the operations that each function is for."""
