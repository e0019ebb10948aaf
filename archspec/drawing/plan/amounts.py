"""Amounts of work and of bytes: sums over bodies, values for given sizes, and their form as data."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from archspec.core.algebra import Polynomial, multiply_unexpanded, weighted_sum
from archspec.core.algebra.terms import Atom, Terms
from archspec.ir.evaluation import passed_through_slot
from archspec.ir.module import Body, Call, Type
from archspec.ir.work import Quantity, multiply_by_iterations

BYTES = {"real": 4, "int": 8, "bool": 1}
"""Bytes of an element of a result."""

MAX_EXACT_INTEGER = 2**53
"""Integers from here on are not exact in JavaScript."""


def result_bytes(call: Call) -> Quantity:
    """Return the bytes of the results of all operations in an application; one that passes its input on has none."""
    if passed_through_slot(call) is not None:
        return 0
    return (
        body_bytes(call.body)
        if call.body is not None
        else weighted_sum((tensor_bytes(type), 1) for type in call.outputs if type)
    )


def body_bytes(body: Body) -> Quantity:
    """Return the bytes of the results of all operations in a body, in all iterations of a loop."""
    known: Quantity | None = body.views.get("bytes")
    if known is None:
        times = Counter([call.body or call for call in body.calls if passed_through_slot(call) is None])
        parts = [(body_bytes(one) if isinstance(one, Body) else result_bytes(one), n) for one, n in times.items()]
        known = body.views["bytes"] = multiply_by_iterations(weighted_sum(parts), body)
    return known


@lru_cache(1024)  # the types of a model are few
def tensor_bytes(type: Type) -> Quantity:
    """Return the bytes of a tensor."""
    return multiply_unexpanded((BYTES[type.dtype], *type.shape))


def amount_data(amount: Quantity) -> object:
    """Return an amount as data for JSON: a number or a list of terms."""
    if isinstance(amount, Polynomial):
        return _terms(amount.terms)
    return _integer(amount)


def _terms(terms: Terms) -> list[object]:
    found: list[object] = []
    for monomial, coefficient in terms:
        factors = [[_factor(atom), exponent] for atom, exponent in monomial]
        found.append([_integer(int(coefficient)), factors])
    return found


def _factor(atom: Atom) -> object:
    if not atom.arguments:
        return atom.text
    arguments = [_terms(argument) for argument in atom.arguments]
    return ["+", *arguments] if atom.kind == "()" else [atom.kind, *arguments]


def _integer(number: int) -> int | str:
    return number if abs(number) < MAX_EXACT_INTEGER else str(number)
