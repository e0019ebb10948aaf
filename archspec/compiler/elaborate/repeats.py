"""Iterations of a step in a loop over layers, which differ only in the addresses of the layers."""

from __future__ import annotations

from collections.abc import Callable

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.values import (
    Tensor,
    Value,
)
from archspec.compiler.resolve import nodes
from archspec.ir.module import Call, Module


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
