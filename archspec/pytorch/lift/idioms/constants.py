"""Constants of a module as formulas."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from archspec.pytorch.lift.idioms.regions import between_regions, one_hot
from archspec.pytorch.lift.idioms.sinusoids import RotaryParameters, frequencies, sinusoids, slopes
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.stored import MAX_LISTED, MAX_WRITTEN, elements, rows
from archspec.pytorch.passes.programs import dtype_of
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Value

if TYPE_CHECKING:
    from torch import Tensor

MIN_BAND_SIZE = 3
"""Smaller matrices are not taken for masks."""

MAX_PARTS = 4
"""Constants are written part by part along an axis with at most so many elements."""


DIGITS = 6
"""Any decimal with so many digits is the only one that is rounded to its float32."""

MAX_PART = 16
"""Fractions of pi have at most these numerators and denominators."""

MAX_PLACES = 1000
"""Steps of coordinates are fractions with at most this denominator."""


def constant(
    builder: SpecBuilder, value: Tensor | None, name: str = "", parameters: Sequence[RotaryParameters] = ()
) -> Value:
    """Return a constant as the value of a formula; `parameters` are those of rotary positions around it. One that is no
    buffer has no name.

    Raises Untranslatable if no formula is known for it.
    """
    if value is None or value.device.type == "meta":
        raise UntranslatableError(f"the constant `{name}` has no values")
    what = f"the constant `{name}`" if name else "a constant in its code"
    if 0 in value.shape:
        return builder.empty(tuple(value.shape), dtype_of(value))
    if bool(value.isnan().any()):
        raise UntranslatableError(f"{what} has elements that are not numbers")
    found = _formula(builder, value, parameters) or _data(builder, value)
    if found is None:
        raise UntranslatableError(f"{what} of the shape {list(value.shape)} has no known formula, and too many numbers")
    return found


def _data(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a constant as the list of its numbers, each once along axes where they are the same."""
    first = _repeated_part(value)
    if first.numel() > MAX_WRITTEN:
        return None
    return builder.expand(builder.op("table", values=rows(first)), tuple(value.shape))


def _formula(builder: SpecBuilder, value: Tensor, parameters: Sequence[RotaryParameters] = ()) -> Value | None:
    flat = elements(value)
    if not value.shape or all(item == flat[0] for item in flat):
        return builder.op(
            "full", shape=tuple(value.shape), value=_unrounded(flat[0]) if _is_float32(value) else flat[0]
        )
    size = len(flat)
    dtype = dtype_of(value)
    if dtype == "int" and max(value.shape) == size and flat == list(range(size)):
        return builder.reshape(builder.op("arange", stop=size), tuple(value.shape))
    found = _banded(builder, value)
    if found is None and dtype == "real":
        found = (
            _sinusoidal(builder, value, parameters)
            or between_regions(builder, value)
            or slopes(builder, value)
            or _scaled_grid(builder, value)
        )
    elif found is None and dtype == "int":
        found = (
            _relative_positions(builder, flat, tuple(value.shape))
            or _affine(builder, value)
            or _led(builder, value)
            or _grid(builder, value)
            or _distances(builder, value)
        )
    if found is not None:
        return found
    if size <= MAX_LISTED:
        return builder.op("table", values=rows(value))
    return (
        _repeated(builder, value)
        or one_hot(builder, value, lambda places: _formula(builder, places))
        or _in_parts(builder, value)
    )


def _is_float32(value: Tensor) -> bool:
    import torch

    return value.dtype == torch.float32


def _unrounded(number: float) -> float:
    """Return the simplest number that is rounded to float32 as this one: a short decimal, the root of an integer, or a
    fraction of pi, or the root of one, or the reciprocal of these. If there is none, return the number.
    """
    if not 2**-12 < abs(number) < 2**12:
        return number
    simple = [float(f"{number:.{DIGITS}g}")]
    simple += [round(number**power) ** (1 / power) for power in (2, -2) if number > 0 and round(number**power)]
    for power, scale in product((1, 2), (math.pi, 1 / math.pi)):
        part = Fraction(number**power * scale).limit_denominator(MAX_PART)
        simple += [(float(part) / scale) ** (1 / power)] if number > 0 and part.numerator <= MAX_PART else []
    return next((each for each in simple if struct.unpack("f", struct.pack("f", each))[0] == number), number)


def _sinusoidal(builder: SpecBuilder, value: Tensor, parameters: Sequence[RotaryParameters]) -> Value | None:
    """Return frequencies, or the sines and cosines of positions."""
    shape = [size for size in value.shape if size > 1]
    if len(shape) == 1:
        found = frequencies(builder, elements(value), parameters)
    else:
        found = sinusoids(builder, value.reshape(shape)) if len(shape) == 2 else None
    return None if found is None else builder.reshape(found, tuple(value.shape))


def _repeated(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a constant that is the same along some axes."""
    first = _repeated_part(value)
    found = _formula(builder, first) if first.shape != value.shape else None
    return None if found is None else builder.expand(found, tuple(value.shape))


def _repeated_part(value: Tensor) -> Tensor:
    """Return a constant with one element along axes where all are the same."""
    first = value
    for axis in range(value.dim()):
        part = first.narrow(axis, 0, 1)
        first = part if bool((first == part).all()) else first
    return first


def _in_parts(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a constant that has a formula for each element of a short axis."""
    for axis in (-1, 0):
        if 1 < value.shape[axis] <= MAX_PARTS:
            parts = [_formula(builder, part) for part in value.unbind(axis)]
            if all(part is not None and part.op != "table" for part in parts):
                return builder.op("stack", parts, axis=axis)
    return None


def _relative_positions(builder: SpecBuilder, values: list[float], shape: tuple[int, ...]) -> Value | None:
    """Return the numbers of the distances, by rows and columns, between any two places in a square window."""
    width = round(len(values) ** 0.25)
    count, rows = width * width, 2 * width - 1
    steps = [rows * (place // width) + place % width for place in range(count)]
    middle = steps[-1]
    if values != [first - second + middle for first in steps for second in steps]:
        return None
    places = builder.op("arange", stop=count)
    number = builder.op(
        "add", builder.op("mul", builder.op("floordiv", places, width), rows), builder.op("mod", places, width)
    )
    distances = builder.op("sub", builder.reshape(number, (count, 1)), builder.reshape(number, (1, count)))
    return builder.reshape(builder.op("add", distances, middle), shape)


def _affine(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return integers that grow by one number along each axis."""
    first = int(value[(0,) * value.dim()])
    found: Value | None = None
    exact = value.new_tensor(first)
    for axis, size in enumerate(value.shape):
        places = [int(at == axis) for at in range(value.dim())]
        step = int(value[tuple(places)]) - first if size > 1 else 0
        shape = (size, *[1] * (value.dim() - 1 - axis))
        exact = exact + step * value.new_tensor(range(size)).reshape(shape)
        if step:
            part = builder.reshape(builder.op("arange", stop=size), shape)
            part = part if step == 1 else builder.op("mul", part, step)
            found = part if found is None else builder.op("add", found, part)
    if found is None or not value.equal(exact.expand(value.shape)):
        return None
    return builder.spread(builder.op("add", found, first) if first else found, tuple(value.shape))


def _banded(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a matrix that is one number above a diagonal or between two, and another one elsewhere, such as a causal
    mask.
    """
    import torch

    shape = tuple([size for size in value.shape if size != 1])
    if len(shape) != 2 or min(shape) < MIN_BAND_SIZE:
        return None
    rows, columns = shape
    matrix = value.reshape(shape)
    line = torch.cat([matrix.flip(0)[:, 0], matrix[0, 1:]])  # by how much the column exceeds the row
    least = 1 - rows
    changes = [at + 1 + least for at, differs in enumerate(elements(line[1:] != line[:-1])) if differs]
    is_band = len(changes) == 2 and bool(line[0] == line[-1])
    if not (len(changes) == 1 or is_band) or not matrix.equal(
        line[torch.arange(columns) - torch.arange(rows)[:, None] - least]
    ):
        return None
    outside, inside = elements(line[[0, changes[0] - least]])
    places = builder.op(
        "sub", builder.op("arange", stop=columns), builder.reshape(builder.op("arange", stop=rows), (rows, 1))
    )
    is_below = isinstance(inside, bool) and not inside and not is_band
    tests = [builder.op("lt" if is_below else "ge", places, changes[0])]
    tests += [builder.op("lt", places, changes[1])] if is_band else []
    found = builder.op("and", *tests) if is_band else tests[0]
    if not isinstance(inside, bool):
        found = builder.op("where", found, inside, outside)
    elif is_band and not inside:
        found = builder.op("not", found)
    return builder.reshape(found, tuple(value.shape))


def _led(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return integers that grow by one number after the first one."""
    rest = _affine(builder, value[1:]) if value.dim() == 1 and len(value) > 3 else None
    return rest and builder.op("concat", builder.op("full", shape=(1,), value=int(value[0])), rest, axis=0)


def _grid(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return the coordinates of places in a grid, one column for each axis."""
    if value.dim() != 2 or value.shape[1] > 3:
        return None
    columns = [_digit(builder, elements(value[:, axis])) for axis in range(value.shape[1])]
    return builder.op("stack", *columns, axis=1) if all(column is not None for column in columns) else None


def _scaled_grid(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return the coordinates of places in a grid, times a number."""
    import torch

    steps = value[value > 0]
    if value.dim() != 2 or not len(steps) or bool(value.isinf().any()):
        return None
    step = float(Fraction(float(steps.min())).limit_denominator(MAX_PLACES))
    places = (value.double() / step).round()
    if not torch.allclose(places * step, value.double(), rtol=1e-6, atol=0):
        return None
    found = _grid(builder, places.long())
    return None if found is None else builder.op("mul", builder.op("real", found), step)


def _digit(builder: SpecBuilder, values: list[float]) -> Value | None:
    """Return integers that count up to a number again and again, each as often."""
    width = next((place for place, value in enumerate(values) if value != values[0]), len(values))
    period = next((place for place in range(width, len(values)) if values[place] == values[0]), len(values))
    if values != [place // width % -(-period // width) for place in range(len(values))]:
        return None
    found = builder.op("arange", stop=len(values))
    found = builder.op("floordiv", found, width) if width > 1 else found
    return builder.op("mod", found, period // width) if period < len(values) else found


def _distances(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return numbers of the distances between the places of two grids: sums of multiples of rows and columns, or of the
    absolute distances by rows and by columns.
    """

    count = math.isqrt(value.numel())
    shape = value.shape if value.dim() == 2 else (count, value.numel() // count)
    if min(shape) < 2 or shape[0] * shape[1] != value.numel():
        return None
    numbers = value.reshape(shape)
    for widths in product(*[_widths(size) for size in shape]):
        grids = [Grid(size, width) for size, width in zip(shape, widths, strict=True)]
        found = _linear_distances(builder, numbers, *grids) or _absolute_distances(builder, numbers, *grids)
        if found is not None:
            return builder.reshape(found, tuple(value.shape))
    return None


def _widths(size: int) -> list[int]:
    """Return how many columns a grid with so many places may have, those of a square first."""
    return sorted([width for width in range(1, size + 1) if size % width == 0], key=lambda at: abs(at - size**0.5))


class Grid(NamedTuple):
    """The places of a window, row by row."""

    size: int
    width: int

    def numbers(self, by_row: int, by_column: int) -> Tensor:
        """Return a number for each place, as a tensor."""
        import torch

        places = torch.arange(self.size)
        return by_row * (places // self.width) + by_column * (places % self.width)

    def written(self, builder: SpecBuilder, by_row: int, by_column: int, axis: int) -> Value:
        """Return a number for each place, along an axis of a matrix."""
        places = builder.op("arange", stop=self.size)
        row, column = builder.op("floordiv", places, self.width), builder.op("mod", places, self.width)
        parts = [
            part if by == 1 else builder.op("mul", part, by) for part, by in ((row, by_row), (column, by_column)) if by
        ]
        number = builder.op("add", *parts) if len(parts) == 2 else parts[0]
        return builder.reshape(number, (self.size, 1) if axis == 0 else (1, self.size))


def _linear_distances(builder: SpecBuilder, numbers: Tensor, first: Grid, second: Grid) -> Value | None:
    start = int(numbers[0, 0])

    def factors(line: Tensor, grid: Grid) -> tuple[int, int]:
        by_row = int(line[grid.width]) - start if grid.width < grid.size else 0
        return by_row, int(line[1]) - start if grid.width > 1 else 0

    own, others = factors(numbers[:, 0], first), factors(numbers[0], second)
    if not any(own) or not any(others):
        return None
    if not bool((numbers == first.numbers(*own)[:, None] + second.numbers(*others) + start).all()):
        return None
    found = builder.op("add", first.written(builder, *own, 0), second.written(builder, *others, 1))
    return found if start == 0 else builder.op("add", found, start)


def _absolute_distances(builder: SpecBuilder, numbers: Tensor, first: Grid, second: Grid) -> Value | None:
    step, by = -(-second.width // first.width), second.width
    rows = (first.numbers(step, 0)[:, None] - second.numbers(1, 0)).abs()
    columns = (first.numbers(0, step)[:, None] - second.numbers(0, 1)).abs()
    if not bool((numbers == by * rows + columns).all()):
        return None

    def distance(by_row: int, by_column: int) -> Value:
        own, other = (
            first.written(builder, step * by_row, step * by_column, 0),
            second.written(builder, by_row, by_column, 1),
        )
        return builder.op("abs", builder.op("sub", own, other))

    return builder.op("add", builder.op("mul", distance(1, 0), by), distance(0, 1))
