"""Normal forms of operations along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from archspec.core.algebra import Dim, Expression
from archspec.ir.normal.nodes import index_name

if TYPE_CHECKING:
    from archspec.ir.normal.arrays import Array, Arrays
    from archspec.ir.normal.axes import Indices
    from archspec.ir.normal.nodes import Element


def _axes(axis: object, rank: int) -> list[int]:
    axes = cast("Sequence[object]", axis) if isinstance(axis, list | tuple) else (axis,)
    return sorted([at % rank for at in axes if isinstance(at, int)])


def split_reduction(
    n: Arrays, x: Array, axis: object, keep: object
) -> tuple[Element, list[tuple[Expression, Dim]], tuple[Dim, ...]]:
    """The element of an array with other indices on the axes to reduce, these indices, and the resulting shape."""
    axes = _axes(axis, len(x.shape))
    over = [(n.axes.index(f"s{at}", x.shape[at]), x.shape[at]) for at in axes]
    if keep:
        shape = tuple([1 if at in axes else size for at, size in enumerate(x.shape)])
        remaining = iter([index for at, index in enumerate(n.own(shape)) if at not in axes])
    else:
        shape = tuple([size for at, size in enumerate(x.shape) if at not in axes])
        remaining = iter(n.own(shape))
    reduced = iter([index for index, _ in over])
    indices = [next(reduced) if at in axes else next(remaining) for at in range(len(x.shape))]
    return n.at(x, indices), over, shape


def total(n: Arrays, x: Array, axis: object, keep: object) -> Array:
    body, over, shape = split_reduction(n, x, axis, keep)
    return n.array(shape, n.total(body, over))


def largest(n: Arrays, x: Array, axis: object, keep: object) -> Array:
    body, over, shape = split_reduction(n, x, axis, keep)
    return n.array(shape, n.reduction("largest", body, [index for index, _ in over]))


def normalized(n: Arrays, x: Array, axis: object) -> Array:
    body, over, _ = split_reduction(n, x, axis, True)
    (at,) = _axes(axis, len(x.shape))
    return n.array(x.shape, n.softmax(n.elements.real(body), over[0][0], n.own(x.shape)[at]))


def running_total(n: Arrays, x: Array, axis: int) -> Array:
    e = n.elements
    place = axis % len(x.shape)
    at = n.axes.index("s0", x.shape[place])

    def element(i: Indices) -> Element:
        part = n.at(x, [*i[:place], at, *i[place + 1 :]])
        if index_name(at) not in e.nodes[part].names and not e.nodes[part].infinite:
            count = e.integer(i[place] + 1)
            if e.dtype(part) == "int":
                return e.integer(e.polynomial(part) * e.polynomial(count))
            return e.product([(part, 1.0), (e.real(count), 1.0)])
        zero = e.real(e.integer(0)) if e.dtype(part) == "real" else e.integer(0)
        return n.total(e.where(e.at_least_zero(e.integer(i[place] - at)), part, zero), [(at, x.shape[place])])

    return n.make(x.shape, element)


def first_in_order(n: Arrays, x: Array, k: Dim, axis: int) -> list[Array]:
    """The first of all elements in descending order, and of their indices."""
    place = axis % len(x.shape)
    shape = (*x.shape[:place], k, *x.shape[place + 1 :])
    body, over, _ = split_reduction(n, x, place, True)
    found = n.descending_element(body, over[0][0], n.own(shape)[place])
    return [n.array(shape, element) for element in found]


def fourier(n: Arrays, x: Array, axis: object) -> Array:
    return fourier_sums(n, x, None, axis)[0]


def fourier_sums(
    n: Arrays, x: Array, imaginary: Array | None, axis: object, direction: float = -1.0
) -> tuple[Array, Array]:
    """The parts of the sum of x[j] * exp(direction * 2 * pi * i * j * k / n) over j, for each axis."""
    e = n.elements
    x = n.array(x.shape, e.real(x.element))
    part, over, _ = split_reduction(n, x, axis, True)
    own = n.own(x.shape)
    angles: list[tuple[float, Element]] = []
    for at, (index, size) in zip(_axes(axis, len(x.shape)), over, strict=True):
        turns = [(e.real(e.integer(index)), 1.0), (e.real(e.integer(own[at])), 1.0), (e.real(e.integer(size)), -1.0)]
        angles.append((2 * math.pi, e.product(turns)))
    angle = e.combination(angles)
    cosine, sine = e.apply("cos", (angle,), "real"), e.apply("sin", (angle,), "real")

    def summed(function: Element, of: Element, by: float = 1.0) -> tuple[float, Element]:
        return by, n.total(e.product([(function, 1.0), (of, 1.0)]), over)

    real, turned = [summed(cosine, part)], [summed(sine, part, direction)]
    if imaginary is not None:
        other, _, _ = split_reduction(n, imaginary, axis, True)
        real.append(summed(sine, other, -direction))
        turned.append(summed(cosine, other))
    return n.array(x.shape, e.combination(real)), n.array(x.shape, e.combination(turned))


def place_of_largest(n: Arrays, x: Array, axis: int, keep: object) -> Array:
    body, over, shape = split_reduction(n, x, axis, keep)
    return n.array(shape, n.descending_element(body, over[0][0], 0)[1])
