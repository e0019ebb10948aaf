"""Normal forms of elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from archspec.core.algebra import Polynomial, dim_max

if TYPE_CHECKING:
    from archspec.ir.normal.elements import Elements
    from archspec.ir.normal.nodes import Element

Each: TypeAlias = "Callable[..., Element]"


def constant(e: Elements, value: object, dtype: str = "") -> Element:
    """A number, boolean or size; as a real if that is the type."""
    if isinstance(value, bool):
        return e.boolean(value)
    if isinstance(value, float):
        return e.number(value)
    assert isinstance(value, int | Polynomial)
    element = e.integer(value)
    return e.real(element) if dtype == "real" else element


def _are_integers(e: Elements, *parts: Element) -> bool:
    return all(e.dtype(part) == "int" for part in parts)


def negate(e: Elements, x: Element) -> Element:
    return e.integer(-e.polynomial(x)) if _are_integers(e, x) else e.combination([(-1.0, e.real(x))])


def add(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b):
        return e.integer(e.polynomial(a) + e.polynomial(b))
    return e.combination([(1.0, e.real(a)), (1.0, e.real(b))])


def subtract(e: Elements, a: Element, b: Element) -> Element:
    return add(e, a, negate(e, b))


def multiply(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b):
        return e.integer(e.polynomial(a) * e.polynomial(b))
    return e.product([(e.real(a), 1.0), (e.real(b), 1.0)])


def divide(e: Elements, a: Element, b: Element) -> Element:
    return e.product([(e.real(a), 1.0), (e.real(b), -1.0)])


def floor_divide(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b) and (divisor := e.polynomial(b)) != 0:
        return e.integer(e.polynomial(a) // divisor)
    return _applied(e, "floor_divide", a, b)


def remainder(e: Elements, a: Element, b: Element) -> Element:
    if _are_integers(e, a, b) and (divisor := e.polynomial(b)) != 0:
        return e.integer(e.polynomial(a) % divisor)
    return _applied(e, "remainder", a, b)


def _applied(e: Elements, name: str, a: Element, b: Element) -> Element:
    """A function that has no other form, of two integers or two reals."""
    return e.apply(name, (a, b), "int") if _are_integers(e, a, b) else e.apply(name, (e.real(a), e.real(b)), "real")


def power(e: Elements, a: Element, b: Element) -> Element:
    exponent = e.as_number(b)
    if _are_integers(e, a, b):
        if exponent is not None and 0 <= exponent <= 8:
            return e.integer(e.polynomial(a) ** int(exponent))
    elif exponent is not None and math.isfinite(exponent):
        return e.product([(e.real(a), exponent)])
    return _applied(e, "pow", a, b)


def square_root(e: Elements, x: Element) -> Element:
    return e.product([(e.real(x), 0.5)])


def absolute(e: Elements, x: Element) -> Element:
    if _are_integers(e, x):
        value = e.polynomial(x)
        return e.integer(dim_max(value, -value))
    return e.apply("abs", (x,), "real")


def smaller(e: Elements, a: Element, b: Element) -> Element:
    return e.extreme("min", a, b)


def larger(e: Elements, a: Element, b: Element) -> Element:
    return e.extreme("max", a, b)


def to_real(e: Elements, x: Element) -> Element:
    return e.real(x)


def to_integer(e: Elements, x: Element) -> Element:
    return _rounded(e, "int", x) if e.dtype(x) == "real" else e.integer(e.polynomial(x))


def floor(e: Elements, x: Element) -> Element:
    return _rounded(e, "floor", x) if e.dtype(x) == "real" else x


def _rounded(e: Elements, name: str, x: Element) -> Element:
    """An integer near a real, which is the real itself if that was an integer."""
    integer = e.as_integer(x)
    return e.apply(name, (x,), "int") if integer is None else e.integer(integer)


def equal(e: Elements, a: Element, b: Element) -> Element:
    if e.dtype(a) == e.dtype(b) == "bool":
        both, neither = e.conjunction([a, b]), e.conjunction([e.negation(a), e.negation(b)])
        return e.disjunction([both, neither])
    if _is_infinite(e, a, b):
        return e.apply("eq", (e.real(a), e.real(b)), "bool", commutes=True)
    return e.is_zero(subtract(e, a, b))


def _is_infinite(e: Elements, *parts: Element) -> bool:
    """Whether there is an infinite number in elements: their difference does not say how they compare."""
    return any(e.nodes[part].infinite for part in parts)


def unequal(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(equal(e, a, b))


def greater_or_equal(e: Elements, a: Element, b: Element) -> Element:
    if _is_infinite(e, a, b):
        return e.apply("ge", (e.real(a), e.real(b)), "bool")
    return e.at_least_zero(subtract(e, a, b))


def less_or_equal(e: Elements, a: Element, b: Element) -> Element:
    return greater_or_equal(e, b, a)


def greater(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(greater_or_equal(e, b, a))


def less(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(greater_or_equal(e, a, b))


def both(e: Elements, a: Element, b: Element) -> Element:
    return e.conjunction([a, b])


def either(e: Elements, a: Element, b: Element) -> Element:
    return e.disjunction([a, b])


def opposite(e: Elements, x: Element) -> Element:
    return e.negation(x)


def choose(e: Elements, condition: Element, a: Element, b: Element) -> Element:
    return e.where(condition, a, b)
