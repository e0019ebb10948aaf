"""Resizing of PyTorch, and values of images between their positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from archspec.core.algebra import Dim
from archspec.pytorch.calls.rows import Row, Types, fixed_size, slice_axis
from archspec.pytorch.calls.windows import weighted
from archspec.pytorch.values.arguments import as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

Scales: TypeAlias = float | Sequence[float] | None
"""Factors of sizes, if these are given as factors: one argument for each spatial axis, or a list of all."""


def _scales_of(rank: int, scales: Sequence[Scales]) -> list[float | None]:
    """Return the factor of each spatial axis; None for one that is only given by sizes."""
    factors = [scale for item in scales for scale in as_list(item)]
    return [*factors, *[None] * (rank - len(factors))]


def _resize(rank: int, degree: int) -> Row:
    """Return the row of a resizing by a linear (1) or cubic (3) function of the distance."""

    def call(b: Builder, types: Types, x: Value, sizes: object, aligned: bool = False, *scales: Scales) -> Value:
        for turn, scale in enumerate(_scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if isinstance(old, int) and isinstance(new, int):
                x = weighted(b, x, axis, _resampled(old, new, aligned, scale, degree))
            elif degree == 1 and not aligned and scale is None:
                x = _stretched(b, x, axis, new)
            else:
                refuse("upsample")
        return x

    return call


def _stretched(b: Builder, x: Value, axis: int, new: Dim) -> Value:
    """Return a linear resizing of an axis to a size that depends on a dimension: the sums of elements with weights that
    fall with their distance from a place between the first and the last one.
    """
    old, rank = x.shape[axis], len(x.shape)
    middles = b.op("add", b.op("real", b.op("arange", stop=new)), 0.5)
    places = b.op("sub", b.op("div", b.op("mul", middles, old), new), 0.5)
    places = b.reshape(b.op("min", b.op("max", places, 0.0), old - 1), (new, 1))
    distances = b.op("abs", b.op("sub", places, b.op("real", b.op("arange", stop=old))))
    weights = b.op("max", b.op("sub", 1.0, distances), 0.0)
    last = [*[at for at in range(rank) if at != axis], axis]
    return b.permute(b.op("linear", b.permute(x, last), weights), [last.index(at) for at in range(rank)])


def _resampled(old: int, new: int, aligned: bool, scale: float | None, degree: int) -> list[list[float]]:
    """Return the weights of a resizing by a linear (1) or cubic (3) function of the distance."""
    kernel, reach = (_linear, 1) if degree == 1 else (_cubic, 2)
    rows: list[list[float]] = []
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


def _nearest(rank: int, shift: float = 0.0) -> Row:
    def call(b: Builder, types: Types, x: Value, sizes: object, *scales: Scales) -> Value:
        for turn, scale in enumerate(_scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if new == old:
                continue
            if scale is not None and float(scale).is_integer() and new == old * int(scale):
                wide = (*x.shape[: axis + 1], int(scale), *x.shape[axis + 1 :])
                spread = b.expand(b.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])), wide)
                x = b.reshape(spread, (*x.shape[:axis], new, *x.shape[axis + 1 :]))
                continue
            before, after = [fixed_size("upsample", size) for size in (old, new)]
            step = 1 / scale if scale else before / after
            places = [min(int((i + shift) * step), before - 1) for i in range(after)]
            x = b.op("concat", *[slice_axis(b, x, axis, place, place + 1) for place in places], axis=axis)
        return x

    return call


_BILINEAR, _ZEROS = 0, 0
"""The number of the interpolation between neighbors, and of an image that is 0 outside, among those of PyTorch."""


def _grid_sample(
    b: Builder, types: Types, x: Value, grid: Value, interpolation: int, padding: int, aligned: bool
) -> Value:
    """Return the sums of the four nearest elements, times their weights."""
    if (interpolation, padding) != (_BILINEAR, _ZEROS):
        refuse("grid_sampler")
    settings = {"aligned": True} if aligned else {}
    made = b.function("grid_sample", [b.written(x), b.written(grid)], types[0].shape, "real", **settings)
    return made or refuse("grid_sampler")


NAMES: dict[Row, str] = {
    _resize(1, 1): "upsample_linear1d",
    _resize(2, 1): "upsample_bilinear2d",
    _resize(3, 1): "upsample_trilinear3d",
    _resize(2, 3): "upsample_bicubic2d",
    **{_nearest(rank): f"upsample_nearest{rank}d" for rank in (1, 2, 3)},
    **{_nearest(rank, 0.5): f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)},
    _grid_sample: "grid_sampler grid_sampler_2d",
}
"""The names of the operations that each row is for."""
