"""Bounds of polynomials over all values of their symbols."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from archspec.algebra.terms import Bounds, Coefficient, Monomial, Terms, degree, scaled, times

HIGHEST_DEGREE = 8


def bounds_of(terms: Terms) -> Bounds:
    """Values that a polynomial never goes below and above."""
    high = _lowest(scaled(terms, -1))
    return _lowest(terms), None if high is None else -high


def is_at_least(terms: Terms, least: int) -> bool:
    """Whether a polynomial is certain not to go below `least`."""
    low = _lowest(terms)
    return low is not None and low >= least


def quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of `a // b`; unknown unless b is positive."""
    least, most = b
    if least is None or least < 1:
        return None, None
    low, high = a
    if low is not None:
        low = low // least if low < 0 else 0 if most is None else low // most
    if high is not None:
        high = high // least if high >= 0 else -1 if most is None else high // most
    return low, high


def atom_bounds(kind: str, arguments: Sequence[Terms]) -> Bounds:
    """The bounds of an operation on polynomials, by its kind of atom."""
    limits = [bounds_of(argument) for argument in arguments]
    match kind:
        case "//":
            return quotient_bounds(*limits)
        case "%":
            low, high = limits[1]
            return (0, None if high is None else high - 1) if low is not None and low >= 1 else (None, None)
        case _:
            least = [low for low, _ in limits if low is not None]
            most = [high for _, high in limits if high is not None]
            if kind == "min":
                return min(least) if len(least) == len(limits) else None, min(most, default=None)
            return max(least, default=None), max(most) if len(most) == len(limits) else None


def _lowest(terms: Terms) -> int | None:
    """The least value, if it can be seen by counting every atom from its own least value."""
    if not terms:
        return 0
    if degree(terms[0][0]) > HIGHEST_DEGREE:
        return None
    shifted: dict[Monomial, Coefficient] = {}
    for monomial, coefficient in terms:
        parts: dict[Monomial, Coefficient] = {(): coefficient}
        for atom, exponent in monomial:
            low = atom.bounds[0]
            if low is None or exponent < 0:
                return None
            for _ in range(exponent):
                raised: dict[Monomial, Coefficient] = {}
                for part, scale in parts.items():
                    raised[part] = raised.get(part, 0) + scale * low
                    longer = times(part, ((atom, 1),))
                    raised[longer] = raised.get(longer, 0) + scale
                parts = raised
        for part, scale in parts.items():
            shifted[part] = shifted.get(part, 0) + scale
    total = shifted.pop((), 0)
    for monomial, coefficient in shifted.items():
        if coefficient < 0:
            for atom, exponent in monomial:
                low, high = atom.bounds
                if low is None or high is None:
                    return None
                coefficient *= (high - low) ** exponent
            total += coefficient
    return floor(total)
