"""Normal forms of products with weights, table lookups and normalization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from archspec.core.algebra import Dim, Expression
from archspec.ir.normal.forms.along import split_reduction
from archspec.ir.normal.forms.elementwise import add, constant, equal, multiply, subtract, to_integer

if TYPE_CHECKING:
    from archspec.ir.normal.arrays import Array, Arrays
    from archspec.ir.normal.axes import Indices
    from archspec.ir.normal.nodes import Element


def matmul(n: Arrays, a: Array, b: Array) -> Array:
    lead = _common(a.shape[:-2], b.shape[:-2])
    inner = n.axes.index("s0", a.shape[-1])

    def element(i: Indices) -> Element:
        *outer, row, column = i
        left = n.broadcast_element(a, [*outer, row, inner])
        right = n.broadcast_element(b, [*outer, inner, column])
        return n.total(multiply(n.elements, left, right), [(inner, a.shape[-1])])

    return n.make((*lead, a.shape[-2], b.shape[-1]), element)


def forward_substitution(n: Arrays, a: Array, b: Array) -> Array:
    def below(i: Indices) -> Element:
        e = n.elements
        *_, row, column = i
        return e.where(e.at_least_zero(e.integer(row - column - 1)), e.real(n.at(a, i)), e.number(0.0))

    lower, right = n.make(a.shape, below), n.array(b.shape, n.elements.real(b.element))
    shape = (*_common(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    (solution,) = n.opaque("forward substitution", shape, [lower, right], [(shape, "real")])
    return solution


def linear(n: Arrays, x: Array, weight: Array, bias: Array | None = None) -> Array:
    inner = n.axes.index("s0", x.shape[-1])

    def element(i: Indices) -> Element:
        *outer, column = i
        body = multiply(n.elements, n.at(x, [*outer, inner]), n.at(weight, [column, inner]))
        summed = n.total(body, [(inner, x.shape[-1])])
        return summed if bias is None else add(n.elements, summed, n.at(bias, [column]))

    return n.make((*x.shape[:-1], weight.shape[0]), element)


def expert_linear(n: Arrays, x: Array, experts: Array, weight: Array, bias: Array | None = None) -> Array:
    inner = n.axes.index("s0", x.shape[-1])
    lead = _common(x.shape[:-1], experts.shape)

    def element(i: Indices) -> Element:
        *outer, column = i
        expert = n.elements.polynomial(n.broadcast_element(experts, outer))
        body = multiply(n.elements, n.broadcast_element(x, [*outer, inner]), n.at(weight, [expert, column, inner]))
        summed = n.total(body, [(inner, x.shape[-1])])
        return summed if bias is None else add(n.elements, summed, n.at(bias, [expert, column]))

    return n.make((*lead, weight.shape[1]), element)


def convolution(
    n: Arrays,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
    transposed: bool,
) -> Array:
    rank = len(x.shape) - 2
    steps, ends, gaps = (_each_axis(value, rank) for value in (stride, padding, dilation))
    if transposed:
        return _transposed_convolution(n, x, weight, bias, (steps, ends, gaps), groups)
    kernel = weight.shape[2:]
    channel = n.axes.index("s0", weight.shape[1])
    taps = [n.axes.index(f"s{axis + 1}", size) for axis, size in enumerate(kernel)]
    over = list(zip((channel, *taps), weight.shape[1:], strict=True))
    sizes = [
        (size + 2 * end - gap * (window - 1) - 1) // step + 1
        for size, window, step, end, gap in zip(x.shape[2:], kernel, steps, ends, gaps, strict=True)
    ]

    def element(i: Indices) -> Element:
        batch, out, *place = i
        group = n.axes.divide(out, weight.shape[0] // groups)[0] if groups > 1 else 0
        at = [p * step - end + tap * gap for p, step, end, tap, gap in zip(place, steps, ends, taps, gaps, strict=True)]
        read = padded_element(n, x, [batch, group * weight.shape[1] + channel, *at], dict(enumerate(ends, 2)), 0)
        summed = n.total(multiply(n.elements, read, n.at(weight, [out, channel, *taps])), over)
        return summed if bias is None else add(n.elements, summed, n.at(bias, [out]))

    return n.make((x.shape[0], weight.shape[0], *sizes), element)


def _transposed_convolution(
    n: Arrays, x: Array, weight: Array, bias: Array | None, spaces: tuple[list[Dim], ...], groups: int
) -> Array:
    steps, ends, gaps = spaces
    sizes = [
        (size - 1) * step - 2 * end + gap * (window - 1) + 1
        for size, window, step, end, gap in zip(x.shape[2:], weight.shape[2:], steps, ends, gaps, strict=True)
    ]
    e = n.elements
    channel = n.axes.index("s0", weight.shape[0] // groups)
    taps = [n.axes.index(f"s{axis + 1}", size) for axis, size in enumerate(weight.shape[2:])]
    over = list(zip((channel, *taps), (weight.shape[0] // groups, *weight.shape[2:]), strict=True))

    def element(i: Indices) -> Element:
        batch, out, *place = i
        group, own = n.axes.divide(out, weight.shape[1]) if groups > 1 else (0, out)
        source = group * (weight.shape[0] // groups) + channel
        hit: list[Element] = []
        at: list[Expression] = []
        for p, tap, step, end, gap, size in zip(place, taps, steps, ends, gaps, x.shape[2:], strict=True):
            q, remainder = n.axes.divide(p + end - tap * gap, step)
            at.append(q)
            hit += [
                e.is_zero(e.integer(remainder)),
                e.at_least_zero(e.integer(q)),
                e.at_least_zero(e.integer(size - 1 - q)),
            ]
        read = e.where(e.conjunction(hit), n.at(x, [batch, source, *at]), constant(e, 0, n.dtype(x)))
        summed = n.total(multiply(e, read, n.at(weight, [source, own, *taps])), over)
        return summed if bias is None else add(e, summed, n.at(bias, [out]))

    return n.make((x.shape[0], weight.shape[1] * groups, *sizes), element)


def padded_element(n: Arrays, x: Array, at: Sequence[Expression], padded: Mapping[int, Dim], value: float) -> Element:
    """The element at indices, or a value where one of them is outside of an axis that is padded."""
    e = n.elements
    inside: list[Element] = []
    for axis, padding in padded.items():
        if padding != 0:
            inside += [e.at_least_zero(e.integer(at[axis])), e.at_least_zero(e.integer(x.shape[axis] - 1 - at[axis]))]
    return e.where(e.conjunction(inside), n.at(x, at), constant(e, value, n.dtype(x)))


def _each_axis(value: object, rank: int) -> list[Dim]:
    return [*value] if isinstance(value, list | tuple) else [value] * rank  # pyright: ignore


Windows: TypeAlias = "tuple[tuple[Dim, ...], Element, list[tuple[Expression, Dim]]]"
"""The shape of a pool, and the elements of its windows at the indices of these, with their extents."""


def _windows(n: Arrays, x: Array, kernel: object, stride: object, padding: object, value: float) -> Windows:
    rank = len(x.shape) - 2
    sizes = _each_axis(kernel, rank)
    steps = sizes if stride is None else _each_axis(stride, rank)
    ends = _each_axis(padding, rank)
    taps = [n.axes.index(f"s{axis}", size) for axis, size in enumerate(sizes)]
    places = [(size + 2 * end - window) // step + 1
              for size, window, step, end in zip(x.shape[2:], sizes, steps, ends, strict=True)]  # fmt: skip
    shape = (*x.shape[:2], *places)
    batch, channel, *own = n.own(shape)
    at = [p * step - end + tap for p, step, end, tap in zip(own, steps, ends, taps, strict=True)]
    body = padded_element(
        n, n.array(x.shape, n.elements.real(x.element)), [batch, channel, *at], dict(enumerate(ends, 2)), value
    )
    return shape, body, list(zip(taps, sizes, strict=True))


def max_pool(n: Arrays, x: Array, kernel: object, stride: object, padding: object) -> Array:
    shape, body, over = _windows(n, x, kernel, stride, padding, -math.inf)
    return n.array(shape, n.reduction("largest", body, [tap for tap, _ in over]))


def mean_pool(n: Arrays, x: Array, kernel: object, stride: object, padding: object) -> Array:
    shape, body, over = _windows(n, x, kernel, stride, padding, 0.0)
    count = n.elements.real(n.total(n.elements.integer(1), over))
    return n.array(shape, n.elements.product([(n.total(body, over), 1.0), (count, -1.0)]))


def layer_norm(n: Arrays, x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    own = next((part.shape for part in (weight, bias) if part is not None), x.shape[-1:])
    rank = len(x.shape)
    result = standardize(n, x, list(range(rank - len(own), rank)), eps)
    if weight is not None:
        result = n.each(x.shape, multiply, result, weight)
    return result if bias is None else n.each(x.shape, add, result, bias)


def group_norm(
    n: Arrays, x: Array, weight: Array | None = None, bias: Array | None = None, *, groups: int, eps: float
) -> Array:
    batch, channels, *places = x.shape
    split = n.reshape(x, (batch, groups, channels // groups, *places))
    result = n.reshape(standardize(n, split, list(range(2, len(split.shape))), eps), x.shape)
    for part, apply in ((weight, multiply), (bias, add)):
        if part is not None:
            result = n.each(x.shape, apply, result, n.reshape(part, (channels, *[1] * len(places))))
    return result


def standardize(n: Arrays, x: Array, axes: list[int], eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) over axes."""
    e = n.elements
    x = n.array(x.shape, e.real(x.element))
    body, over, shape = split_reduction(n, x, axes, True)
    count = e.real(n.total(e.integer(1), over))
    mean = n.array(shape, e.product([(n.total(body, over), 1.0), (count, -1.0)]))
    centred = n.each(x.shape, subtract, x, mean)
    body, over, _ = split_reduction(n, centred, axes, True)
    variance = e.product([(n.total(e.product([(body, 2.0)]), over), 1.0), (count, -1.0)])
    scale = n.array(shape, e.product([(e.combination([(1.0, variance)], eps), -0.5)]))
    return n.each(x.shape, multiply, centred, scale)


def embedding(n: Arrays, ids: Array, table: Array) -> Array:
    rank = len(ids.shape)

    def element(i: Indices) -> Element:
        return n.at(table, [n.elements.polynomial(n.at(ids, i[:rank])), *i[rank:]])

    return n.make((*ids.shape, *table.shape[1:]), element)


def gather(n: Arrays, x: Array, index: Array, axis: int) -> Array:
    place = axis % len(x.shape)

    def element(i: Indices) -> Element:
        return n.at(x, [*i[:place], n.elements.polynomial(n.at(index, i)), *i[place + 1 :]])

    return n.make(index.shape, element)


def one_hot(n: Arrays, ids: Array, count: Dim) -> Array:
    def element(i: Indices) -> Element:
        e = n.elements
        return to_integer(e, equal(e, n.at(ids, i[:-1]), e.integer(i[-1])))

    return n.make((*ids.shape, count), element)


def _common(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    rank = max(len(a), len(b))
    left, right = [*[1] * (rank - len(a)), *a], [*[1] * (rank - len(b)), *b]
    return tuple([y if x == 1 else x for x, y in zip(left, right, strict=True)])
