"""Propagation of values through the calls of a body, from inputs to outputs or from outputs to inputs.

Every analysis that follows values through bodies uses these functions. It supplies the effect of an operation
(`visit_op`) and of the application of a definition (`visit_call`, often the same propagation through `call.body`).
Bodies are shared: an analysis caches its results by body and inputs with `functools.cache`, and may limit the number
of visited calls with a `VisitLimit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.module import Body, BodyCache, Call, Loop, Operand
from archspec.ir.ops import OPS

# Applications that return their input in evaluation mode, such as dropout.


def passed_through_slot(call: Call) -> int | None:
    """Return the slot that a call returns unchanged in evaluation mode; None if it computes a value."""
    if call.body is None:
        operand = call.inputs[0][1] if OPS[call.type].trains else None
    else:
        index = _passed_input(call.body)
        operand = dict(call.inputs)[call.body.inputs[index][0]] if index is not None else None
    return operand if isinstance(operand, int) else None


_PASSED: BodyCache[None, int | None] = BodyCache()


def _passed_input(body: Body) -> int | None:
    """Return the index of the input that a body without tensors returns unchanged in evaluation mode."""
    entries = _PASSED.entries(body)
    if None not in entries:
        entries[None] = _find_passed_input(body)
    return entries[None]


def _find_passed_input(body: Body) -> int | None:
    if len(body.outputs) != 1 or not body.calls or (body.module is not None and body.module.members):
        return None
    origins: dict[int, int] = {}
    for call in body.calls:
        slot = passed_through_slot(call)
        if slot is None:
            return None
        origins[call.first] = origins.get(slot, slot)
    result = body.outputs[0][1]
    return origins.get(result, result) if isinstance(result, int) else None


V = TypeVar("V")

MAX_VISITED_CALLS = 5_000_000
"""Maximum number of calls that an analysis visits."""

Visit: TypeAlias = Callable[[Call, list[V]], Sequence[V]]
"""A function from the values of a call's inputs to the values of its outputs, or reversed for `propagate_backward`."""


class ForwardResult(Record, Generic[V]):
    """The values of a body's slots, and of its outputs in order."""

    slots: list[V]
    outputs: list[V]


class VisitLimit:
    """Limits the number of calls that an analysis visits; a body is visited once per context."""

    def __init__(self) -> None:
        self._left = MAX_VISITED_CALLS

    def count_calls(self, body: Body) -> None:
        """Count the calls of one body. Raises ArchError if the total exceeds the limit."""
        self._left -= len(body.calls)
        if self._left < 0:
            message = f"too many applications to follow values through: the limit is {MAX_VISITED_CALLS:,}"
            raise make_error("budget", message)


def propagate_forward(
    body: Body,
    inputs: Sequence[V],
    visit_op: Visit[V],
    visit_call: Visit[V],
    absent: V,
    constant: Callable[[object], V] | None = None,
    weight: Callable[[str], V] | None = None,
    budget: VisitLimit | None = None,
) -> ForwardResult[V]:
    """Propagate values forward through a body, from its inputs.

    `constant` and `weight` return the values of numbers and of tensors (by relative name). `absent` is the value of
    absent operands, and of numbers and tensors without a function for them. Raises ArchError if the calls exceed
    `budget`.
    """
    if budget is not None:
        budget.count_calls(body)
    slots = [absent] * len(body.types)
    slots[: len(inputs)] = inputs
    if weight is not None:
        for name, slot in body.weights:
            slots[slot] = weight(name)

    def value_of(operand: Operand) -> V:
        if isinstance(operand, int):
            return slots[operand]
        return constant(operand.value) if operand is not None and constant is not None else absent

    propagate_calls(body.calls, slots, value_of, visit_op, visit_call)
    return ForwardResult(slots, [value_of(operand) for _, operand in body.outputs])


def propagate_calls(
    calls: Iterable[Call],
    slots: list[V] | dict[int, V],
    value_of: Callable[[Operand], V],
    visit_op: Visit[V],
    visit_call: Visit[V],
) -> None:
    """Compute the slots that calls fill; see `propagate_forward`."""
    for call in calls:
        operands = [value_of(operand) for _, operand in call.inputs]
        results = visit_op(call, operands) if call.body is None else visit_call(call, operands)
        for i, slot in present_outputs(call):
            slots[slot] = results[i]


def propagate_backward(
    body: Body,
    outputs: Sequence[V],
    visit_op: Visit[V],
    visit_call: Visit[V],
    absent: V,
    join: Callable[[V, V], V],
    budget: VisitLimit | None = None,
) -> list[V]:
    """Propagate values backward through a body, from its outputs; the values of all uses of a slot are joined."""
    if budget is not None:
        budget.count_calls(body)
    slots = [absent] * len(body.types)

    def add(operands: Iterable[tuple[str, Operand]], values: Sequence[V]) -> None:
        for (_, operand), value in zip(operands, values, strict=True):
            if isinstance(operand, int):
                slots[operand] = join(slots[operand], value)

    add(body.outputs, outputs)
    for call in reversed(body.calls):
        results = [absent] * len(call.outputs)
        for i, slot in present_outputs(call):
            results[i] = slots[slot]
        add(call.inputs, visit_op(call, results) if call.body is None else visit_call(call, results))
    return slots


def propagate_loop(
    loop: Loop, inputs: Sequence[V], outputs: Callable[[tuple[V, ...]], Sequence[V]], join: Callable[[V, V], V]
) -> list[V]:
    """Propagate values through a loop until they no longer change; requires a join that reaches a fixed point.

    `outputs` returns the values after an iteration from the values of its inputs. A carried value is joined with its
    value after each iteration, and the result includes the initial value, because there may be no iteration.
    """
    values = list(inputs)
    while True:
        results = list(outputs(tuple(values)))
        carried = [join(a, b) for a, b in zip(values, results[: loop.carried], strict=False)]
        if carried == values[: loop.carried]:
            return [*carried, *results[loop.carried :]]
        values[: loop.carried] = carried


def present_outputs(call: Call) -> Sequence[tuple[int, int]]:
    """Return the index and the slot of each output that is present."""
    if len(call.outputs) == 1:  # the common case
        return ((0, call.first),) if call.outputs[0] is not None else ()
    present = [i for i, type in enumerate(call.outputs) if type is not None]
    return list(zip(present, range(call.first, call.first + len(present)), strict=True))


def arguments(call: Call, values: Sequence[V]) -> list[V]:
    """Return the values of the inputs of the applied body, from the values of the call's inputs."""
    assert call.body is not None
    by_name = {name: value for (name, _), value in zip(call.inputs, values, strict=True)}
    return [by_name[name] for name, _ in call.body.inputs]


def has_choices(body: Body) -> bool:
    """Whether a body chooses indices at any depth; without a choice, each token uses all parameters."""
    seen = {body}
    pending = [body]
    for current in pending:
        for call in current.calls:
            if call.body is None:
                if OPS[call.type].chooses is not None:
                    return True
            elif call.body not in seen:
                seen.add(call.body)
                pending.append(call.body)
    return False
