"""Normal forms of operations: what each computes, as elements of `archspec.normal`.

A form of an elementwise operation takes the elements of its inputs; any other takes its inputs as arrays, and its
hyperparameters by name. An operation without a form is equal only to itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from archspec.algebra import Dim, Expression, Polynomial, dim_max

if TYPE_CHECKING:
    from archspec.normal.arrays import Array, Arrays
    from archspec.normal.elements import Element, Elements, Indices

Each: TypeAlias = "Callable[..., Element]"


# Elementwise ----------------------------------------------------------------------------------------------------------


def _are_integers(e: Elements, *parts: Element) -> bool:
    return all(e.dtype(part) == "int" for part in parts)


def negate(e: Elements, x: Element) -> Element:
    return e.integer(-e.polynomial(x)) if _are_integers(e, x) else e.combination([(-1.0, e.real(x))])


def add(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b):
        return e.integer(e.polynomial(a) + e.polynomial(b))
    return e.combination([(1.0, e.real(a)), (1.0, e.real(b))])


def subtract(e: Elements, a: Element, b: Element) -> Element:
    return add(e, a, negate(e, b))


def multiply(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b):
        return e.integer(e.polynomial(a) * e.polynomial(b))
    return e.product([(e.real(a), 1.0), (e.real(b), 1.0)])


def divide(e: Elements, a: Element, b: Element) -> Element:
    return e.product([(e.real(a), 1.0), (e.real(b), -1.0)])


def floor_divide(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b) and (divisor := e.polynomial(b)) != 0:
        return e.integer(e.polynomial(a) // divisor)
    return e.apply("floordiv", (a, b), "real" if "real" in (e.dtype(a), e.dtype(b)) else "int")


def remainder(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b) and (divisor := e.polynomial(b)) != 0:
        return e.integer(e.polynomial(a) % divisor)
    return e.apply("mod", (a, b), "real" if "real" in (e.dtype(a), e.dtype(b)) else "int")


def power(e: Elements, a: Element, b: Element) -> Element:
    exponent = e.as_number(b)
    if _are_integers(e, a, b):
        if exponent is not None and 0 <= exponent <= 8:
            return e.integer(e.polynomial(a) ** int(exponent))
        return e.apply("pow", (a, b), "int")
    if exponent is not None:
        return e.product([(e.real(a), exponent)])
    return e.apply("pow", (e.real(a), e.real(b)), "real")


def square_root(e: Elements, x: Element) -> Element:
    return e.product([(e.real(x), 0.5)])


def absolute(e: Elements, x: Element) -> Element:
    if _are_integers(e, x):
        value = e.polynomial(x)
        return e.integer(dim_max(value, -value))
    return e.apply("abs", (x,), "real")


def smaller(e: Elements, a: Element, b: Element) -> Element:
    return e.extreme("min", a, b)


def larger(e: Elements, a: Element, b: Element) -> Element:
    return e.extreme("max", a, b)


def to_real(e: Elements, x: Element) -> Element:
    return e.real(x)


def to_integer(e: Elements, x: Element) -> Element:
    return e.apply("int", (x,), "int") if e.dtype(x) == "real" else e.integer(e.polynomial(x))


def floor(e: Elements, x: Element) -> Element:
    return e.apply("floor", (x,), "int") if e.dtype(x) == "real" else x


def equal(e: Elements, a: Element, b: Element) -> Element:
    if e.dtype(a) == e.dtype(b) == "bool":
        both, neither = e.conjunction([a, b]), e.conjunction([e.negation(a), e.negation(b)])
        return e.disjunction([both, neither])
    return e.is_zero(subtract(e, a, b))


def unequal(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(equal(e, a, b))


def greater_or_equal(e: Elements, a: Element, b: Element) -> Element:
    return e.at_least_zero(subtract(e, a, b))


def less_or_equal(e: Elements, a: Element, b: Element) -> Element:
    return greater_or_equal(e, b, a)


def greater(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(greater_or_equal(e, b, a))


def less(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(greater_or_equal(e, a, b))


def both(e: Elements, a: Element, b: Element) -> Element:
    return e.conjunction([a, b])


def either(e: Elements, a: Element, b: Element) -> Element:
    return e.disjunction([a, b])


def opposite(e: Elements, x: Element) -> Element:
    return e.negation(x)


def choose(e: Elements, condition: Element, a: Element, b: Element) -> Element:
    return e.where(condition, a, b)


# Along an axis --------------------------------------------------------------------------------------------------------


def _axes(axis: object, rank: int) -> list[int]:
    given: Sequence[object] = axis if isinstance(axis, list | tuple) else (axis,)  # pyright: ignore[reportUnknownVariableType]
    return sorted([at % rank for at in given if isinstance(at, int)])


def _reduced(n: Arrays, x: Array, axis: object, keep: object) -> tuple[Element, list[tuple[Expression, Dim]], tuple[Dim, ...]]:
    """The element of an array with other indices on the axes to reduce, these indices, and the resulting shape."""
    axes = _axes(axis, len(x.shape))
    over = [(n.elements.axis(f"s{at}", x.shape[at]), x.shape[at]) for at in axes]
    if keep:
        shape = tuple([1 if at in axes else size for at, size in enumerate(x.shape)])
        rest = iter([index for at, index in enumerate(n.own(shape)) if at not in axes])
    else:
        shape = tuple([size for at, size in enumerate(x.shape) if at not in axes])
        rest = iter(n.own(shape))
    reduced = iter([index for index, _ in over])
    indices = [next(reduced) if at in axes else next(rest) for at in range(len(x.shape))]
    return n.at(x, indices), over, shape


def total(n: Arrays, x: Array, axis: object, keep: object) -> Array:
    body, over, shape = _reduced(n, x, axis, keep)
    return n.array(shape, n.total(body, over))


def largest(n: Arrays, x: Array, axis: object, keep: object) -> Array:
    body, over, shape = _reduced(n, x, axis, keep)
    return n.array(shape, n.reduction("amax", body, [index for index, _ in over]))


def softmax(n: Arrays, x: Array, axis: object) -> Array:
    body, over, _ = _reduced(n, x, axis, True)
    (at,) = _axes(axis, len(x.shape))
    return n.array(x.shape, n.softmax(n.elements.real(body), over[0][0], n.own(x.shape)[at]))


def running_total(n: Arrays, x: Array, axis: int) -> Array:
    e = n.elements
    place = axis % len(x.shape)
    at = e.axis("s0", x.shape[place])

    def element(i: Indices) -> Element:
        part = n.at(x, [*i[:place], at, *i[place + 1 :]])
        zero = e.real(e.integer(0)) if e.dtype(part) == "real" else e.integer(0)
        return n.total(e.where(e.at_least_zero(e.integer(i[place] - at)), part, zero), [(at, x.shape[place])])

    return n.make(x.shape, element)


def topk(n: Arrays, x: Array, k: Dim, axis: int) -> list[Array]:
    """The first of all elements in descending order, and of their indices."""
    place = axis % len(x.shape)
    values, indices = n.opaque("sort", place, [x], [(x.shape, n.dtype(x)), (x.shape, "int")])
    return [cut(n, values, place, 0, k, 1), cut(n, indices, place, 0, k, 1)]


def argmax(n: Arrays, x: Array, axis: int, keep: object) -> Array:
    place = axis % len(x.shape)
    shape = (*x.shape[:place], *x.shape[place + 1 :])
    (found,) = n.opaque("argmax", place, [x], [(shape, "int")])
    return n.reshape(found, (*shape[:place], 1, *shape[place:])) if keep else found


# Weights and positions ------------------------------------------------------------------------------------------------


def matmul(n: Arrays, a: Array, b: Array) -> Array:
    lead = _common(a.shape[:-2], b.shape[:-2])
    inner = n.elements.axis("s0", a.shape[-1])

    def element(i: Indices) -> Element:
        *outer, row, column = i
        left = n.stretched(a, [*outer, row, inner])
        right = n.stretched(b, [*outer, inner, column])
        return n.total(multiply(n.elements, left, right), [(inner, a.shape[-1])])

    return n.make((*lead, a.shape[-2], b.shape[-1]), element)


def linear(n: Arrays, x: Array, weight: Array, bias: Array | None = None) -> Array:
    inner = n.elements.axis("s0", x.shape[-1])

    def element(i: Indices) -> Element:
        *outer, column = i
        body = multiply(n.elements, n.at(x, [*outer, inner]), n.at(weight, [column, inner]))
        summed = n.total(body, [(inner, x.shape[-1])])
        return summed if bias is None else add(n.elements, summed, n.at(bias, [column]))

    return n.make((*x.shape[:-1], weight.shape[0]), element)


def expert_linear(n: Arrays, x: Array, experts: Array, weight: Array, bias: Array | None = None) -> Array:
    inner = n.elements.axis("s0", x.shape[-1])
    lead = _common(x.shape[:-1], experts.shape)

    def element(i: Indices) -> Element:
        *outer, column = i
        expert = n.elements.polynomial(n.stretched(experts, outer))
        body = multiply(n.elements, n.stretched(x, [*outer, inner]), n.at(weight, [expert, column, inner]))
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
    channel = n.elements.axis("s0", weight.shape[1])
    taps = [n.elements.axis(f"s{axis + 1}", size) for axis, size in enumerate(kernel)]
    over = list(zip((channel, *taps), weight.shape[1:], strict=True))
    sizes = [
        (size + 2 * end - gap * (taken - 1) - 1) // step + 1
        for size, taken, step, end, gap in zip(x.shape[2:], kernel, steps, ends, gaps, strict=True)
    ]

    def element(i: Indices) -> Element:
        batch, out, *place = i
        group = n.elements.divide(out, weight.shape[0] // groups)[0] if groups > 1 else 0
        at = [p * step - end + tap * gap for p, step, end, tap, gap in zip(place, steps, ends, taps, gaps, strict=True)]
        read = within(n, x, [batch, group * weight.shape[1] + channel, *at], dict(enumerate(ends, 2)), 0)
        summed = n.total(multiply(n.elements, read, n.at(weight, [out, channel, *taps])), over)
        return summed if bias is None else add(n.elements, summed, n.at(bias, [out]))

    return n.make((x.shape[0], weight.shape[0], *sizes), element)


def _transposed_convolution(
    n: Arrays, x: Array, weight: Array, bias: Array | None, spaces: tuple[list[Dim], ...], groups: int
) -> Array:
    steps, ends, gaps = spaces
    sizes = [
        (size - 1) * step - 2 * end + gap * (taken - 1) + 1
        for size, taken, step, end, gap in zip(x.shape[2:], weight.shape[2:], steps, ends, gaps, strict=True)
    ]
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    (found,) = n.opaque("conv", (*steps, *ends, *gaps, groups), [x, weight], [(shape, n.dtype(x))])
    return found if bias is None else n.make(shape, lambda i: add(n.elements, n.at(found, i), n.at(bias, [i[1]])))


def within(n: Arrays, x: Array, at: Sequence[Expression], padded: Mapping[int, Dim], value: float) -> Element:
    """The element at indices, or a value where one of them is outside of an axis that is padded."""
    e = n.elements
    inside: list[Element] = []
    for axis, padding in padded.items():
        if padding != 0:
            inside += [e.at_least_zero(e.integer(at[axis])), e.at_least_zero(e.integer(x.shape[axis] - 1 - at[axis]))]
    return e.where(e.conjunction(inside), n.at(x, at), constant(e, value, n.dtype(x)))


def _each_axis(value: object, rank: int) -> list[Dim]:
    return [*value] if isinstance(value, list | tuple) else [value] * rank  # pyright: ignore


def _windows(n: Arrays, x: Array, kernel: object, stride: object, padding: object, value: float) -> tuple[Any, ...]:
    rank = len(x.shape) - 2
    sizes = _each_axis(kernel, rank)
    steps = sizes if stride is None else _each_axis(stride, rank)
    ends = _each_axis(padding, rank)
    taps = [n.elements.axis(f"s{axis}", size) for axis, size in enumerate(sizes)]
    places = [(size + 2 * end - taken) // step + 1
              for size, taken, step, end in zip(x.shape[2:], sizes, steps, ends, strict=True)]  # fmt: skip
    shape = (*x.shape[:2], *places)
    batch, channel, *own = n.own(shape)
    at = [p * step - end + tap for p, step, end, tap in zip(own, steps, ends, taps, strict=True)]
    body = within(n, n.array(x.shape, n.elements.real(x.element)), [batch, channel, *at], dict(enumerate(ends, 2)), value)
    return shape, body, list(zip(taps, sizes, strict=True))


def max_pool(n: Arrays, x: Array, kernel: object, stride: object, padding: object) -> Array:
    shape, body, over = _windows(n, x, kernel, stride, padding, -math.inf)
    return n.array(shape, n.reduction("amax", body, [tap for tap, _ in over]))


def mean_pool(n: Arrays, x: Array, kernel: object, stride: object, padding: object) -> Array:
    shape, body, over = _windows(n, x, kernel, stride, padding, 0.0)
    count = n.elements.real(n.total(n.elements.integer(1), over))
    return n.array(shape, n.elements.product([(n.total(body, over), 1.0), (count, -1.0)]))


def layer_norm(n: Arrays, x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    own = next((part.shape for part in (weight, bias) if part is not None), x.shape[-1:])
    rank = len(x.shape)
    result = standardized(n, x, list(range(rank - len(own), rank)), eps)
    if weight is not None:
        result = n.each(x.shape, multiply, result, weight)
    return result if bias is None else n.each(x.shape, add, result, bias)


def group_norm(
    n: Arrays, x: Array, weight: Array | None = None, bias: Array | None = None, *, groups: int, eps: float
) -> Array:
    batch, channels, *places = x.shape
    split = n.reshape(x, (batch, groups, channels // groups, *places))
    result = n.reshape(standardized(n, split, list(range(2, len(split.shape))), eps), x.shape)
    for part, apply in ((weight, multiply), (bias, add)):
        if part is not None:
            result = n.each(x.shape, apply, result, n.reshape(part, (channels, *[1] * len(places))))
    return result


def standardized(n: Arrays, x: Array, axes: list[int], eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) over axes."""
    e = n.elements
    x = n.array(x.shape, e.real(x.element))
    body, over, kept = _reduced(n, x, axes, True)
    count = e.real(n.total(e.integer(1), over))
    mean = n.array(kept, e.product([(n.total(body, over), 1.0), (count, -1.0)]))
    centred = n.each(x.shape, subtract, x, mean)
    body, over, _ = _reduced(n, centred, axes, True)
    variance = e.product([(n.total(e.product([(body, 2.0)]), over), 1.0), (count, -1.0)])
    scale = n.array(kept, e.product([(e.combination([(1.0, variance)], eps), -0.5)]))
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


# Shape ----------------------------------------------------------------------------------------------------------------


def reshape(n: Arrays, x: Array, shape: Sequence[Dim]) -> Array:
    return n.reshape(x, shape)


def permute(n: Arrays, x: Array, order: Sequence[int]) -> Array:
    axes = [axis % len(x.shape) for axis in order]
    return n.view(x, [x.shape[axis] for axis in axes], lambda i: [i[axes.index(axis)] for axis in range(len(axes))])


def transpose(n: Arrays, x: Array, a: int, b: int) -> Array:
    order = list(range(len(x.shape)))
    order[a], order[b] = order[b], order[a]
    return permute(n, x, order)


def expand(n: Arrays, x: Array, shape: Sequence[Dim]) -> Array:
    return n.make(shape, lambda i: n.stretched(x, i))


def concat(n: Arrays, *tensors: Array, axis: int) -> Array:
    e = n.elements
    place = axis % len(tensors[0].shape)
    dtypes = {n.dtype(tensor) for tensor in tensors}
    size: Dim = 0
    starts: list[Dim] = []
    for tensor in tensors:
        starts.append(size)
        size = size + tensor.shape[place]

    def element(i: Indices) -> Element:
        parts = [n.at(t, [*i[:place], i[place] - start, *i[place + 1 :]]) for t, start in zip(tensors, starts, strict=True)]
        if "real" in dtypes:
            parts = [e.real(part) for part in parts]
        found = parts[-1]
        for start, part in zip(reversed(starts[1:]), reversed(parts[:-1]), strict=True):
            found = e.where(e.at_least_zero(e.integer(i[place] - start)), found, part)
        return found

    return n.make((*tensors[0].shape[:place], size, *tensors[0].shape[place + 1 :]), element)


def split(n: Arrays, x: Array, sizes: Sequence[Dim], axis: int) -> list[Array]:
    found: list[Array] = []
    start: Dim = 0
    for size in sizes:
        found.append(cut(n, x, axis, start, start + size, 1))
        start = start + size
    return found


def cut(n: Arrays, x: Array, axis: int, start: Dim, stop: Dim | None, step: int) -> Array:
    place = axis % len(x.shape)
    size = x.shape[place]
    first, last = _counted(start, size), size if stop is None else _counted(stop, size)
    shape = (*x.shape[:place], (last - first + step - 1) // step, *x.shape[place + 1 :])
    return n.view(x, shape, lambda i: [*i[:place], i[place] * step + first, *i[place + 1 :]])


def _counted(position: Dim, size: Dim) -> Dim:
    return position + size if isinstance(position, int) and position < 0 else position


def pick(n: Arrays, x: Array, axis: int, index: Dim) -> Array:
    place = axis % len(x.shape)
    at = _counted(index, x.shape[place])
    return n.view(x, (*x.shape[:place], *x.shape[place + 1 :]), lambda i: [*i[:place], at, *i[place:]])


def pad(n: Arrays, x: Array, axis: int, before: Dim, after: Dim, value: object) -> Array:
    e = n.elements
    place = axis % len(x.shape)
    size = x.shape[place]

    def element(i: Indices) -> Element:
        at = i[place] - before
        inside = e.conjunction([e.at_least_zero(e.integer(at)), e.at_least_zero(e.integer(size - 1 - at))])
        return e.where(inside, n.at(x, [*i[:place], at, *i[place + 1 :]]), constant(e, value, n.dtype(x)))

    return n.make((*x.shape[:place], before + size + after, *x.shape[place + 1 :]), element)


def roll(n: Arrays, x: Array, shift: object, axis: object) -> Array:
    shifts: Sequence[Dim] = shift if isinstance(shift, list | tuple) else [shift]  # pyright: ignore
    axes: Sequence[int] = axis if isinstance(axis, list | tuple) else [axis]  # pyright: ignore

    for by, at in zip(shifts, axes, strict=True):
        size = x.shape[at % len(x.shape)]
        first = by % size if isinstance(size, int) else by
        if first != 0:
            middle = size - first if not isinstance(first, int) or first > 0 else -first
            x = concat(n, cut(n, x, at, middle, size, 1), cut(n, x, at, 0, middle, 1), axis=at)
    return x


# Creation -------------------------------------------------------------------------------------------------------------


def arange(n: Arrays, stop: Dim) -> Array:
    return n.make((stop,), lambda i: n.elements.integer(i[0]))


def full(n: Arrays, shape: Sequence[Dim], value: object) -> Array:
    return n.array(tuple(shape), constant(n.elements, value))


def constant(e: Elements, value: object, dtype: str = "") -> Element:
    """A number, boolean or size; as a real if that is the type."""
    if isinstance(value, bool):
        return e.boolean(value)
    if isinstance(value, float):
        return e.number(value)
    assert isinstance(value, int | Polynomial)
    found = e.integer(value)
    return e.real(found) if dtype == "real" else found
