"""Sums of polynomials over an index, in closed form."""

from __future__ import annotations

from math import comb

from archspec.algebra.polynomial import Expression, by_power, ratio


def summed(each: Expression, index: str, count: Expression) -> Expression | None:
    """The sum of `each` over `index` = 1, 2, ..., `count`; None if `index` appears inside other atoms, or divides."""
    coefficients = by_power(each, index)
    if coefficients is None or min(coefficients, default=0) < 0:
        return None
    sums = power_sums(max(coefficients, default=0), count)
    return sum([coefficient * sums[power] for power, coefficient in coefficients.items()])


def power_sums(most: int, count: Expression) -> list[Expression]:
    """The sums of k ** p over k = 1 ... count, for each power p up to `most` (Faulhaber).

    (n + 1) ** (p + 1) - 1 is the sum over k of (k + 1) ** (p + 1) - k ** (p + 1), which the binomial theorem turns into
    the sums of lower powers.
    """
    sums: list[Expression] = []
    for power in range(most + 1):
        lower = sum([sums[p] * comb(power + 1, p) for p in range(power)])
        sums.append(ratio((count + 1) ** (power + 1) - 1 - lower, power + 1))
    return sums
