"""Constants of a module as formulas."""

from __future__ import annotations

import math
from typing import Any

from archspec.equivalence.calls.values import Untranslatable
from archspec.lifting.builder import Builder
from archspec.lifting.values import Value

MOST_NUMBERS = 64
"""Constants with more elements are not written as lists."""


def constant(builder: Builder, value: Any, name: str) -> Value:
    """Return a constant as the value of a formula. Raises Untranslatable if no formula is known for it."""
    if value is None or value.device.type == "meta":
        raise Untranslatable(f"the constant `{name}` has no values")
    flat = value.flatten().tolist()
    if not value.shape or all(item == flat[0] for item in flat):
        return builder.op("full", shape=tuple(value.shape), value=flat[0])
    size = len(flat)
    if max(value.shape) == size and flat == list(range(size)) and not value.dtype.is_floating_point:
        return builder.reshape(builder.op("arange", stop=size), tuple(value.shape))
    found = _frequencies(builder, flat) if len(value.shape) == 1 and value.dtype.is_floating_point else None
    if found is not None:
        return found
    if len(value.shape) == 2 and value.dtype.is_floating_point:
        found = _sinusoids(builder, value)
        if found is not None:
            return found
    if not value.dtype.is_floating_point:
        found = (
            _relative_positions(builder, flat, tuple(value.shape)) or _affine(builder, value) or _grid(builder, value)
        )
        if found is not None:
            return found
    if size <= MOST_NUMBERS:
        return builder.op("table", values=value.tolist())
    raise Untranslatable(f"the constant `{name}` of the shape {list(value.shape)} has no known formula")


def _frequencies(builder: Builder, values: list[float]) -> Value | None:
    """Return the frequencies of rotary positions, theta^(-2i / size) for pair i."""
    size = 2 * len(values)
    if len(values) < 2 or not math.isclose(values[0], 1.0, rel_tol=1e-5) or not 0 < values[1] < 1:
        return None
    exact = values[1] ** (-size / 2)
    for digits in (1, 2, 3, 4, 5):
        theta = float(f"{exact:.{digits}g}")
        if all(math.isclose(value, theta ** (-2 * turn / size), rel_tol=1e-5) for turn, value in enumerate(values)):
            return builder.function("rotary_frequencies", [], (size // 2,), size=size, theta=theta)
    return None


def _relative_positions(builder: Builder, values: list[int], shape: tuple[int, ...]) -> Value | None:
    """Return the numbers of the distances, by rows and columns, between any two places in a square window."""
    width = round(len(values) ** 0.25)
    count, rows = width * width, 2 * width - 1
    steps = [rows * (place // width) + place % width for place in range(count)]
    middle = steps[-1]
    if width < 2 or values != [first - second + middle for first in steps for second in steps]:
        return None
    places = builder.op("arange", stop=count)
    number = builder.op(
        "add", builder.op("mul", builder.op("floordiv", places, width), rows), builder.op("mod", places, width)
    )
    distances = builder.op("sub", builder.reshape(number, (count, 1)), builder.reshape(number, (1, count)))
    return builder.reshape(builder.op("add", distances, middle), shape)


def _affine(builder: Builder, value: Any) -> Value | None:
    """Return integers that grow by one number along each axis."""
    first = int(value[(0,) * value.dim()])
    found: Value | None = None
    exact: Any = first
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


def _grid(builder: Builder, value: Any) -> Value | None:
    """Return the coordinates of places in a grid, one column for each axis."""
    if value.dim() != 2 or value.shape[1] > 3:
        return None
    columns = [_digit(builder, value[:, axis].tolist()) for axis in range(value.shape[1])]
    return builder.op("stack", *columns, axis=1) if all(column is not None for column in columns) else None


def _digit(builder: Builder, values: list[int]) -> Value | None:
    """Return integers that count up to a number again and again, each as often."""
    width = next((place for place, value in enumerate(values) if value != values[0]), len(values))
    period = next((place for place in range(width, len(values)) if values[place] == values[0]), len(values))
    if values != [place // width % -(-period // width) for place in range(len(values))]:
        return None
    found = builder.op("arange", stop=len(values))
    found = builder.op("floordiv", found, width) if width > 1 else found
    return builder.op("mod", found, period // width) if period < len(values) else found


def _sinusoids(builder: Builder, value: Any) -> Value | None:
    """Return the sines and then the cosines of rotary positions, one row for each."""
    import torch

    rows, columns = value.shape
    positions = builder.reshape(builder.op("arange", stop=rows), (rows, 1))
    if rows < 2 or columns % 2:
        return None
    first = [math.asin(item) for item in value[1, : columns // 2].tolist()]
    frequencies = _frequencies(builder, first)
    if frequencies is None:
        return None
    theta = float(frequencies.settings["theta"])
    exact = torch.arange(rows).double()[:, None] * theta ** (-torch.arange(columns // 2).double() * 2 / columns)
    if not torch.allclose(torch.cat([exact.sin(), exact.cos()], 1), value.double(), atol=1e-5):
        return None
    angles = builder.op("mul", positions, frequencies)
    return builder.op("concat", builder.op("sin", angles), builder.op("cos", angles), axis=1)
