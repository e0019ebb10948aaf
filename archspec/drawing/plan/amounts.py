"""Amounts of work and of bytes: sums over bodies, values for given sizes, and their form as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

from archspec.core.algebra import Polynomial, multiply_unexpanded, weighted_sum
from archspec.core.algebra.terms import Atom, Terms
from archspec.core.diagnostics import ArchError
from archspec.ir.fold import passed_through_slot
from archspec.ir.index_ranges import check_sizes, dimensions
from archspec.ir.module import Body, Call, Type
from archspec.ir.origins import InputOrigins, Origin, Origins, is_from_weights
from archspec.ir.work import Quantity, multiply_by_iterations
from archspec.pipeline.model import Model, get_compilation

# The sizes of dimensions that a page starts with, and the largest that a model can run with.

DEFAULT_SIZE = 512
"""The first size of a dimension, unless it is the number of examples or the model is limited to fewer."""

UNLIMITED = 2**31
"""A model that can run with this size is taken to have no limit."""


def sizes_of(model: Model) -> dict[str, tuple[int, int | None]]:
    """Return the size that each dimension starts with, and the largest that the model can run with, if it has one."""
    body = get_compilation(model).body
    names = dimensions(body.inputs)
    found: dict[str, tuple[int, int | None]] = {}
    for name in names:
        largest = _largest(body, name, {other: found.get(other, (1, None))[0] for other in names})
        usual = 1 if name == "batch" else DEFAULT_SIZE
        found[name] = (usual if largest is None else min(usual, largest), largest)
    return found


def _largest(body: Body, name: str, sizes: Mapping[str, int]) -> int | None:
    """Return the largest size of a dimension at these sizes of the others; None if there is no limit."""
    if _runs(body, {**sizes, name: UNLIMITED}):
        return None
    valid, invalid = 1, UNLIMITED
    while invalid - valid > 1:
        middle = (valid + invalid) // 2
        if _runs(body, {**sizes, name: middle}):
            valid = middle
        else:
            invalid = middle
    return valid


def _runs(body: Body, sizes: Mapping[str, int]) -> bool:
    try:
        check_sizes(body, sizes)
    except ArchError:
        return False
    return True


BYTES = {"real": 4, "int": 8, "bool": 1}
"""Bytes of an element of a result."""

MAX_EXACT_INTEGER = 2**53
"""Integers from here on are not exact in JavaScript."""


class ByteSum:
    """Summation of the bytes of results, except those computed from weights alone; see `WorkSum`."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self.body: Callable[[Body, InputOrigins], Quantity] = cache(self._body_bytes)

    def call(self, call: Call, slots: Sequence[Origin]) -> Quantity:
        """Return the bytes of the results of all operations in an application; one that passes its input on has none.

        `slots` are the origins of the slots of the body with the call.
        """
        if passed_through_slot(call) is not None:
            return 0
        if call.body is not None:
            return self.body(call.body, self._origins.inputs(call, slots))
        if is_from_weights(call, slots):
            return 0
        return weighted_sum((tensor_bytes(type), 1) for type in call.outputs if type)

    def _body_bytes(self, body: Body, inputs: InputOrigins) -> Quantity:
        """Return the bytes of the results of all operations in a body, in all iterations of a loop."""
        slots = self._origins.slots(body, inputs)
        total = weighted_sum((self.call(call, slots), 1) for call in body.calls)
        return multiply_by_iterations(total, body)


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
