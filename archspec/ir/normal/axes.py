"""Indices of axes: their names and extents, and what these decide about integers.

An index is named `#KIND.EXTENT`, with the number of its extent: indices of axes of different sizes have different
names. No dimension of a spec has a name that begins with `#`.
"""

from __future__ import annotations

from functools import reduce
from math import gcd
from typing import TypeAlias, cast

from archspec.core.algebra import Atom, Dim, Expression, Polynomial, dim_max, dim_min, has_lower_bound, symbols
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.nodes import index_of, single

Indices: TypeAlias = tuple[Expression, ...]


class Axes:
    """The extents of axes. Dimensions are at least 1; what is decided about an empty axis has no effect."""

    def __init__(self) -> None:
        self._numbers: dict[Dim, int] = {}
        self._extents: list[Dim] = []
        self._required: dict[Polynomial, None] = {}

    def require(self, size: Dim) -> None:
        """Note the size of an axis of a computation, which is only for those dimensions where it is at least 1."""
        if isinstance(size, Polynomial) and not has_lower_bound(size, 1):
            self._required[size] = None

    def is_nonnegative(self, value: Expression) -> bool:
        """Whether an integer is 0 or more for all dimensions that the computation is for."""
        return any(self.is_at_least(value - size + 1, 0) for size in (1, *self._required))

    def index(self, kind: str, extent: Dim) -> Expression:
        """Return the index of an axis: 0 if there is no other."""
        if extent == 1:
            return 0
        number = self._numbers.get(extent)
        if number is None:
            number = self._numbers[extent] = len(self._extents)
            self._extents.append(extent)
        return index_of(f"#{kind}.{number}", 0, extent - 1 if isinstance(extent, int) else None)

    def like(self, kind: str, name: str) -> Expression:
        """Return the index of another axis with the extent of the one of this name."""
        return self.index(kind, self.extent(name))

    def extent(self, name: str) -> Dim:
        """Return the number of values of the index of an axis."""
        return self._extents[int(name.partition(".")[2])]

    def is_at_least(self, value: Expression, least: int) -> bool:
        """Whether an integer is never below `least`."""
        if has_lower_bound(value, least):
            return True
        lowest = self._lowest(value)
        return lowest is not None and has_lower_bound(lowest, least)

    def _lowest(self, value: Expression) -> Expression | None:
        """Return a value, without indices, that an integer never goes below; None if it is not known."""
        total: Expression = 0
        for monomial, coefficient in terms_of(value):
            if not isinstance(coefficient, int):
                return None
            part: Expression = coefficient
            for atom, power in monomial:
                bound = self._bound(atom, largest=coefficient < 0)
                if bound is None or power < 0:
                    return None
                part = part * bound**power
            total = total + part
        return total

    def _bound(self, atom: Atom, largest: bool) -> Expression | None:
        """Return the least or largest value of an atom that is never negative; None for any other."""
        if atom.kind == "symbol":
            return single(atom)
        low, high = atom.bounds
        if atom.kind == "%":
            by = expression(atom.arguments[1])
            if by in self._numbers:
                return by - 1 if largest else 0
        if low is None or low < 0:
            return None
        if atom.kind != "index" and not any(name.startswith("#") for name in symbols(single(atom))):
            return single(atom)
        if not largest:
            return low
        return self.extent(atom.text) - 1 if atom.kind == "index" and "." in atom.text else high

    def divide(self, value: Expression, by: Dim) -> tuple[Expression, Expression]:
        """Return the quotient, rounded down, and the remainder of an integer and a size."""
        whole, rest = _parted(value, by)
        if self._is_within(rest, by):
            return whole, rest
        for step in _steps(rest, by):
            above, below = _parted(rest, step)
            if self._is_within(below, step):
                quotient, remainder = self.divide(above, cast("int", by) // step)
                return whole + quotient, remainder * step + below
        return whole + rest // by, rest % by

    def _is_within(self, value: Expression, size: Dim) -> bool:
        """Whether an integer is an index of an axis of this size."""
        return self.is_at_least(value, 0) and self.is_at_least(size - 1 - value, 0)

    def divide_sign_test(self, value: Expression) -> Expression:
        """Return an integer that is 0 or more where another one is: without terms too small to decide that, and without
        a common divisor.
        """
        coefficients = [abs(coefficient) for monomial, coefficient in terms_of(value) if monomial]
        for by in sorted({size for size in coefficients if isinstance(size, int) and size > 1}, reverse=True):
            above, remainder = _parted(value, by)
            low, high = self._lowest(remainder), self._lowest(-remainder)
            if isinstance(low, int) and isinstance(high, int) and low // by == -high // by:
                return self.divide_sign_test(above + low // by)
        return value

    def zeros(self, value: Expression) -> list[Expression]:
        """Return integers all of which are 0 where another one is, and only there: its multiples of a number, divided
        by that, and its other terms, if these are smaller than the number.
        """
        coefficients = [abs(coefficient) for monomial, coefficient in terms_of(value) if monomial]
        for by in sorted({size for size in coefficients if isinstance(size, int) and size > 1}, reverse=True):
            above, remainder = _parted(value, by)
            if self.is_at_least(remainder, 1 - by) and self.is_at_least(-remainder, 1 - by):
                return [*self.zeros(above), *(self.zeros(remainder) if remainder != 0 else [])]
        return [value]

    def simplify(self, value: Expression) -> Expression:
        """Simplify quotients and remainders in an integer as far as the axis extents allow."""
        total: Expression = 0
        for monomial, coefficient in terms_of(value):
            if not isinstance(coefficient, int) or not any(atom.kind in ("//", "%") for atom, _ in monomial):
                total = total + expression(((monomial, coefficient),))
                continue
            part: Expression = coefficient
            for atom, power in monomial:
                factor: Expression = expression((((((atom, 1),)), 1),))
                if atom.kind in ("//", "%"):
                    inner, by = [self.simplify(expression(argument)) for argument in atom.arguments]
                    factor = self.divide(inner, by)[0 if atom.kind == "//" else 1]
                part = part * factor**power
            total = total + part
        return total


def _steps(value: Expression, by: Dim) -> list[int]:
    """Return the numbers that divide both a size and a coefficient of an integer, the largest first."""
    if not isinstance(by, int):
        return []
    coefficients = [coefficient for monomial, coefficient in terms_of(value) if monomial]
    common = {gcd(coefficient, by) for coefficient in coefficients if isinstance(coefficient, int)}
    return sorted(common - {1, by}, reverse=True)


def _parted(value: Expression, by: Dim) -> tuple[Expression, Expression]:
    """Return the terms of an integer that are multiples of a size, divided by it, and the sum of the others."""
    above: Expression = 0
    below: Expression = 0
    for term in terms_of(value):
        part = expression((term,))
        if part % by == 0:
            above = above + part // by
        else:
            below = below + part
    return above, below


def join_divisions(value: Expression) -> Expression:
    """Join quotients and remainders of the same division: n * (x // n) + x % n is x. A negative min is a max."""
    value = _turned(value)
    for monomial, coefficient in terms_of(value):
        if len(monomial) == 1 and monomial[0][0].kind == "%" and monomial[0][1] == 1 and isinstance(coefficient, int):
            part, by = [expression(argument) for argument in monomial[0][0].arguments]
            without = value - coefficient * (part % by) - coefficient * by * (part // by)
            if len(terms_of(without)) < len(terms_of(value)) - 1:
                return join_divisions(without + coefficient * part)
    return value


def _turned(value: Expression) -> Expression:
    """Rewrite an integer so that no min or max is subtracted."""
    for monomial, coefficient in terms_of(value):
        if len(monomial) == 1 and isinstance(coefficient, int) and coefficient < 0:
            atom, power = monomial[0]
            if atom.kind in ("min", "max") and power == 1:
                opposite = [-expression(part) for part in atom.arguments]
                turned = reduce(dim_max if atom.kind == "min" else dim_min, opposite)
                return _turned(value - coefficient * single(atom) - coefficient * turned)
    return value
