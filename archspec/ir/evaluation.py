"""Applications that only act in training, such as dropout: in evaluation, they return their input."""

from __future__ import annotations

from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS


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
