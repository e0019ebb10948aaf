"""Folds over the calls of a body: a value for every slot, from inputs to outputs or from outputs to inputs.

Every analysis that follows values through bodies is one of these folds. It supplies what an operation does
(`visit_op`) and what the application of a definition does (`visit_call`: usually the same fold over `call.body`).
Bodies are shared, so an analysis keeps its results by body and inputs with `functools.cache`, and may limit with a
`VisitLimit` how many calls it visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.module import Body, Call, Loop, Operand
from archspec.ir.ops import OPS

# Applications that only act in training, such as dropout: in evaluation, they return their input.


def passed_through_slot(call: Call) -> int | None:
    """Return the slot that a call passes on unchanged in evaluation; None if it computes something."""
    if call.body is None:
        operand = call.inputs[0][1] if OPS[call.type].trains else None
    else:
        place = _passed_input(call.body)
        operand = dict(call.inputs)[call.body.inputs[place][0]] if place is not None else None
    return operand if isinstance(operand, int) else None


def _passed_input(body: Body) -> int | None:
    """Return the position of the input that a body without tensors returns after operations of training alone."""
    if "passed" not in body.views:
        body.views["passed"] = _find_input(body)
    found: int | None = body.views["passed"]
    return found


def _find_input(body: Body) -> int | None:
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
"""The limit on calls that an analysis visits."""

Visit: TypeAlias = Callable[[Call, list[V]], Sequence[V]]
"""From the values of a call's inputs to those of its outputs, in order; in `fold_back` the other way round."""


class ForwardResult(Record, Generic[V]):
    """The values of a body's slots, and of its outputs in order."""

    slots: list[V]
    outputs: list[V]


class VisitLimit:
    """Limits the number of calls that an analysis visits; a body is visited once per context."""

    def __init__(self) -> None:
        self._left = MAX_VISITED_CALLS

    def spend(self, body: Body) -> None:
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

    `constant` and `weight` give the values of numbers and of tensors (by relative name). `absent` is the value of
    absent operands, and of numbers and tensors if there is no function for them. Raises ArchError if that exceeds the
    budget.
    """
    if budget is not None:
        budget.spend(body)
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
    """Sets the slots that calls fill; see `fold_body`."""
    for call in calls:
        given = [value_of(operand) for _, operand in call.inputs]
        results = visit_op(call, given) if call.body is None else visit_call(call, given)
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
        budget.spend(body)
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

    `outputs` gives the values after an iteration from those of its inputs. A value that is carried is joined with the
    one after each iteration, and so is what comes out: there may be no iteration.
    """
    given = list(inputs)
    while True:
        found = list(outputs(tuple(given)))
        carried = [join(a, b) for a, b in zip(given, found[: loop.carried], strict=False)]
        if carried == given[: loop.carried]:
            return [*carried, *found[loop.carried :]]
        given[: loop.carried] = carried


def present_outputs(call: Call) -> Sequence[tuple[int, int]]:
    """The position and the slot of each output that is not absent."""
    if len(call.outputs) == 1:  # as nearly always
        return ((0, call.first),) if call.outputs[0] is not None else ()
    present = [i for i, type in enumerate(call.outputs) if type is not None]
    return list(zip(present, range(call.first, call.first + len(present)), strict=True))


def arguments(call: Call, given: Sequence[V]) -> list[V]:
    """The values of the inputs of the body that a call applies, from those of the call's inputs."""
    assert call.body is not None
    by_name = {name: value for (name, _), value in zip(call.inputs, given, strict=True)}
    return [by_name[name] for name, _ in call.body.inputs]


def has_choices(body: Body) -> bool:
    """Whether indices are chosen anywhere in a body: without that, all parameters are used for each token."""
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
