"""Checks of a body: unused tensors, and repeated blocks without a residual connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.values import Tensor, Value
from archspec.ir.fold import arguments, present_outputs, propagate_calls, propagate_forward, propagate_loop
from archspec.ir.module import (
    Body,
    BodyCache,
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
    """Return the relative names of the tensors of `module` that do not affect an output of `body`.

    A slot in `discarded`, which the spec assigns to `_`, counts as an output.
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
    """Return the slots that affect an output or a `discarded` slot, and the bodies of modules that do, by address."""
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
    """Return the inputs of a loop that affect an output of an iteration, or a value assigned to `_` in it."""
    assert call.body is not None
    live, _ = _live_slots(call.body, call.body.discarded)
    return [operand for slot, operand in enumerate(call.inputs) if slot in live]


def _unread_tensors(bodies: list[Body]) -> set[str]:
    """Return the tensors that no application of a module reads."""
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


# Dependence of a value on a value at the beginning of an iteration.
CONCATENATED, DIRECT, ONE_MAP, SEVERAL_MAPS, INDEPENDENT = range(5)
"""Concatenated with a value computed from it; without weights; through one linear map; through several; none."""

_SUPPRESSION = r"#\s*no-residual\b"


class ResidualCheck:
    """The check of one loop for carried values without a residual connection in any iteration."""

    def __init__(self, interpreter: ApplicationInterpreter, location: Located) -> None:
        self.interpreter = interpreter
        self.location = location
        self._calls = len(interpreter.builder.body.calls)
        self._lacking: set[str] | None = None

    def add_iteration(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> None:
        """Add an iteration, with the carried values by name before and after it."""
        body = self.interpreter.builder.body
        calls = body.calls[self._calls :]
        self._calls += len(calls)
        if self._lacking is not None and not self._lacking:
            return
        names = set(after) if self._lacking is None else self._lacking
        if not any(call.kind == "block" for call in calls):
            names = set[str]()
        lacking = {name for name in names if _lacks_residual(calls, before[name], name, after)}
        self._lacking = set() if lacking and _combines_inputs(body, calls, before) else lacking

    def report(self) -> None:
        """Warn about the values that have no residual connection, after the last iteration."""
        unit = self.interpreter.unit
        for name in sorted(self._lacking or ()):
            text = unit.source.text
            if re.search(_SUPPRESSION, text[self.location.start :].partition("\n")[0]):
                continue
            value = f"`{name}`" if name else "the piped value"
            self.interpreter.program.report.warn(
                "no-residual",
                f"no residual connection carries {value} from one iteration to the next",
                unit.span(self.location),
                help="add a residual connection, as in `|> + x`, or end this line with `# no-residual`",
            )


def _lacks_residual(calls: list[Call], first: Value, name: str, after: Mapping[str, Value]) -> bool:
    """Whether the new value of a name depends on the first value only through weights, although they could be added.

    The first value is not lost if it reaches a different carried value.
    """
    value = after[name]
    if not isinstance(value, Tensor) or not isinstance(first, Tensor):
        return False
    if value.type != first.type or value.type.dtype != "real":
        return False
    slots = _find_dependence(calls, [first.slot])
    if slots.get(value.slot, INDEPENDENT) == INDEPENDENT:
        return False
    return all(
        slots.get(carried.slot, INDEPENDENT) > DIRECT for carried in after.values() if isinstance(carried, Tensor)
    )


def _combines_inputs(body: Body, calls: list[Call], before: Mapping[str, Value]) -> bool:
    """Whether an iteration combines carried values with its own inputs, such as the next step of a sequence.

    This is a recurrence, or a skip connection from an earlier layer.
    """
    carried = [value.slot for value in before.values() if isinstance(value, Tensor)]
    slots = _find_dependence(calls, carried)
    outside = set(range(calls[0].first)) - {slot for _, slot in body.weights} - set(carried)
    derived: set[int] = set()
    for call in calls:
        operands = [operand for _, operand in call.inputs if isinstance(operand, int)]
        depends = any(slots.get(slot, INDEPENDENT) != INDEPENDENT for slot in operands)
        if depends and not derived.isdisjoint(operands):
            return True
        if not depends and not (outside | derived).isdisjoint(operands):
            derived.update(slot for _, slot in present_outputs(call))
    return False


def _find_dependence(calls: list[Call], start: Iterable[int]) -> dict[int, int]:
    """Return the dependence of slots on the `start` slots of an iteration."""
    slots = dict.fromkeys(start, DIRECT)

    def value_of(operand: object) -> int:
        return slots.get(operand, INDEPENDENT) if isinstance(operand, int) else INDEPENDENT

    propagate_calls(calls, slots, value_of, _operation_dependence, _call_dependence)
    return slots


def _operation_dependence(call: Call, operands: list[int]) -> list[int]:
    return [_result_dependence(call, operands)] * len(call.outputs)


def _call_dependence(call: Call, operands: list[int]) -> Sequence[int]:
    assert call.body is not None
    if min(operands, default=INDEPENDENT) == INDEPENDENT:
        return [INDEPENDENT] * len(call.outputs)
    return _body_dependence(call.body, tuple(arguments(call, operands)))


_DEPENDENCES: BodyCache[tuple[int, ...], Sequence[int]] = BodyCache()


def _body_dependence(body: Body, inputs: tuple[int, ...]) -> Sequence[int]:
    """Return the dependence of the outputs of a body, cached: many loops apply the same body."""
    cached = _DEPENDENCES.entries(body)
    if inputs not in cached:
        outputs = _iteration_dependence(body, inputs)
        if body.loop is not None:
            outputs = propagate_loop(body.loop, inputs, lambda carried: _iteration_dependence(body, carried), min)
        cached[inputs] = outputs
    return cached[inputs]


def _iteration_dependence(body: Body, inputs: tuple[int, ...]) -> list[int]:
    return propagate_forward(body, inputs, _operation_dependence, _call_dependence, INDEPENDENT).outputs


def _result_dependence(call: Call, operands: list[int]) -> int:
    """Return the dependence of the result of an operation.

    The sum of one linear map and several maps is a projected residual connection, and so is a linear map of both
    concatenated.
    """
    op = OPS[call.type]
    dependent = [value for value in operands if value != INDEPENDENT]
    if not dependent:
        return INDEPENDENT
    minimum, maximum = min(dependent), max(dependent)
    if op.mixes:
        return min(minimum + 1, SEVERAL_MAPS)
    if op.symbol == "+" and (minimum, maximum) == (ONE_MAP, SEVERAL_MAPS):
        return DIRECT
    is_concatenation = any(input.variadic for input in op.inputs)
    return CONCATENATED if is_concatenation and minimum == DIRECT < maximum else minimum
