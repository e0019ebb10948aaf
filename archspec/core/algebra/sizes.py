"""Sizes of tensors: integers and polynomials with integer coefficients, within limits.

Arithmetic itself goes beyond these limits. What operations and static values come to is checked against them, so that
sizes stay small enough to be compared all the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from archspec.core.algebra.polynomial import Expression, Polynomial
from archspec.core.algebra.terms import degree, size_of

MAX_SIZE = 2**63 - 1
MAX_EXPRESSION_NODES = 64
MAX_DEGREE = 16

Dim: TypeAlias = Expression
"""A size, or a static integer: a number or an expression of symbols."""


def check_size_limits(dim: Dim) -> Dim:
    """`dim` itself. Raises OverflowError if it is no 64-bit integer, or too large an expression for a size."""
    if isinstance(dim, Polynomial):
        terms = dim.terms
        if degree(terms[0][0]) > MAX_DEGREE or size_of(terms) > MAX_EXPRESSION_NODES:
            raise OverflowError("this dimension is too large an expression")
        largest = max([abs(coefficient) for _, coefficient in terms])
    else:
        largest = abs(dim)
    if largest > MAX_SIZE:
        raise OverflowError("this dimension does not fit in 64 bits")
    return dim


def product(dims: Iterable[Dim]) -> Dim:
    """The product of sizes, 1 if there are none. Raises OverflowError as `checked`."""
    number, result = 1, None
    for dim in dims:
        if isinstance(dim, Polynomial):
            result = dim if result is None else check_size_limits(result * dim)
        else:
            number *= dim
    return number if result is None else check_size_limits(number * result)


def split_multiple(size: Dim) -> tuple[int, str] | None:
    """The factor and the symbol of a size such as `80*seq`, or of one that is a symbol; None for any other size."""
    if not isinstance(size, Polynomial) or len(size.terms) != 1:
        return None
    monomial, factor = size.terms[0]
    (atom, power), *others = monomial
    return (int(factor), atom.text) if not others and power == 1 and atom.kind == "symbol" else None
