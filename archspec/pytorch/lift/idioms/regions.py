"""Constants that say which places are equal: positions as vectors with a single 1, and masks between regions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeAlias

from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.stored import distinct, elements
from archspec.pytorch.passes.programs import dtype_of
from archspec.pytorch.values.values import Value

if TYPE_CHECKING:
    from torch import Tensor

Formula: TypeAlias = "Callable[[Tensor], Value | None]"

MAX_STEPS = 3
"""Numbers that change more often along an axis are not written as steps."""


def one_hot(builder: SpecBuilder, value: Tensor, formula: Formula) -> Value | None:
    """Return a constant with a single 1 along its last axis, at the place that a formula gives."""
    size = value.shape[-1] if value.dim() > 1 else 0
    if size < 2 or not bool(((value == 0) | (value == 1)).all()) or not bool((value.sum(-1) == 1).all()):
        return None
    places = formula(value.int().argmax(-1))
    if places is None:
        return None
    found = builder.op("eq", builder.reshape(places, (*places.shape, 1)), builder.op("arange", stop=size))
    dtype = dtype_of(value)
    return found if dtype == "bool" else builder.op(dtype, found)


def between_regions(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a constant with one number for two places of a window in the same region of an image, and another one for
    other pairs, as in attention to shifted windows.
    """
    shape = value.shape
    value = value.squeeze()
    if value.dim() != 3 or value.shape[1] != value.shape[2] or len(distinct(value)) != 2:
        return None
    windows, places = value.shape[:2]
    inside, outside = sorted(distinct(value), key=lambda number: number != value[0, 0, 0])
    labels = (value == inside).int().argmax(-1)  # a region is called by its first place
    if not bool(((labels[:, :, None] == labels[:, None, :]) == (value == inside)).all()):
        return None
    for (rows, columns), (height, width) in product(_factors(windows), _factors(places)):
        image = labels.reshape(rows, columns, height, width).transpose(1, 2).reshape(rows * height, columns * width)
        found = _steps(builder, image)
        if found is not None:
            parts = builder.permute(builder.reshape(found, (rows, height, columns, width)), (0, 2, 1, 3))
            numbers = builder.reshape(parts, (windows, places))
            pairs = builder.reshape(numbers, (windows, places, 1)), builder.reshape(numbers, (windows, 1, places))
            return builder.reshape(builder.op("where", builder.op("eq", *pairs), inside, outside), tuple(shape))
    return None


def _factors(size: int) -> list[tuple[int, int]]:
    """Return two numbers with a product, in all ways, the most equal ones first."""
    found = [(size // width, width) for width in range(1, size + 1) if size % width == 0]
    return sorted(found, key=lambda pair: abs(pair[0] - pair[1]))


def _steps(builder: SpecBuilder, image: Tensor) -> Value | None:
    """Return a matrix of integers that are a sum of steps along the rows and steps along the columns."""
    rows, columns = image[:, 0], image[0] - image[0, 0]
    if not bool((rows[:, None] + columns == image).all()):
        return None
    down, across = [_line(builder, elements(line)) for line in (rows, columns)]
    if down is None or across is None:
        return None
    return builder.op("add", builder.reshape(down, (len(rows), 1)), across)


def _line(builder: SpecBuilder, values: list[float]) -> Value | None:
    """Return integers that change in a few steps."""
    steps = [(place, after - before) for place, (before, after) in enumerate(pairwise(values), 1) if after != before]
    if len(steps) > MAX_STEPS or values[0] != 0:
        return None
    places = builder.op("arange", stop=len(values))
    found: Value | None = None
    for place, height in steps:
        part = builder.op("int", builder.op("ge", places, place))
        part = part if height == 1 else builder.op("mul", part, height)
        found = part if found is None else builder.op("add", found, part)
    return found or builder.op("full", shape=(len(values),), value=0)
