"""Constants that are the sines and cosines of positions at several frequencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from archspec.pytorch.lift.idioms.frequencies import bases, powers, rotary
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.tensors import elements
from archspec.pytorch.lift.values.values import Value

if TYPE_CHECKING:
    from torch import Tensor

_PRECISION = 1e-5, 3e-7
"""Sines and cosines are at most so far from the exact ones, and those of large angles by so much for each position:
frequencies are rounded to float32.
"""


def sinusoids(builder: Builder, value: Tensor) -> Value | None:
    """Return a table with one row for each position: all sines and all cosines, or both in turn. A row may be zero.

    The table may also be of sines or cosines alone, each of them once or twice, or of the places in a grid: one half of
    a row is of the column of a place, the other one of its row.
    """
    rows, columns = value.shape
    if rows < 3:
        return None
    if columns % 2:
        return _wave(builder, value)
    half = columns // 2
    return (
        _of_layout(builder, value[:, :half], value[:, half:])
        or _of_layout(builder, value[:, half:], value[:, :half], is_reversed=True)
        or _of_layout(builder, value[:, ::2], value[:, 1::2], in_turn=True)
        or _wave(builder, value)
        or _twice(builder, value)
        or _of_grid(builder, value)
    )


def complex_sinusoids(builder: Builder, value: Tensor) -> tuple[Value, Value] | None:
    """Return the real and the imaginary parts of a table of complex numbers that turn, one row for each position."""
    if value.dim() != 2 or value.shape[0] < 3:
        return None
    found = _waves(builder, value.imag, value.real)
    return None if found is None or found.empty else (found.cosines, found.sines)


def _twice(builder: Builder, value: Tensor) -> Value | None:
    """Return a table in which all sines, or all cosines, are repeated, or each of them is."""
    half = value.shape[1] // 2
    if value[:, :half].equal(value[:, half:]):
        wave = _wave(builder, value[:, :half])
        return wave and builder.op("concat", wave, wave, axis=1)
    if value[:, ::2].equal(value[:, 1::2]):
        wave = _wave(builder, value[:, ::2])
        return wave and builder.reshape(builder.op("stack", wave, wave, axis=2), tuple(value.shape))
    return None


def _of_grid(builder: Builder, value: Tensor) -> Value | None:
    places, columns = value.shape
    for width in range(3, places // 3 + 1) if columns % 2 == 0 else ():
        if places % width == 0:
            grid = value.reshape(places // width, width, 2, columns // 2)
            for axes in ((0, 1), (1, 0)):
                halves = [_repeated(builder, grid[:, :, turn], axis) for turn, axis in enumerate(axes)]
                if halves[0] is not None and halves[1] is not None:
                    return builder.op("concat", *halves, axis=1)
    return None


def _repeated(builder: Builder, grid: Tensor, axis: int) -> Value | None:
    """Return the rows of a grid that is the same along an axis, if those along the other one are sinusoids."""
    first = grid.narrow(axis, 0, 1)
    found = sinusoids(builder, first.flatten(0, 1)) if bool((grid == first).all()) else None
    if found is None:
        return None
    whole = builder.expand(builder.reshape(found, tuple(first.shape)), tuple(grid.shape))
    return builder.reshape(whole, (grid.shape[0] * grid.shape[1], grid.shape[2]))


def _wave(builder: Builder, value: Tensor) -> Value | None:
    """Return the sines, or the cosines, of positions at several frequencies."""

    rows, half = value.shape
    if half < 2:
        return None
    is_cosine = bool(value[0, 0] == 1)
    second = float((value.double().acos() if is_cosine else value.double().asin())[1, 1])
    for theta, count in bases(second, [half, half - 1]):
        exact = _exact_angles(rows, half, theta, count)
        if _are_close(exact.cos() if is_cosine else exact.sin(), value):
            angles = _angles(builder, _positions(builder, rows), half, theta, count)
            return angles and builder.op("cos" if is_cosine else "sin", angles)
    return None


class _Waves(NamedTuple):
    """The sines and cosines of positions at several frequencies, and those of the positions that have zeros instead."""

    sines: Value
    cosines: Value
    positions: Value
    empty: Sequence[int]


def _of_layout(
    builder: Builder, sines: Tensor, cosines: Tensor, in_turn: bool = False, is_reversed: bool = False
) -> Value | None:
    found = _waves(builder, sines, cosines)
    if found is None:
        return None
    waves = found.sines, found.cosines
    if in_turn:
        table = builder.reshape(builder.op("stack", *waves, axis=2), (sines.shape[0], 2 * sines.shape[1]))
    else:
        table = builder.op("concat", *(waves[::-1] if is_reversed else waves), axis=1)
    if not found.empty:
        return table
    return builder.op("where", builder.op("ne", found.positions, found.empty[0]), table, 0.0)


def _waves(builder: Builder, sines: Tensor, cosines: Tensor) -> _Waves | None:
    import torch

    rows, half = sines.shape
    empty = [row for row in range(rows) if not sines[row].any() and not cosines[row].any()]
    position = 2 if 1 in empty else 1
    turned = torch.atan2(sines[position].double(), cosines[position].double())
    first = [angle / position for angle in elements(turned)]
    base = powers(first, [half, half - 1])
    if base is None or len(empty) > 1:
        return None
    theta, count = base
    exact = _exact_angles(rows, half, theta, count)
    kept = (torch.arange(rows)[:, None] != torch.tensor(empty or [rows])).all(1, keepdim=True)
    if not all(_are_close(wave * kept, own) for wave, own in ((exact.sin(), sines), (exact.cos(), cosines))):
        return None
    positions = _positions(builder, rows)
    angles = _angles(builder, positions, half, theta, count)
    return angles and _Waves(builder.op("sin", angles), builder.op("cos", angles), positions, empty)


def _are_close(exact: Tensor, rounded: Tensor) -> bool:
    import torch

    least, of_position = _PRECISION
    return torch.allclose(exact, rounded.double(), atol=max(least, of_position * len(exact)))


def _exact_angles(rows: int, half: int, theta: float, count: int) -> Tensor:
    import torch

    return torch.arange(rows).double()[:, None] * theta ** (-torch.arange(half).double() / count)


def _positions(builder: Builder, rows: int) -> Value:
    return builder.reshape(builder.op("arange", stop=rows), (rows, 1))


def _angles(builder: Builder, positions: Value, half: int, theta: float, count: int) -> Value | None:
    steps = (rotary if count == half else _to_the_last)(builder, half, theta)
    return steps and builder.op("mul", positions, steps)


def _to_the_last(builder: Builder, half: int, theta: float) -> Value:
    """Return frequencies from 1 to 1 / theta."""
    exponents = builder.op("div", builder.op("arange", stop=half), half - 1)
    return builder.op("exp", builder.op("mul", exponents, -math.log(theta)))
