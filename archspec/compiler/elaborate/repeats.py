"""Evaluations that repeat others.

The bodies of a definition for different inputs have most expressions in common, and the iterations of a loop over
layers differ in the addresses of the layers.
"""

from __future__ import annotations

from collections.abc import Callable

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.body_builder import EvaluationResult
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    ModuleReference,
    MultipleOutputs,
    Tensor,
    Value,
    value_key,
)
from archspec.compiler.resolve import nodes, walk
from archspec.ir.module import Call, Module


def evaluate_shared(walker: ApplicationInterpreter, expr: nodes.Expr) -> Value:
    """Evaluate an expression, or repeat what an evaluation for equal values added to another body of the definition.

    Nothing is repeated that a diagnostic was reported about.
    """
    program, definition = walker.program, walker.definition
    if not definition.takes.optional or not program.numbers.repeats or program.ranges:
        return walker.value(expr)
    others = program.evaluated.setdefault((definition, id(expr)), [])
    for other in others:
        slots = _corresponding_slots(walker, expr, other)
        if slots is not None:
            walker.limits.count_text(len(other.calls), walker.unit.span(expr.at))
            return walker.builder.repeat(other, slots)
    body, reported = walker.builder.body, len(program.report.diagnostics)
    first, calls, discarded, env = len(body.types), len(body.calls), set(body.discarded), dict(walker.env)
    value = walker.value(expr)
    if value is not POISON and len(program.report.diagnostics) == reported:
        added = body.types[first:], body.calls[calls:], body.discarded - discarded
        given = walker.module, env, walker.header.leading
        others.append(EvaluationResult(value, *given, list(body.weights), first, *added))
    return value


def _corresponding_slots(
    walker: ApplicationInterpreter, expr: nodes.Expr, other: EvaluationResult
) -> dict[int, int] | None:
    """Return the slots of the tensors that an expression reads, by those in another evaluation; None if anything else
    that it depends on is different.
    """
    names, is_read = _reads(walker, expr)
    if walker.module is not other.module and (is_read or not _declares_same(walker.module, other)):
        return None
    if walker.header.leading != other.leading:
        return None
    slots: dict[int, int] = {}
    stored: dict[int, str] = {}  # what the expression may read by name and by address
    others: dict[int, str] = {}
    if is_read:
        stored = {slot: address for address, slot in walker.builder.body.weights}
        others = {slot: address for address, slot in other.weights}
    for name in names:
        old, new = other.env.get(name, DYNAMIC), walker.env.get(name, DYNAMIC)
        if old is new and not isinstance(new, Tensor | MultipleOutputs | ModuleReference):
            continue
        if isinstance(old, Tensor) and isinstance(new, Tensor):
            if old.type != new.type or slots.setdefault(old.slot, new.slot) != new.slot:
                return None
            if others.get(old.slot) != stored.get(new.slot):
                return None
        elif isinstance(new, Tensor | MultipleOutputs | ModuleReference) or value_key(old) != value_key(new):
            return None
    return slots


def _declares_same(module: Module | None, other: EvaluationResult) -> bool:
    """Whether a module has the same members as in another evaluation, among those applied there."""
    if module is None or other.module is None:
        return module is other.module
    return all(module.members.get(c.address) == other.module.members.get(c.address) for c in other.calls if c.address)


def _reads(walker: ApplicationInterpreter, expr: nodes.Expr) -> tuple[tuple[str, ...], bool]:
    """Return the names that the second pass reads in an expression, and whether it also reads the module."""
    known = walker.program.reads.get(id(expr))
    if known is not None:
        return known
    names: dict[str, None] = {}
    is_read = False
    parts = [expr]
    for part in parts:
        match part:
            case nodes.Local():
                names[part.name] = None
            case nodes.Dimension():
                names[part.key] = None
            case nodes.ModuleDeclaration():  # the first pass has evaluated its hyperparameters
                parts += [*part.address.indices(), part.callee, *[a.value for a in part.arguments.inputs or ()]]
                is_read = is_read or part.merges
                continue
            case nodes.AddressReference():
                is_read = True
            case nodes.Apply() if part.arguments.forward is not None:
                names |= dict.fromkeys(walker.definition.hyperparameters)
            case _:
                pass
        parts += walk.children(part)
    known = walker.program.reads[id(expr)] = (tuple(names), is_read)
    return known


class StepIterations:
    """The iterations of a step of a chain, which `once` evaluates. One that applies a module to the same inputs as an
    earlier one, except for the piped value, adds the same call.
    """

    def __init__(
        self, walker: ApplicationInterpreter, step: nodes.Step, once: Callable[[nodes.Step, Value], Value]
    ) -> None:
        self._walker = walker
        self._step = step
        self._once = once
        self._own = _applied_to_names(step) if walker.program.numbers.repeats and walker.module is not None else None
        self._calls: dict[Module, tuple[Tensor, Call]] = {}

    def value(self, piped: Value) -> Value:
        """Evaluate the step for the current index of the loop."""
        own, walker, builder = self._own, self._walker, self._walker.builder
        if own is None or walker.module is None or not isinstance(piped, Tensor):
            return self._once(self._step, piped)
        address = walker.address_text(own.address) or ""
        member = walker.module.members.get(address)
        if member is None or not isinstance(member.target, Module) or member.span != walker.unit.span(own.address.at):
            return self._once(self._step, piped)
        known = self._calls.get(member.target)
        if known is not None and known[0].type == piped.type:
            before, call = known
            inputs = tuple([(name, piped.slot if slot == before.slot else slot) for name, slot in call.inputs])
            return builder.emit(call.kind, call.type, address, call.body, inputs, {}, call.outputs, call.span)
        count = len(builder.body.calls)
        value = self._once(self._step, piped)
        locals = [argument.value for argument in own.arguments.every() if isinstance(argument.value, nodes.Local)]
        others = [walker.env.get(local.name) for local in locals]
        if isinstance(value, Tensor) and len(builder.body.calls) == count + 1 and piped not in others:
            self._calls[member.target] = (piped, builder.body.calls[-1])
        return value


def _applied_to_names(step: nodes.Step) -> nodes.ModuleDeclaration | None:
    """Return the declaration of a step if its inputs are the piped value, and names that do not change in its loop."""
    own = step.value
    if (
        step.operator
        or step.condition is not None
        or not isinstance(own, nodes.ModuleDeclaration)
        or own.merges
        or step.loop is None
    ):
        return None
    for argument in own.arguments.inputs or ():
        value = argument.value
        is_same = isinstance(value, nodes.Local) and value.name != step.loop.variable
        if not is_same and not isinstance(value, nodes.PipedValue):
            return None
    return own
