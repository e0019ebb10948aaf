"""Repeated blocks whose piped value reaches their output only through weights: most likely a forgotten residual."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from archspec.bodies.fold import arguments, fold_body, fold_calls, fold_loop
from archspec.elaborate.application import Applications
from archspec.elaborate.values import Tensor, Value
from archspec.ir import Body, Call
from archspec.ops import OPS
from archspec.syntax.tree import Located


class ResidualCheck:
    """The check of one loop: which of the values that it carries have no residual connection in any iteration."""

    def __init__(self, interpreter: Applications, at: Located) -> None:
        self.interpreter = interpreter
        self.at = at
        self._calls = len(interpreter.builder.body.calls)
        self._without: set[str] | None = None

    def iteration(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """Take in an iteration, with the values by name that were carried into it and out of it."""
        calls = self.interpreter.builder.body.calls[self._calls :]
        self._calls += len(calls)
        names = set(after) if self._without is None else self._without
        has_block = any(call.kind == "block" for call in calls)
        self._without = {name for name in names if has_block and _lacks_residual(calls, before[name], name, after)}

    def report(self) -> None:
        """Warn about the values that have no residual connection, after the last iteration."""
        for name in sorted(self._without or ()):
            value = f"`{name}`" if name else "the piped value"
            self.interpreter.program.report.warn(
                "no-residual",
                f"no residual connection carries {value} from one iteration to the next",
                self.interpreter.unit.span(self.at),
                help="add a residual connection, as in `|> + x`",
            )


def _lacks_residual(calls: list[Call], first: Value, name: str, after: Mapping[str, Value]) -> bool:
    """Whether the new value of a name depends on the first only through weights, although the two could be added.

    A first value that reaches another carried value is not lost.
    """
    value = after[name]
    if not isinstance(value, Tensor) or not isinstance(first, Tensor):
        return False
    if value.type != first.type or value.type.dtype != "real" or not _reached(calls, first.slot, True).get(value.slot):
        return False
    kept = _reached(calls, first.slot, False)
    return not any(isinstance(other, Tensor) and kept.get(other.slot) for other in after.values())


def _reached(calls: list[Call], start: int, through_weights: bool) -> dict[int, bool]:
    """Return the slots that depend on one; without weights, not through operations that mix (linear layers, ...)."""
    slots = {start: True}

    def visit_op(call: Call, given: list[bool]) -> list[bool]:
        return [any(given) and (through_weights or not OPS[call.type].mixes)] * len(call.outputs)

    def visit_call(call: Call, given: list[bool]) -> list[bool]:
        assert call.body is not None
        return outputs(call.body, tuple(arguments(call, given))) if any(given) else [False] * len(call.outputs)

    @cache
    def outputs(body: Body, inputs: tuple[bool, ...]) -> list[bool]:
        def once(inputs: tuple[bool, ...]) -> list[bool]:
            return fold_body(body, inputs, visit_op, visit_call, False).outputs

        return once(inputs) if body.loop is None else fold_loop(body.loop, inputs, once, bool.__or__)

    fold_calls(calls, slots, lambda o: isinstance(o, int) and slots.get(o, False), visit_op, visit_call)
    return slots
