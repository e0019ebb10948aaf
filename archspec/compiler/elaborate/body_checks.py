"""Checks of a body: tensors that it does not use, and repeated blocks that most likely lack a residual connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.values import Tensor, Value
from archspec.ir.fold import arguments, present_outputs, propagate_calls, propagate_forward, propagate_loop
from archspec.ir.module import (
    Body,
    Call,
    Member,
    Module,
    ModuleTensor,
    Operand,
    enclosing_members,
    iter_tensors,
)
from archspec.ir.ops import OPS
from archspec.language.syntax.tree import Located


def find_unused(module: Module, body: Body, discarded: Iterable[int]) -> list[str]:
    """Return the relative names of tensors of `module` that affect neither an output of `body` nor a `discarded` slot,
    one that the spec assigns to `_`.
    """
    live, applied = _live_slots(body, discarded)
    deep = {name for name, slot in body.weights if slot in live}
    for address, bodies in applied.items():
        if address not in module.members:  # a nested module, applied from here
            deep.update(_used_within(address, bodies))
    unused: list[str] = []
    for address, member in module.members.items():
        if member.unused:
            continue
        bodies = applied.get(address)
        if isinstance(member.target, ModuleTensor):
            names = [address]
        elif bodies is None:
            names = [f"{address}.{n}" for n, _ in iter_tensors(member.target) if not _is_marked_unused(member, n)]
        else:
            unread = _unread_tensors(bodies)
            names = [f"{address}.{n}" for n in bodies[0].unused if n in unread]
        unused += [n for n in names if n not in deep]
    return unused


def _live_slots(body: Body, discarded: Iterable[int]) -> tuple[set[int], dict[str, list[Body]]]:
    """Return the slots that affect an output or a `discarded` slot, and the bodies that do so, by address."""
    live = {*discarded, *[operand for _, operand in body.outputs if isinstance(operand, int)]}
    applied: dict[str, list[Body]] = {}
    for call in reversed(body.calls):
        if any(slot in live for _, slot in present_outputs(call)):
            inputs = call.inputs if call.kind != "loop" else _live_inputs(call)
            live.update([operand for _, operand in inputs if isinstance(operand, int)])
            if call.body is not None and call.body.module is not None:
                applied.setdefault(call.address, []).append(call.body)
    return live, applied


def _live_inputs(call: Call) -> list[tuple[str, Operand]]:
    """Return the inputs of a loop that affect an output of an iteration, or what is assigned to `_` in it."""
    assert call.body is not None
    live, _ = _live_slots(call.body, call.body.discarded)
    return [operand for slot, operand in enumerate(call.inputs) if slot in live]


def _unread_tensors(bodies: list[Body]) -> set[str]:
    """Return the tensors that none of several applications of a module reads."""
    unread = set(bodies[0].unused)
    for body in bodies[1:]:
        unread.intersection_update(body.unused)
    return unread


def _used_within(address: str, bodies: list[Body]) -> set[str]:
    unread = _unread_tensors(bodies)
    target = bodies[0].module
    assert target is not None
    return {f"{address}.{name}" for name, _ in iter_tensors(target) if name not in unread}


def _is_marked_unused(member: Member, name: str) -> bool:
    """Whether a declaration inside a module is marked `unused`."""
    return isinstance(member.target, Module) and any(m.unused for m, _ in enclosing_members(member.target, name))


# How a value depends on the one at the beginning of an iteration.
JOINED, KEPT, ONCE, DEEPER, INDEPENDENT = range(5)
"""Concatenated with what is computed from it; without weights; through one linear map; through several; not at all."""

_SILENCED = r"#\s*no-residual\b"


class ResidualCheck:
    """The check of one loop: which of the values that it carries have no residual connection in any iteration."""

    def __init__(self, interpreter: ApplicationInterpreter, at: Located) -> None:
        self.interpreter = interpreter
        self.at = at
        self._calls = len(interpreter.builder.body.calls)
        self._without: set[str] | None = None

    def iteration(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """Take in an iteration, with the values by name that were carried into it and out of it."""
        body = self.interpreter.builder.body
        calls = body.calls[self._calls :]
        self._calls += len(calls)
        if self._without is not None and not self._without:
            return
        names = set(after) if self._without is None else self._without
        if not any(call.kind == "block" for call in calls):
            names = set[str]()
        lacking = {name for name in names if _lacks_residual(calls, before[name], name, after)}
        self._without = set() if lacking and _takes_in(body, calls, before) else lacking

    def report(self) -> None:
        """Warn about the values that have no residual connection, after the last iteration."""
        unit = self.interpreter.unit
        for name in sorted(self._without or ()):
            text = unit.source.text
            if re.search(_SILENCED, text[self.at.start :].partition("\n")[0]):
                continue
            value = f"`{name}`" if name else "the piped value"
            self.interpreter.program.report.warn(
                "no-residual",
                f"no residual connection carries {value} from one iteration to the next",
                unit.span(self.at),
                help="add a residual connection, as in `|> + x`, or end this line with `# no-residual`",
            )


def _lacks_residual(calls: list[Call], first: Value, name: str, after: Mapping[str, Value]) -> bool:
    """Whether the new value of a name depends on the first only through weights, although the two could be added.

    A first value that reaches another carried value is not lost.
    """
    value = after[name]
    if not isinstance(value, Tensor) or not isinstance(first, Tensor):
        return False
    if value.type != first.type or value.type.dtype != "real":
        return False
    slots = _dependence(calls, [first.slot])
    if slots.get(value.slot, INDEPENDENT) == INDEPENDENT:
        return False
    return all(slots.get(other.slot, INDEPENDENT) > KEPT for other in after.values() if isinstance(other, Tensor))


def _takes_in(body: Body, calls: list[Call], before: Mapping[str, Value]) -> bool:
    """Whether an iteration combines carried values with inputs of its own, such as the next step of a sequence.

    This is a recurrence, or an earlier value that skips layers.
    """
    carried = [value.slot for value in before.values() if isinstance(value, Tensor)]
    slots = _dependence(calls, carried)
    outside = set(range(calls[0].first)) - {slot for _, slot in body.weights} - set(carried)
    taken: set[int] = set()
    for call in calls:
        given = [operand for _, operand in call.inputs if isinstance(operand, int)]
        depends = any(slots.get(slot, INDEPENDENT) != INDEPENDENT for slot in given)
        if depends and not taken.isdisjoint(given):
            return True
        if not depends and not (outside | taken).isdisjoint(given):
            taken.update(slot for _, slot in present_outputs(call))
    return False


def _dependence(calls: list[Call], start: Iterable[int]) -> dict[int, int]:
    """Return how slots depend on those at the start of an iteration."""
    slots = dict.fromkeys(start, KEPT)

    def value_of(operand: object) -> int:
        return slots.get(operand, INDEPENDENT) if isinstance(operand, int) else INDEPENDENT

    propagate_calls(calls, slots, value_of, _of_operation, _of_call)
    return slots


def _of_operation(call: Call, given: list[int]) -> list[int]:
    return [_of_result(call, given)] * len(call.outputs)


def _of_call(call: Call, given: list[int]) -> Sequence[int]:
    assert call.body is not None
    if min(given, default=INDEPENDENT) == INDEPENDENT:
        return [INDEPENDENT] * len(call.outputs)
    return _of_body(call.body, tuple(arguments(call, given)))


def _of_body(body: Body, inputs: tuple[int, ...]) -> Sequence[int]:
    """Return the dependence of the outputs of a body, which keeps it: many loops apply the same one."""
    known: dict[tuple[int, ...], Sequence[int]] = body.views.setdefault("dependence", {})
    if inputs not in known:
        found = _of_iteration(body, inputs)
        if body.loop is not None:
            found = propagate_loop(body.loop, inputs, lambda given: _of_iteration(body, given), min)
        known[inputs] = found
    return known[inputs]


def _of_iteration(body: Body, inputs: tuple[int, ...]) -> list[int]:
    return propagate_forward(body, inputs, _of_operation, _of_call, INDEPENDENT).outputs


def _of_result(call: Call, given: list[int]) -> int:
    """Return the dependence of the result of an operation.

    The sum of one linear map with what is deeper is a projected residual connection, and so is a linear map of both
    concatenated.
    """
    op = OPS[call.type]
    dependent = [value for value in given if value != INDEPENDENT]
    if not dependent:
        return INDEPENDENT
    least, most = min(dependent), max(dependent)
    if op.mixes:
        return min(least + 1, DEEPER)
    if op.symbol == "+" and (least, most) == (ONCE, DEEPER):
        return KEPT
    is_concatenation = any(input.variadic for input in op.inputs)
    return JOINED if is_concatenation and least == KEPT < most else least
