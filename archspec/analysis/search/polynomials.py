"""Evaluation of polynomials for many designs at once."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.analysis.formula.restarts import Assumption
from archspec.analysis.search.columns import (
    Array,
    Column,
    apply_operator,
    choose_extreme,
    column,
    is_column,
    numpy,
    where,
)
from archspec.core.algebra import Atom, Expression, terms_of
from archspec.core.algebra.terms import Terms
from archspec.core.algebra.terms import denominator as common_denominator


class Ratio:
    """The values of an expression: a numerator over a denominator. `undefined` is true where a divisor is 0."""

    def __init__(self, numerator: Column, denominator: Column, undefined: Array) -> None:
        self.numerator = numerator
        self.denominator = denominator
        self.undefined = undefined


def evaluate_integers(expr: Expression, names: Mapping[str, Column], length: int) -> Column:
    """Evaluate an expression that is an integer for all designs."""
    values = evaluate_ratio(expr, names)
    numerator = _broadcast(values.numerator, length)
    if values.denominator.low == values.denominator.high == 1:
        return numerator
    if bool(values.undefined.any()) or bool((_apply("%", values.numerator, values.denominator).values != 0).any()):
        raise ArithmeticError("the value of a formula is not an integer")
    return _apply("//", numerator, values.denominator)


def find_where_holds(assumption: Assumption, names: Mapping[str, Column], length: int) -> Array:
    """Return for each design whether an assumption holds."""
    left, right = evaluate_ratio(assumption.left, names), evaluate_ratio(assumption.right, names)
    left_side, right_side = (
        _apply("*", left.numerator, right.denominator),
        _apply("*", left.denominator, right.numerator),
    )
    if assumption.operator == "divisible":
        safe, is_zero = _divisor(right_side)
        holds = (_apply("%", left_side, safe).values == 0) & ~is_zero
    else:
        holds = _apply(assumption.operator, left_side, right_side).values  # denominators are positive
    return numpy().broadcast_to(holds & ~left.undefined & ~right.undefined, (length,))


def evaluate_ratio(expr: Expression, names: Mapping[str, Column]) -> Ratio:
    """Evaluate an expression; a constant has length 1. All names must have positive values."""
    return _ratio(terms_of(expr), names, numpy().zeros(1, dtype=bool))


def _ratio(terms: Terms, names: Mapping[str, Column], undefined: Array) -> Ratio:
    lowest: dict[Atom, int] = {}
    for monomial, _ in terms:
        for atom, exponent in monomial:
            lowest[atom] = min(exponent, lowest.get(atom, 0))
    scale = common_denominator(terms)
    factors: dict[Atom, Column] = {}
    denominator = _constant(scale)
    for atom, exponent in lowest.items():
        factors[atom], undefined = _atom(atom, names, undefined)
        denominator = _multiply_power(denominator, factors[atom], -exponent)
    numerator = _constant(0)
    for monomial, coefficient in terms:
        term = _constant(int(coefficient * scale))
        exponents = dict(monomial)
        for atom, lowest_exponent in lowest.items():
            term = _multiply_power(term, factors[atom], exponents.get(atom, 0) - lowest_exponent)
        numerator = _apply("+", numerator, term)
    return Ratio(numerator, denominator, undefined)


def _atom(atom: Atom, names: Mapping[str, Column], undefined: Array) -> tuple[Column, Array]:
    """Evaluate an atom, whose arguments are integers. Also returns where its value is undefined."""
    if not atom.arguments:
        return names[atom.text], undefined
    arguments: list[Column] = []
    for terms in atom.arguments:
        argument = _ratio(terms, names, undefined)
        arguments.append(argument.numerator)
        undefined = argument.undefined
    if atom.kind == "()":
        return arguments[0], undefined
    if atom.kind in ("min", "max"):
        return _as_column(choose_extreme(atom.kind, arguments)), undefined
    left, right = arguments
    safe, is_zero = _divisor(right)
    return _apply(atom.kind, left, safe), undefined | is_zero


def _divisor(values: Column) -> tuple[Column, Array]:
    """Return divisors with 0 replaced by 1, and where they are 0."""
    is_zero = _apply("==", values, _constant(0))
    return _as_column(where(is_zero, 1, values)), is_zero.values


def _multiply_power(term: Column, factor: Column, exponent: int) -> Column:
    for _ in range(exponent):
        term = _apply("*", term, factor)
    return term


def _apply(sign: str, left: Column, right: Column) -> Column:
    return _as_column(apply_operator(sign, left, right))


def _as_column(value: object) -> Column:
    assert is_column(value)
    return value


def _constant(number: int) -> Column:
    return column([number])


def _broadcast(values: Column, length: int) -> Column:
    return Column(numpy().broadcast_to(values.values, (length,)), values.low, values.high)
