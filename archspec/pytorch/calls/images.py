"""Pooling to given sizes, resizing, and values of images between their positions, of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from archspec.core.algebra import Dim, Expression, dim_max, dim_min
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.bodies import apply
from archspec.ir.normal.forms import along
from archspec.ir.normal.forms.elementwise import absolute, add, divide, floor, larger, multiply, smaller, subtract
from archspec.ir.normal.forms.shape import concat, cut
from archspec.ir.normal.nodes import Element
from archspec.pytorch.calls.layers import mean
from archspec.pytorch.calls.values import Handler, as_list, refuse

Matrix: TypeAlias = "list[list[float]]"

Scales: TypeAlias = float | Sequence[float] | None
"""Factors of sizes, if these are given as factors: one argument for each spatial axis, or a list of all."""


def _adaptive_mean(rank: int) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, sizes: object) -> Array:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            if new == 1:
                x = mean(n, types, x, axis, True)
            else:
                x = _weighted(n, x, axis, window_means(_whole(old), _whole(new)))
        return x

    return call


def _adaptive_max(rank: int) -> Callable[..., list[Array | None]]:
    def call(n: Arrays, types: Sequence[Type], x: Array, sizes: object) -> list[Array | None]:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            ends = [(0, old)] if new == 1 else windows(_whole(old), _whole(new))
            parts = [along.largest(n, cut(n, x, axis, first, last), axis, True) for first, last in ends]
            x = concat(n, *parts, axis=axis)
        return [x, None]  # the places of the largest elements are not computed

    return call


def _whole(size: Dim) -> int:
    """Return a size that does not depend on a dimension."""
    return size if isinstance(size, int) else refuse("adaptive_pool")


def windows(old: int, new: int) -> list[tuple[int, int]]:
    """Return where the windows of a pool to a size begin and end."""
    return [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]


def window_means(old: int, new: int) -> Matrix:
    """Return the weights of a pool to a size."""
    return [
        [1 / (last - first) if first <= at < last else 0.0 for at in range(old)] for first, last in windows(old, new)
    ]


def _weighted(n: Arrays, x: Array, axis: int, matrix: Matrix) -> Array:
    """Return sums along an axis with constant weights."""
    if is_identity(matrix):
        return x
    size = (len(matrix), len(matrix[0]))
    (table,) = apply(n, "table", [], {"values": matrix}, [Type(size, "real")])
    over = n.axes.index("s0", size[1])

    def element(i: Indices) -> Element:
        body = multiply(n.elements, n.at(table, [i[axis], over]), n.at(x, [*i[:axis], over, *i[axis + 1 :]]))
        return n.total(body, [(over, size[1])])

    return n.make((*x.shape[:axis], size[0], *x.shape[axis + 1 :]), element)


def is_identity(matrix: Matrix) -> bool:
    """Whether weights leave everything as it is."""
    return matrix == [[float(i == j) for j in range(len(matrix))] for i in range(len(matrix))]


def scales_of(rank: int, scales: Sequence[Scales]) -> list[float | None]:
    """Return the factor of each spatial axis; None for one that is only given by sizes."""
    given = [scale for item in scales for scale in as_list(item)]
    return [*given, *[None] * (rank - len(given))]


def _resize(rank: int, degree: int) -> Handler:
    """Return the handler of a resizing by a linear (1) or cubic (3) function of the distance."""

    def call(n: Arrays, types: Sequence[Type], x: Array, sizes: object, aligned: bool, *scales: Scales) -> Array:
        for turn, scale in enumerate(scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if isinstance(old, int) and isinstance(new, int):
                x = _weighted(n, x, axis, resampled(old, new, aligned, scale, degree))
            elif degree == 1 and not aligned and scale is None:
                x = _stretched(n, x, axis, new)
            else:
                refuse("upsample")
        return x

    return call


def _stretched(n: Arrays, x: Array, axis: int, new: Dim) -> Array:
    """Return a linear resizing of an axis to a size that depends on a dimension: the sums of elements with weights that
    fall with their distance from a place between the first and the last one.
    """
    e, old = n.elements, x.shape[axis]
    over = n.axes.index("s0", old)
    half, one = e.number(0.5), e.number(1)

    def element(i: Indices) -> Element:
        place = add(e, e.real(e.integer(i[axis])), half)
        place = divide(e, multiply(e, place, e.real(e.integer(old))), e.real(e.integer(new)))
        place = larger(e, subtract(e, place, half), e.number(0))
        place = smaller(e, place, e.real(e.integer(old - 1)))
        distance = absolute(e, subtract(e, place, e.real(e.integer(over))))
        weight = larger(e, subtract(e, one, distance), e.number(0))
        return n.total(multiply(e, weight, n.at(x, [*i[:axis], over, *i[axis + 1 :]])), [(over, old)])

    return n.make((*x.shape[:axis], new, *x.shape[axis + 1 :]), element)


def resampled(old: int, new: int, aligned: bool, scale: float | None, degree: int) -> Matrix:
    """Return the weights of a resizing by a linear (1) or cubic (3) function of the distance."""
    kernel, reach = (_linear, 1) if degree == 1 else (_cubic, 2)
    rows: Matrix = []
    for i in range(new):
        if aligned:
            place = i * (old - 1) / (new - 1) if new > 1 else 0.0
        else:
            place = (i + 0.5) * (1 / scale if scale else old / new) - 0.5
            place = max(place, 0.0) if degree == 1 else place
        row = [0.0] * old
        for at in range(math.floor(place) - reach + 1, math.floor(place) + reach + 1):
            row[min(max(at, 0), old - 1)] += kernel(abs(place - at))
        rows.append(row)
    return rows


def _linear(distance: float) -> float:
    """Return the weight of an element at a distance of at most 1."""
    return 1 - distance


def _cubic(distance: float) -> float:
    """Return the weight of an element at a distance of at most 2."""
    a, d = -0.75, distance
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _nearest(rank: int, shift: float = 0.0) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, sizes: object, *scales: Scales) -> Array:
        for turn, scale in enumerate(scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if new == old:
                continue
            if scale is not None and float(scale).is_integer() and new == old * int(scale):
                by, shape = int(scale), (*x.shape[:axis], new, *x.shape[axis + 1 :])
                x = n.view(
                    x, shape, lambda i, axis=axis, by=by: [*i[:axis], n.axes.divide(i[axis], by)[0], *i[axis + 1 :]]
                )
                continue
            before, after = _whole(old), _whole(new)
            step = 1 / scale if scale else before / after
            places = [min(int((i + shift) * step), before - 1) for i in range(after)]
            x = concat(n, *[cut(n, x, axis, place, place + 1) for place in places], axis=axis)
        return x

    return call


# Values of images between their positions.

_BILINEAR, _ZEROS = 0, 0
"""The number of the interpolation between neighbors, and of an image that is 0 outside, among those of PyTorch."""


class _Neighbor(NamedTuple):
    """The nearest position of an axis, whether it is the one that is meant, and its weight."""

    position: Expression
    is_inside: Element
    weight: Element


def _grid_sample(
    n: Arrays, types: Sequence[Type], x: Array, grid: Array, interpolation: int, padding: int, aligned: bool
) -> Array:
    """Return the sums of the four nearest elements, times their weights."""
    if len(x.shape) != 4 or (interpolation, padding) != (_BILINEAR, _ZEROS):
        refuse("grid_sampler")
    e = n.elements

    def element(i: Indices) -> Element:
        batch, channel, *place = i
        ends = [
            _neighbors(n, n.at(grid, [batch, *place, at]), size, aligned)
            for at, size in ((1, x.shape[2]), (0, x.shape[3]))
        ]
        terms: list[tuple[float, Element]] = []
        for row, column in product(*ends):
            found = e.real(n.at(x, [batch, channel, row.position, column.position]))
            found = e.where(e.conjunction([row.is_inside, column.is_inside]), found, e.number(0.0))
            terms.append((1.0, e.product([(found, 1.0), (row.weight, 1.0), (column.weight, 1.0)])))
        return e.combination(terms)

    return n.make(types[0].shape, element)


def _neighbors(n: Arrays, at: Element, size: Dim, aligned: bool) -> list[_Neighbor]:
    """Return the positions on both sides of a coordinate."""
    e = n.elements
    whole = e.combination([(1.0, e.real(at))], 1.0)
    extent = e.real(e.integer(size - 1 if aligned else size))
    middle = e.combination([(0.5, e.product([(whole, 1.0), (extent, 1.0)]))], 0.0 if aligned else -0.5)
    first = floor(e, middle)
    share = e.combination([(1.0, middle), (-1.0, e.real(first))])
    found: list[_Neighbor] = []
    for turn, weight in enumerate([e.combination([(-1.0, share)], 1.0), share]):
        position = e.polynomial(first) + turn
        ends = [e.at_least_zero(e.integer(position)), e.at_least_zero(e.integer(size - 1 - position))]
        found.append(_Neighbor(dim_min(dim_max(position, 0), size - 1), e.conjunction(ends), weight))
    return found


NAMES: dict[Handler, str] = {
    _grid_sample: "grid_sampler grid_sampler_2d",
    **{_adaptive_mean(rank): f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)},
    **{_adaptive_max(rank): f"adaptive_max_pool{rank}d" for rank in (1, 2, 3)},
    _resize(1, 1): "upsample_linear1d",
    _resize(2, 1): "upsample_bilinear2d",
    _resize(3, 1): "upsample_trilinear3d",
    _resize(2, 3): "upsample_bicubic2d",
    **{_nearest(rank): f"upsample_nearest{rank}d" for rank in (1, 2, 3)},
    **{_nearest(rank, 0.5): f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)},
}
"""The names of the operations that each function is for."""
