"""Constants that are the frequencies of rotary positions, also those that are scaled for longer contexts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.tensors import elements
from archspec.pytorch.lift.values.values import Setting, Value
from archspec.pytorch.numeric.evaluate import Evaluation

if TYPE_CHECKING:
    from torch import Tensor, nn


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


def slopes(builder: Builder, value: Tensor) -> Value | None:
    """Return the slopes of ALiBi, one for each head, along the only axis of a constant that has several elements."""
    heads = value.numel()
    if heads < 3 or heads not in value.shape:
        return None
    found = builder.function("alibi_slopes", [], (heads,), heads=heads)
    if found is None or not _is_like(builder, found, elements(value)):
        return None
    return builder.reshape(found, tuple(value.shape))


def _is_like(builder: Builder, found: Value, values: list[float]) -> bool:
    """Whether the numbers of a formula are these, up to their precision."""
    numbers = elements(Evaluation(builder.arrays, {}, {}).array(found.array))
    return all(math.isclose(*pair, rel_tol=1e-5) for pair in zip(numbers, values, strict=True))


def frequencies(builder: Builder, values: list[float], parameters: Sequence[RotaryParameters]) -> Value | None:
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


def _even_then_odd(builder: Builder, values: list[float], parameters: Sequence[RotaryParameters]) -> Value | None:
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


def _scaled(builder: Builder, values: list[float], parameters: RotaryParameters) -> Value | None:
    others, half = parameters.others, len(values)
    name, fields = SCALED.get(str(others.get("rope_type")), ("", {}))
    scaling = {key: others[field] for key, field in fields.items() if others.get(field) is not None}
    if "factor" not in scaling or "context" not in scaling:
        return None
    settings = {"size": 2 * half, "theta": parameters.theta, **scaling}
    found = builder.function(name, [], (half,), "real", **settings)
    return found if found is not None and _is_like(builder, found, values) else None


def rotary(builder: Builder, half: int, theta: float) -> Value | None:
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
