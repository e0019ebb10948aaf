"""Warnings about repeated blocks without a residual connection: values pass through them only by way of weights."""

from __future__ import annotations

from functools import cache
from typing import Any

from archspec.bodies.fold import arguments, fold_body, fold_calls
from archspec.elaborate.application import Applications
from archspec.elaborate.values import Tensor
from archspec.ir import Body, Call
from archspec.ops import OPS
from archspec.syntax.node import Located


def warn_without_residual(
    interpreter: Applications, start: int, before: dict[str, Any], after: dict[str, Any], at: Located
) -> None:
    """Warn if the applications since `start` include a block and carry a value forward only through weights."""
    calls = interpreter.builder.body.calls[start:]
    if not any(c.kind == "block" for c in calls):
        return
    for name, value in after.items():
        first = before[name]
        if not isinstance(value, Tensor) or not isinstance(first, Tensor) or value.slot == first.slot:
            continue
        if _reaches(interpreter, calls, first.slot, value.slot, through_weights=True) and not _reaches(
            interpreter, calls, first.slot, value.slot, through_weights=False
        ):
            stream = f"`{name}`" if name else "the piped value"
            interpreter.program.report.warn(
                "no-residual",
                f"no residual connection carries {stream} from one iteration to the next",
                interpreter.unit.span(at),
                help="add a residual connection, as in `|> + x`",
            )


def _reaches(interpreter: Applications, calls: list[Call], start: int, end: int, through_weights: bool) -> bool:
    """Whether one slot depends on another without an operation that mixes, such as a linear layer."""
    slots = [False] * len(interpreter.builder.body.types)
    slots[start] = True

    def visit_op(call: Call, given: list[bool]) -> list[bool]:
        return [any(given) and (through_weights or not OPS[call.type].mixes)] * len(call.outputs)

    def visit_call(call: Call, given: list[bool]) -> list[bool]:
        assert call.body is not None
        return outputs(call.body, tuple(arguments(call, given))) if any(given) else [False] * len(call.outputs)

    @cache
    def outputs(body: Body, inputs: tuple[bool, ...]) -> list[bool]:
        return fold_body(body, inputs, visit_op, visit_call, False).outputs

    fold_calls(calls, slots, lambda operand: isinstance(operand, int) and slots[operand], visit_op, visit_call)
    return slots[end]
