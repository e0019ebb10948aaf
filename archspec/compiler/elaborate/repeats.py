"""Reuse of earlier evaluations of an expression.

The bodies of a definition for different inputs have most expressions in common, and the iterations of a loop over
layers differ only in the addresses of the layers.
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


def evaluate_shared(interpreter: ApplicationInterpreter, expr: nodes.Expr) -> Value:
    """Evaluate an expression, or repeat the calls that its evaluation for equal values added to an earlier body.

    An evaluation with a diagnostic is not repeated.
    """
    program, definition = interpreter.program, interpreter.definition
    if not definition.takes.optional or not program.numbers.repeats or program.ranges:
        return interpreter.value(expr)
    earlier_results = program.evaluated.setdefault((definition, id(expr)), [])
    for earlier in earlier_results:
        slots = _corresponding_slots(interpreter, expr, earlier)
        if slots is not None:
            interpreter.limits.count_text(len(earlier.calls), interpreter.unit.span(expr.at))
            return interpreter.builder.repeat(earlier, slots)
    body, reported = interpreter.builder.body, len(program.report.diagnostics)
    first, calls, discarded, env = len(body.types), len(body.calls), set(body.discarded), dict(interpreter.env)
    value = interpreter.value(expr)
    if value is not POISON and len(program.report.diagnostics) == reported:
        added = body.types[first:], body.calls[calls:], body.discarded - discarded
        context = interpreter.module, env, interpreter.header.leading
        earlier_results.append(EvaluationResult(value, *context, list(body.weights), first, *added))
    return value


def _corresponding_slots(
    interpreter: ApplicationInterpreter, expr: nodes.Expr, earlier: EvaluationResult
) -> dict[int, int] | None:
    """Map the slots that an earlier evaluation of an expression read to the slots that the expression reads now.

    None if the expression depends on a value that is different now.
    """
    names, reads_module = _find_reads(interpreter, expr)
    if interpreter.module is not earlier.module and (
        reads_module or not _has_equal_members(interpreter.module, earlier)
    ):
        return None
    if interpreter.header.leading != earlier.leading:
        return None
    slots: dict[int, int] = {}
    stored: dict[int, str] = {}  # tensors that are read by name and by address
    earlier_stored: dict[int, str] = {}
    if reads_module:
        stored = {slot: address for address, slot in interpreter.builder.body.weights}
        earlier_stored = {slot: address for address, slot in earlier.weights}
    for name in names:
        old, new = earlier.env.get(name, DYNAMIC), interpreter.env.get(name, DYNAMIC)
        if old is new and not isinstance(new, Tensor | MultipleOutputs | ModuleReference):
            continue
        if isinstance(old, Tensor) and isinstance(new, Tensor):
            if old.type != new.type or slots.setdefault(old.slot, new.slot) != new.slot:
                return None
            if earlier_stored.get(old.slot) != stored.get(new.slot):
                return None
        elif isinstance(new, Tensor | MultipleOutputs | ModuleReference) or value_key(old) != value_key(new):
            return None
    return slots


def _has_equal_members(module: Module | None, earlier: EvaluationResult) -> bool:
    """Whether the members that an earlier evaluation applied are the same in a module."""
    if module is None or earlier.module is None:
        return module is earlier.module
    return all(
        module.members.get(c.address) == earlier.module.members.get(c.address) for c in earlier.calls if c.address
    )


def _find_reads(interpreter: ApplicationInterpreter, expr: nodes.Expr) -> tuple[tuple[str, ...], bool]:
    """Return the names that the second pass reads in an expression, and whether it reads members of the module."""
    cached = interpreter.program.reads.get(id(expr))
    if cached is not None:
        return cached
    names: dict[str, None] = {}
    reads_module = False
    parts = [expr]
    for part in parts:
        match part:
            case nodes.Local():
                names[part.name] = None
            case nodes.Dimension():
                names[part.key] = None
            case nodes.ModuleDeclaration():  # the first pass evaluates its hyperparameters
                parts += [*part.address.indices(), part.callee, *[a.value for a in part.arguments.inputs or ()]]
                reads_module = reads_module or part.merges
                continue
            case nodes.AddressReference():
                reads_module = True
            case nodes.Apply() if part.arguments.forward is not None:
                names |= dict.fromkeys(interpreter.definition.hyperparameters)
            case _:
                pass
        parts += walk.children(part)
    cached = interpreter.program.reads[id(expr)] = (tuple(names), reads_module)
    return cached


class StepIterations:
    """The iterations of a chain step in a loop; `evaluate` evaluates one iteration.

    An iteration repeats the call of an earlier iteration if both apply one module to inputs that differ only in the
    piped value.
    """

    def __init__(
        self, interpreter: ApplicationInterpreter, step: nodes.Step, evaluate: Callable[[nodes.Step, Value], Value]
    ) -> None:
        self._interpreter = interpreter
        self._step = step
        self._evaluate = evaluate
        self._declaration = (
            _repeatable_declaration(step)
            if interpreter.program.numbers.repeats and interpreter.module is not None
            else None
        )
        self._calls: dict[Module, tuple[Tensor, Call]] = {}

    def value(self, piped: Value) -> Value:
        """Evaluate the step for the current index of the loop."""
        declaration, interpreter, builder = self._declaration, self._interpreter, self._interpreter.builder
        if declaration is None or interpreter.module is None or not isinstance(piped, Tensor):
            return self._evaluate(self._step, piped)
        address = interpreter.address_text(declaration.address) or ""
        member = interpreter.module.members.get(address)
        if (
            member is None
            or not isinstance(member.target, Module)
            or member.span != interpreter.unit.span(declaration.address.at)
        ):
            return self._evaluate(self._step, piped)
        earlier = self._calls.get(member.target)
        if earlier is not None and earlier[0].type == piped.type:
            earlier_piped, call = earlier
            inputs = tuple([(name, piped.slot if slot == earlier_piped.slot else slot) for name, slot in call.inputs])
            return builder.emit(call.kind, call.type, address, call.body, inputs, {}, call.outputs, call.span)
        count = len(builder.body.calls)
        value = self._evaluate(self._step, piped)
        names = [
            argument.value for argument in declaration.arguments.every() if isinstance(argument.value, nodes.Local)
        ]
        values = [interpreter.env.get(local.name) for local in names]
        if isinstance(value, Tensor) and len(builder.body.calls) == count + 1 and piped not in values:
            self._calls[member.target] = (piped, builder.body.calls[-1])
        return value


def _repeatable_declaration(step: nodes.Step) -> nodes.ModuleDeclaration | None:
    """Return the declaration of a step if its inputs are the piped value and names that are constant in its loop."""
    node = step.value
    if (
        step.operator
        or step.condition is not None
        or not isinstance(node, nodes.ModuleDeclaration)
        or node.merges
        or step.loop is None
    ):
        return None
    for argument in node.arguments.inputs or ():
        value = argument.value
        is_constant = isinstance(value, nodes.Local) and value.name != step.loop.variable
        if not is_constant and not isinstance(value, nodes.PipedValue):
            return None
    return node
