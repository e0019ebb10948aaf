"""Values of images between their positions, of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from archspec.core.algebra import Dim, Expression, dim_max, dim_min
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.forms.elementwise import floor
from archspec.ir.normal.nodes import Element
from archspec.pytorch.calls.values import Handler, refuse

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


NAMES: dict[Handler, str] = {_grid_sample: "grid_sampler grid_sampler_2d"}
"""The names of the operations that each function is for."""
