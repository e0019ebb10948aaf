"""Repeated blocks whose stream reaches its output only through weights: most likely a forgotten residual connection."""

from __future__ import annotations

from typing import Any

from archspec.elaborate.application import Applications
from archspec.elaborate.values import Tensor
from archspec.ir import Body, Call
from archspec.ops import OPS


def warn_without_residual(
    interpreter: Applications, start: int, before: dict[str, Any], after: dict[str, Any], at: Any
) -> None:
    """Warns if the applications since `start` include a block and carry a value forward through weights only."""
    calls = interpreter.builder.body.calls[start:]
    if not any(c.kind == "block" for c in calls):
        return
    for name, value in after.items():
        first = before[name]
        if not isinstance(value, Tensor) or not isinstance(first, Tensor) or value.slot == first.slot:
            continue
        if value.slot in _reached(calls, {first.slot}, through_weights=True) and value.slot not in _reached(
            calls, {first.slot}, through_weights=False
        ):
            stream = f"`{name}`" if name else "the piped value"
            interpreter.program.report.warn(
                "no-residual",
                f"no residual connection carries {stream} from one iteration to the next",
                interpreter.unit.span(at),
                help="add a residual connection, as in `|> + x`",
            )


def _reached(calls: list[Call], slots: set[int], through_weights: bool) -> set[int]:
    """The slots that depend on `slots`, not counting ways through operations that mix (linear layers and the like)."""
    reached = set(slots)
    for call in calls:
        operands = [(name, o) for name, o in call.inputs if isinstance(o, int) and o in reached]
        if not operands:
            continue
        if call.body is None:
            passes = through_weights or not OPS[call.type].mixes
            outputs = list(range(call.first, call.first + len(call.outputs))) if passes else []
        else:
            outputs = _through_body(call, {name for name, _ in operands}, through_weights)
        reached.update(outputs)
    return reached


def _through_body(call: Call, names: set[str], through_weights: bool) -> list[int]:
    assert call.body is not None
    body: Body = call.body
    slots = {i for i, (name, _) in enumerate(body.inputs) if name in names}
    inside = _reached(body.calls, slots, through_weights)
    present = [o for _, o in body.outputs if o is not None]
    return [call.first + i for i, operand in enumerate(present) if operand in inside]
