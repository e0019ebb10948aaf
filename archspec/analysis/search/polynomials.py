"""Polynomials for many designs at once."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.analysis.formula.restarts import Assumption
from archspec.analysis.search.columns import Array, Column, binary, column, extreme, is_column, numpy, where
from archspec.core.algebra import Atom, Expression, terms_of
from archspec.core.algebra.terms import Terms, denominator


class Ratio:
    """The values of an expression: a numerator over a denominator. `unclear` is true where a divisor is 0."""

    def __init__(self, above: Column, below: Column, unclear: Array) -> None:
        self.above = above
        self.below = below
        self.unclear = unclear


def values(expr: Expression, names: Mapping[str, Column], length: int) -> Column:
    """Return the values of an expression that is an integer for all designs."""
    found = ratio(expr, names)
    above = _broadcast(found.above, length)
    if found.below.low == found.below.high == 1:
        return above
    if bool(found.unclear.any()) or bool((_op("%", found.above, found.below).values != 0).any()):
        raise ArithmeticError("the value of a formula is not an integer")
    return _op("//", above, found.below)


def holds(assumption: Assumption, names: Mapping[str, Column], length: int) -> Array:
    """Return where an assumption holds."""
    left, right = ratio(assumption.left, names), ratio(assumption.right, names)
    above, below = _op("*", left.above, right.below), _op("*", left.below, right.above)
    if assumption.operator == "divisible":
        safe, is_zero = _divisor(below)
        found = (_op("%", above, safe).values == 0) & ~is_zero
    else:
        found = _op(assumption.operator, above, below).values  # denominators are positive
    return numpy().broadcast_to(found & ~left.unclear & ~right.unclear, (length,))


def ratio(expr: Expression, names: Mapping[str, Column]) -> Ratio:
    """Return the values of an expression, of length 1 for a constant. Names have positive values."""
    return _ratio(terms_of(expr), names, numpy().zeros(1, dtype=bool))


def _ratio(terms: Terms, names: Mapping[str, Column], unclear: Array) -> Ratio:
    lowest: dict[Atom, int] = {}
    for monomial, _ in terms:
        for atom, exponent in monomial:
            lowest[atom] = min(exponent, lowest.get(atom, 0))
    scale = denominator(terms)
    known: dict[Atom, Column] = {}
    below = _constant(scale)
    for atom, exponent in lowest.items():
        known[atom], unclear = _atom(atom, names, unclear)
        below = _raised(below, known[atom], -exponent)
    above = _constant(0)
    for monomial, coefficient in terms:
        term = _constant(int(coefficient * scale))
        exponents = dict(monomial)
        for atom, least in lowest.items():
            term = _raised(term, known[atom], exponents.get(atom, 0) - least)
        above = _op("+", above, term)
    return Ratio(above, below, unclear)


def _atom(atom: Atom, names: Mapping[str, Column], unclear: Array) -> tuple[Column, Array]:
    """Return the values of an atom, all of whose arguments are integers."""
    if not atom.arguments:
        return names[atom.text], unclear
    arguments: list[Column] = []
    for terms in atom.arguments:
        found = _ratio(terms, names, unclear)
        arguments.append(found.above)
        unclear = found.unclear
    if atom.kind == "()":
        return arguments[0], unclear
    if atom.kind in ("min", "max"):
        return _is_a_column(extreme(atom.kind, arguments)), unclear
    left, right = arguments
    safe, is_zero = _divisor(right)
    return _op(atom.kind, left, safe), unclear | is_zero


def _divisor(values: Column) -> tuple[Column, Array]:
    """Return divisors with 1 in the place of 0, and where that is."""
    is_zero = _op("==", values, _constant(0))
    return _is_a_column(where(is_zero, 1, values)), is_zero.values


def _raised(term: Column, factor: Column, exponent: int) -> Column:
    for _ in range(exponent):
        term = _op("*", term, factor)
    return term


def _op(sign: str, left: Column, right: Column) -> Column:
    return _is_a_column(binary(sign, left, right))


def _is_a_column(value: object) -> Column:
    assert is_column(value)
    return value


def _constant(number: int) -> Column:
    return column([number])


def _broadcast(values: Column, length: int) -> Column:
    return Column(numpy().broadcast_to(values.values, (length,)), values.low, values.high)
