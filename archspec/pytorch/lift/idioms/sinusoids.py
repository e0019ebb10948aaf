"""Constants that are the sines and cosines of positions at several frequencies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.stored import elements
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.values import Setting, Value

if TYPE_CHECKING:
    from torch import Tensor, nn


# Constants that are the frequencies of rotary positions, also those that are scaled for longer contexts.


class RotaryParameters(NamedTuple):
    """The base of rotary positions in a configuration, and its other parameters of them."""

    theta: float
    others: Mapping[str, Setting]


SCALED = {
    "llama3": (
        "llama3_frequencies",
        {
            "factor": "factor",
            "low": "low_freq_factor",
            "high": "high_freq_factor",
            "context": "original_max_position_embeddings",
        },
    ),
    "yarn": (
        "yarn_frequencies",
        {
            "factor": "factor",
            "context": "original_max_position_embeddings",
            "fast": "beta_fast",
            "slow": "beta_slow",
            "rounded": "truncate",
        },
    ),
}
"""Functions of the library by the type of scaling, and the parameters that their hyperparameters are given by."""


def rotary_parameters(module: nn.Module) -> list[RotaryParameters]:
    """Return the parameters of rotary positions that the configuration of a module has, one for each kind of layers."""
    found = getattr(getattr(module, "config", None), "rope_parameters", None)
    if not isinstance(found, dict):
        return []
    whole = cast("dict[str, object]", found)
    kinds = [cast("dict[str, Setting]", item) for item in (whole, *whole.values()) if isinstance(item, dict)]
    bases = [(kind.get("rope_theta"), kind) for kind in kinds]
    return [RotaryParameters(theta, kind) for theta, kind in bases if isinstance(theta, int | float)]


def slopes(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return the slopes of ALiBi, one for each head, along the only axis of a constant that has several elements."""
    heads = value.numel()
    if heads < 3 or heads not in value.shape:
        return None
    found = builder.function("alibi_slopes", [], (heads,), heads=heads)
    if found is None or not _is_like(builder, found, elements(value)):
        return None
    return builder.reshape(found, tuple(value.shape))


def _is_like(builder: SpecBuilder, found: Value, values: list[float]) -> bool:
    """Whether the numbers of a formula are these, up to their precision."""
    numbers = elements(Evaluation(builder.arrays, {}, {}).array(found.array))
    return all(math.isclose(*pair, rel_tol=1e-5) for pair in zip(numbers, values, strict=True))


def frequencies(builder: SpecBuilder, values: list[float], parameters: Sequence[RotaryParameters]) -> Value | None:
    """Return the frequencies of rotary positions, theta^(-2i / size) for pair i, or 0 from some pair on, also as
    `parameters` scale them.
    """
    count = len(values)
    moving = next((turn for turn, value in enumerate(values) if not value), count)
    if not any(values[moving:]):
        first = values[:moving]
        known = [item.theta for item in parameters if first and _are_powers(first, item.theta, count)]
        found = (known[0], count) if known else powers(first, [count])
        all_move = rotary(builder, count, found[0]) if found is not None else None
        if all_move is not None and moving < count:
            return builder.op("where", builder.op("lt", builder.op("arange", stop=count), moving), all_move, 0.0)
        if all_move is not None:
            return all_move
    found = next((scaled for item in parameters if (scaled := _scaled(builder, values, item)) is not None), None)
    return found or _even_then_odd(builder, values, parameters)


def _even_then_odd(builder: SpecBuilder, values: list[float], parameters: Sequence[RotaryParameters]) -> Value | None:
    """Return frequencies whose first ones are those with even numbers, and then those with odd numbers."""
    half = max(range(1, len(values)), key=values.__getitem__, default=1)
    end = 2 * half
    if half < 2 or end > len(values):
        return None
    first = [value for pair in zip(values[:half], values[half:end], strict=True) for value in pair]
    found = frequencies(builder, first + values[end:], parameters)
    if found is None:
        return None
    parts = [builder.op("slice", found, axis=0, start=start, stop=end, step=2) for start in (0, 1)]
    rest = [builder.op("slice", found, axis=0, start=end)] if end < len(values) else []
    return builder.op("concat", *parts, *rest, axis=0)


def _are_powers(values: list[float], theta: float, count: int) -> bool:
    """Whether values are the powers 0, -1 / count, and so on, of a number."""
    return all(math.isclose(value, theta ** (-turn / count), rel_tol=1e-5) for turn, value in enumerate(values))


def _scaled(builder: SpecBuilder, values: list[float], parameters: RotaryParameters) -> Value | None:
    others, half = parameters.others, len(values)
    name, fields = SCALED.get(str(others.get("rope_type")), ("", {}))
    scaling = {key: others[field] for key, field in fields.items() if others.get(field) is not None}
    if "factor" not in scaling or "context" not in scaling:
        return None
    settings = {"size": 2 * half, "theta": parameters.theta, **scaling}
    found = builder.function(name, [], (half,), "real", **settings)
    return found if found is not None and _is_like(builder, found, values) else None


def rotary(builder: SpecBuilder, half: int, theta: float) -> Value | None:
    return builder.function("rotary_frequencies", [], (half,), size=2 * half, theta=theta)


def powers(values: list[float], counts: list[int]) -> tuple[float, int] | None:
    """Return the number of which values are the powers 0, -1 / count, and so on, and the count: with few digits."""
    if len(values) < 2 or not math.isclose(values[0], 1.0, rel_tol=1e-5):
        return None
    return next((base for base in bases(values[1], counts) if _are_powers(values, *base)), None)


def bases(value: float, counts: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Return numbers with few digits of which a value is the power -1 / count, and the count."""
    if 0 < value < 1:
        for digits, count in product((1, 2, 3, 4, 5), counts):
            yield float(f"{value**-count:.{digits}g}"), count


_PRECISION = 2e-6, 1e-6
"""Sines and cosines are at most so far from the exact ones, and by so much of their angle: frequencies are rounded to
float32.
"""


def sinusoids(builder: SpecBuilder, value: Tensor) -> Value | None:
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


def complex_sinusoids(builder: SpecBuilder, value: Tensor) -> tuple[Value, Value] | None:
    """Return the real and the imaginary parts of a table of complex numbers that turn, one row for each position."""
    if value.dim() != 2 or value.shape[0] < 3:
        return None
    found = _waves(builder, value.imag, value.real)
    return None if found is None or found.empty else (found.cosines, found.sines)


def _twice(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return a table in which all sines, or all cosines, are repeated, or each of them is."""
    half = value.shape[1] // 2
    if value[:, :half].equal(value[:, half:]):
        wave = _wave(builder, value[:, :half])
        return wave and builder.op("concat", wave, wave, axis=1)
    if value[:, ::2].equal(value[:, 1::2]):
        wave = _wave(builder, value[:, ::2])
        return wave and builder.reshape(builder.op("stack", wave, wave, axis=2), tuple(value.shape))
    return None


def _of_grid(builder: SpecBuilder, value: Tensor) -> Value | None:
    places, columns = value.shape
    for width in range(3, places // 3 + 1) if columns % 2 == 0 else ():
        if places % width == 0:
            grid = value.reshape(places // width, width, 2, columns // 2)
            for axes in ((0, 1), (1, 0)):
                halves = [_repeated(builder, grid[:, :, turn], axis) for turn, axis in enumerate(axes)]
                if halves[0] is not None and halves[1] is not None:
                    return builder.op("concat", *halves, axis=1)
    return None


def _repeated(builder: SpecBuilder, grid: Tensor, axis: int) -> Value | None:
    """Return the rows of a grid that is the same along an axis, if those along the other one are sinusoids."""
    first = grid.narrow(axis, 0, 1)
    found = sinusoids(builder, first.flatten(0, 1)) if bool((grid == first).all()) else None
    if found is None:
        return None
    whole = builder.expand(builder.reshape(found, tuple(first.shape)), tuple(grid.shape))
    return builder.reshape(whole, (grid.shape[0] * grid.shape[1], grid.shape[2]))


def _wave(builder: SpecBuilder, value: Tensor) -> Value | None:
    """Return the sines, or the cosines, of positions at several frequencies."""

    rows, half = value.shape
    if half < 2:
        return None
    is_cosine = bool(value[0, 0] == 1)
    second = float((value.double().acos() if is_cosine else value.double().asin())[1, 1])
    for theta, count in bases(second, [half, half - 1]):
        exact = _exact_angles(rows, half, theta, count)
        if _are_close(exact.cos() if is_cosine else exact.sin(), value, exact):
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
    builder: SpecBuilder, sines: Tensor, cosines: Tensor, in_turn: bool = False, is_reversed: bool = False
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


def _waves(builder: SpecBuilder, sines: Tensor, cosines: Tensor) -> _Waves | None:
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
    if not all(_are_close(wave * kept, own, exact) for wave, own in ((exact.sin(), sines), (exact.cos(), cosines))):
        return None
    positions = _positions(builder, rows)
    angles = _angles(builder, positions, half, theta, count)
    return angles and _Waves(builder.op("sin", angles), builder.op("cos", angles), positions, empty)


def _are_close(exact: Tensor, rounded: Tensor, angles: Tensor) -> bool:
    least, of_angle = _PRECISION
    return bool(((exact - rounded.double()).abs() <= least + of_angle * angles).all())


def _exact_angles(rows: int, half: int, theta: float, count: int) -> Tensor:
    import torch

    return torch.arange(rows).double()[:, None] * theta ** (-torch.arange(half).double() / count)


def _positions(builder: SpecBuilder, rows: int) -> Value:
    return builder.reshape(builder.op("arange", stop=rows), (rows, 1))


def _angles(builder: SpecBuilder, positions: Value, half: int, theta: float, count: int) -> Value | None:
    steps = (rotary if count == half else _to_the_last)(builder, half, theta)
    return steps and builder.op("mul", positions, steps)


def _to_the_last(builder: SpecBuilder, half: int, theta: float) -> Value:
    """Return frequencies from 1 to 1 / theta."""
    exponents = builder.op("div", builder.op("arange", stop=half), half - 1)
    return builder.op("exp", builder.op("mul", exponents, -math.log(theta)))
