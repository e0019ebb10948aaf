"""Constants that are the sines and cosines of positions at several frequencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from archspec.lifting.builder import Builder
from archspec.lifting.frequencies import powers, rotary
from archspec.lifting.tensors import elements
from archspec.lifting.values import Value

if TYPE_CHECKING:
    from torch import Tensor


def sinusoids(builder: Builder, value: Tensor) -> Value | None:
    """Return a table with one row for each position: all sines and all cosines, or both in turn. A row may be zero."""
    rows, columns = value.shape
    if rows < 3 or columns % 2:
        return None
    half = columns // 2
    return (
        _of_layout(builder, value[:, :half], value[:, half:])
        or _of_layout(builder, value[:, half:], value[:, :half], is_reversed=True)
        or _of_layout(builder, value[:, ::2], value[:, 1::2], in_turn=True)
    )


def complex_sinusoids(builder: Builder, value: Tensor) -> tuple[Value, Value] | None:
    """Return the real and the imaginary parts of a table of complex numbers that turn, one row for each position."""
    if value.dim() != 2 or value.shape[0] < 3:
        return None
    found = _waves(builder, value.imag, value.real)
    return None if found is None or found.empty else (found.cosines, found.sines)


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
    exact = torch.arange(rows).double()[:, None] * theta ** (-torch.arange(half).double() / count)
    kept = (torch.arange(rows)[:, None] != torch.tensor(empty or [rows])).all(1, keepdim=True)
    if not all(
        torch.allclose(wave * kept, own.double(), atol=1e-5)
        for wave, own in ((exact.sin(), sines), (exact.cos(), cosines))
    ):
        return None
    steps = (rotary if count == half else _to_the_last)(builder, half, theta)
    if steps is None:
        return None
    positions = builder.reshape(builder.op("arange", stop=rows), (rows, 1))
    angles = builder.op("mul", positions, steps)
    return _Waves(builder.op("sin", angles), builder.op("cos", angles), positions, empty)


def _to_the_last(builder: Builder, half: int, theta: float) -> Value:
    """Return frequencies from 1 to 1 / theta."""
    exponents = builder.op("div", builder.op("arange", stop=half), half - 1)
    return builder.op("exp", builder.op("mul", exponents, -math.log(theta)))
