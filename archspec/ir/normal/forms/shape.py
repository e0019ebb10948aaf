"""Normal forms of operations that arrange elements, or make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.core.algebra import Dim
from archspec.ir.normal.forms.elementwise import constant

if TYPE_CHECKING:
    from archspec.ir.normal.arrays import Array, Arrays
    from archspec.ir.normal.axes import Indices
    from archspec.ir.normal.nodes import Element


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
    return n.make(shape, lambda i: n.broadcast_element(x, i))


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
        parts = [
            n.at(t, [*i[:place], i[place] - start, *i[place + 1 :]]) for t, start in zip(tensors, starts, strict=True)
        ]
        if "real" in dtypes:
            parts = [e.real(part) for part in parts]
        seams = [e.at_least_zero(e.integer(i[place] - start)) for start in starts[1:]]  # made in the order of nesting
        element = parts[-1]
        for seam, part in zip(reversed(seams), reversed(parts[:-1]), strict=True):
            element = e.where(seam, element, part)
        return element

    return n.make((*tensors[0].shape[:place], size, *tensors[0].shape[place + 1 :]), element)


def stack(n: Arrays, *tensors: Array, axis: int) -> Array:
    place = axis % (len(tensors[0].shape) + 1)
    parts = [n.reshape(tensor, (*tensor.shape[:place], 1, *tensor.shape[place:])) for tensor in tensors]
    return concat(n, *parts, axis=place)


def split(n: Arrays, x: Array, sizes: Sequence[Dim], axis: int) -> list[Array]:
    parts: list[Array] = []
    start: Dim = 0
    for size in sizes:
        parts.append(cut(n, x, axis, start, start + size))
        start = start + size
    return parts


def cut(n: Arrays, x: Array, axis: int, start: Dim, stop: Dim | None, step: int = 1) -> Array:
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
        is_once, is_back = (n.axes.is_nonnegative(size - way) for way in (by, -by))
        if is_once and n.axes.is_at_least(by, 0):
            first = by
        else:
            first = by + size if is_back and n.axes.is_at_least(-by, 1) else by % size
        if first != 0:
            middle = size - first
            x = concat(n, cut(n, x, at, middle, size), cut(n, x, at, 0, middle), axis=at)
    return x


def arange(n: Arrays, stop: Dim) -> Array:
    return n.make((stop,), lambda i: n.elements.integer(i[0]))


LOWEST_FLOAT32 = -(2.0 - 2.0**-23) * 2.0**127
"""The least finite number in float32."""


def lowest(n: Arrays, x: Array) -> Array:
    """Precision is not compared, so the number is that of float32 for any type."""
    return n.array((), n.elements.number(LOWEST_FLOAT32))


def full(n: Arrays, shape: Sequence[Dim], value: object) -> Array:
    return n.array(tuple(shape), constant(n.elements, value))
