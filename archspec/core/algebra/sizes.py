"""Sizes of tensors: integers and polynomials with integer coefficients, within limits.

The results of operations and static values are checked, because sizes are compared often; arithmetic has no limits.
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
    """Return `dim`. Raises OverflowError if it exceeds 64 bits or is too large an expression for a size."""
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
    """Return the product of sizes (1 without any). Raises OverflowError as `check_size_limits` does."""
    number, result = 1, None
    for dim in dims:
        if isinstance(dim, Polynomial):
            result = dim if result is None else check_size_limits(result * dim)
        else:
            number *= dim
    return number if result is None else check_size_limits(number * result)


def split_multiple(size: Dim) -> tuple[int, str] | None:
    """Return the factor and the symbol of a size such as `80*seq` or `seq`; None for all other sizes."""
    if not isinstance(size, Polynomial) or len(size.terms) != 1:
        return None
    monomial, factor = size.terms[0]
    (atom, power), *others = monomial
    return (int(factor), atom.text) if not others and power == 1 and atom.kind == "symbol" else None
