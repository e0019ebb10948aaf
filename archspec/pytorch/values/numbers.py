"""Numbers and lists as they are written in a spec."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import cast

EXACT_DENOMINATOR = 2.0**10
"""Counting in multiples of one over this number is exact in float32."""

ABSENT = "none"
"""The notation for an absent value."""

MAY_BE_ONE = ("number", "start")
"""What numbers are for that may be 1 in one small module, and not in another."""


def is_counted_exactly(values: Sequence[object]) -> bool:
    """Whether PyTorch counts exactly with these arguments of `arange`: the end, or the start, the end and the step."""
    counted = [*values[:1], *values[2:3]] if len(values) > 1 else []
    return all(not isinstance(value, float) or (value * EXACT_DENOMINATOR).is_integer() for value in counted)


def literal(value: object) -> str:
    """Return a value in the notation of the language."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _real(value)
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Sequence[object]', value)))}]"
    return str(value)


def _real(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = re.sub(r"e([+-])0*", lambda match: "e-" if match[1] == "-" else "e", repr(value))
    return text if "." in text or "e" in text else f"{text}.0"
