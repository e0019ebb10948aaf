"""Terms: what bodies compute, with sums and products in one order, for comparison with known computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from archspec.core.algebra import Polynomial
from archspec.core.record import Record
from archspec.ir.fold import arguments, propagate_forward
from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS

MAX_CALLS = 24
"""Maximum number of operations in a term."""


class Term(Record):
    """The computation of a value: an operation with its hyperparameters, of parts that are terms or numbers.

    Inputs and tensors are operations without parts; their number or name is the hyperparameter.
    """

    op: str
    settings: tuple[object, ...] = ()
    parts: tuple[object, ...] = ()


X = Term("input", (0,))
UNKNOWN = Term("unknown")
"""The results of layers, blocks and functions with several results, which are not followed."""


def term_of(body: Body) -> object:
    """Return the term of the only output of a body; None if it has more outputs or operations."""
    if len(body.outputs) != 1 or body.size > MAX_CALLS:
        return None
    return _term_of(body, [Term("input", (i,)) for i in range(len(body.inputs))])


def _term_of(body: Body, inputs: Sequence[object]) -> object:
    return propagate_forward(body, inputs, _operation, _application, None, _number, _weight).outputs[0]


def _weight(address: str) -> Term:
    return Term("weight", (address,))


def _operation(call: Call, operands: list[object]) -> list[object]:
    settings = tuple(sorted((k, _number(v)) for k, v in call.attributes.items()))
    return [operation_term(call.type, *operands, settings=settings), *[UNKNOWN] * (len(call.outputs) - 1)]


def _application(call: Call, operands: list[object]) -> list[object]:
    if call.body is None or call.body.loop is not None or call.address or len(call.outputs) != 1:
        return [UNKNOWN] * len(call.outputs)
    return [_term_of(call.body, arguments(call, operands))]


def _number(value: object) -> object:
    """Return integers as reals, and symbols as text, so that equal values compare equal."""
    if isinstance(value, Polynomial):
        return str(value)
    if isinstance(value, tuple):
        return tuple([_number(v) for v in cast("tuple[object, ...]", value)])
    return float(value) if isinstance(value, int) else value


def operation_term(name: str, *parts: object, settings: tuple[object, ...] = ()) -> Term:
    """Return the term of an operation, whose parts may be terms of the same operation."""
    op = OPS[name]
    flat: list[object] = []
    for part in parts:
        flat += part.parts if op.associative and isinstance(part, Term) and part.op == name else [part]
    return Term(name, settings, tuple(sorted(flat, key=repr) if op.commutative else flat))


def is_lower_triangle(body: Body) -> bool:
    """Whether a body without inputs returns [n, n], true where the row is not before the column, for any n."""
    shape = body.results[0].shape if len(body.results) == 1 and body.results[0] is not None else ()
    if body.inputs or len(shape) != 2 or shape[0] != shape[1]:
        return False
    size = _number(shape[0])
    count = Term("arange", (("stop", size),))
    rows = Term("reshape", (("shape", (size, 1.0)),), (count,))
    return term_of(body) in (operation_term("ge", rows, count), operation_term("le", count, rows))
