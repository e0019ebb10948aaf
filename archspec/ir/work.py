"""The work of a body: multiply-accumulates in matrix products, and elementwise operations.

Work is summed over calls; the work of a body that is applied several times is computed once. Operations on weights
alone are no work of a forward pass (`origins`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from archspec.core.algebra import Expression, multiply_unexpanded, weighted_sum
from archspec.core.record import Record
from archspec.ir.module import Body, BodyCache, Call, Constant, Operand, Type
from archspec.ir.ops import OPS, Op, element_type
from archspec.ir.origins import InputOrigins, Origin, Origins, is_from_weights

Quantity: TypeAlias = Expression
"""An exact amount: an integer of any size, or a sum of products of sizes."""


class Work(Record):
    """Multiply-accumulates in matrix products, and elementwise operations, as defined in `docs/costs.md`."""

    macs: Quantity
    elementwise: Quantity

    @property
    def flops(self) -> Quantity:
        """Floating point operations in matrix products: 2 per multiply-accumulate."""
        return 2 * self.macs


NO_WORK = Work(0, 0)


class WorkSum:
    """Summation of the work of bodies; each is processed once for each combination of origins of its inputs."""

    def __init__(self) -> None:
        self.origins = Origins()
        self.body: Callable[[Body, InputOrigins], Work] = cache(self._body_work)

    def call(self, call: Call, body: Body, slots: Sequence[Origin]) -> Work:
        """Return the work of one call in a body whose slots have these origins."""
        if call.body is not None:
            return self.body(call.body, self.origins.inputs(call, slots))
        return call_work(call, body, slots)

    def _body_work(self, body: Body, inputs: InputOrigins = ()) -> Work:
        """Return the total work of a body, including all nested bodies and all loop iterations."""
        slots = self.origins.slots(body, inputs)
        uses = Counter([(call.body, self.origins.inputs(call, slots)) for call in body.calls if call.body is not None])
        parts = [(self.body(*nested), number) for nested, number in uses.items()]
        parts += [(call_work(call, body, slots), 1) for call in body.calls if call.body is None]
        macs = weighted_sum((part.macs, number) for part, number in parts)
        elementwise = weighted_sum((part.elementwise, number) for part, number in parts)
        return Work(multiply_by_iterations(macs, body), multiply_by_iterations(elementwise, body))


def body_work(body: Body) -> Work:
    """Return the work of a body whose inputs are computed from the inputs of the model."""
    return WorkSum().body(body, ())


def multiply_by_iterations(amount: Quantity, body: Body) -> Quantity:
    """Multiply an amount by the iteration count if the body is a loop body."""
    return multiply_unexpanded((amount, body.loop.iterations)) if body.loop is not None else amount


_WORKS: BodyCache[Call, Work] = BodyCache()


def call_work(call: Call, body: Body, slots: Sequence[Origin]) -> Work:
    """Return the work of an operation in a body whose slots have these origins."""
    if is_from_weights(call, slots):
        return NO_WORK
    works = _WORKS.entries(body)
    work = works.get(call)
    if work is None:
        op, result = OPS[call.type], call.outputs[0]
        assert result is not None
        inputs = [operand_type(operand, body.types) for _, operand in call.inputs]
        work = works[call] = operation_work(op, inputs, result, call.attributes)
    return work


def operation_work(op: Op, inputs: Sequence[Type | None], result: Type, attributes: Mapping[str, object]) -> Work:
    """Return the work of an operation; `result` is the type of its first result.

    Work on ids, positions and masks is not elementwise work.
    """
    macs = multiply_unexpanded(op.macs(inputs, result, attributes)) if op.macs is not None else 0
    if result.dtype != "real":
        return Work(macs, 0)
    optional_inputs = sum(entry.optional and type is not None for entry, type in zip(op.inputs, inputs, strict=False))
    return Work(macs, multiply_unexpanded((op.work + optional_inputs, *op.work_sizes(inputs, result, attributes))))


def operand_type(operand: Operand, types: Sequence[Type]) -> Type | None:
    """Return the type of an operand; a number is a tensor without dimensions."""
    if isinstance(operand, Constant):
        return Type((), element_type(operand.value))
    return types[operand] if operand is not None else None
