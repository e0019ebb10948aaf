"""Real numbers that are the same up to rounding."""

from __future__ import annotations

import math
from bisect import bisect_left

TOLERANCE = 1e-13
"""The relative difference up to which numbers are the same."""


_MAX_ROUNDED = 2.0**50
"""Larger numbers are not rounded to integers."""


class NumberTable:
    """Numbers that represent all those as good as equal: computing in another order rounds differently. Integers and
    halves, which powers often are, represent themselves.
    """

    def __init__(self) -> None:
        self._known: dict[float, float] = {}
        self._sorted: list[float] = []

    def representative(self, value: float) -> float:
        """Return the integer or half that is as good as equal to a number, or else the first number that was."""
        if not math.isfinite(value):
            return value
        found = self._known.get(value)
        if found is None:
            margin = abs(value) * TOLERANCE
            half = round(2 * value) / 2 if abs(value) < _MAX_ROUNDED else math.inf
            at = bisect_left(self._sorted, value - margin)
            if abs(half - value) <= margin:
                found = half + 0.0  # which turns -0.0 into 0.0
            elif at < len(self._sorted) and self._sorted[at] <= value + margin:
                found = self._sorted[at]
            else:
                found = value
                self._sorted.insert(at, found)
            self._known[value] = found
        return found


def power_of(base: float, power: float) -> float:
    """Return a power as floating-point arithmetic has it: infinite if it is too large, NaN if it is not a real."""
    try:
        found = base**power
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return -math.inf if base < 0 and power % 2 == 1 else math.inf
    return math.nan if isinstance(found, complex) else found
