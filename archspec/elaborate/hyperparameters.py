"""The values of the hyperparameters of a definition in one use of it."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.elaborate.interpreter import Interpreter
from archspec.elaborate.partials import fits_default
from archspec.elaborate.values import DYNAMIC, POISON, Tensor, Value
from archspec.resolve.arguments import listed, refuse_input
from archspec.resolve.definition import resolved
from archspec.resolve.nodes import Argument
from archspec.resolve.unit import Definition
from archspec.syntax import tree
from archspec.syntax.tree import Located


def hyperparameter_values(
    interpreter: Interpreter,
    callee: Definition,
    given: Mapping[str, Argument],
    forward: tree.Argument | None,
    at: Located,
    overrides: Mapping[str, Value] | None = None,
) -> dict[str, Value] | None:
    """Return the values of a definition's hyperparameters in a use; None after reporting an error.

    `overrides` take precedence over the arguments.
    """
    if callee.open:
        return None
    forwarded = (
        interpreter.definition.hyperparameters if forward is not None and interpreter.definition is not None else {}
    )
    values: dict[str, Value] = {}
    failed = False
    for name, parameter in callee.hyperparameters.items():
        argument = given.get(name)
        default = POISON
        if parameter.default is not None:
            default = _default(interpreter, callee, name, values)
        if overrides and name in overrides:
            values[name] = overrides[name]
            continue
        place = argument.at if argument is not None else None
        if argument is not None:
            value = interpreter.value(argument.value)
        elif name in forwarded and name in interpreter.env:
            place, value = forward, interpreter.env[name]
        elif parameter.default is None:
            if not failed:
                message = f"missing hyperparameter `{name}` in call to `{callee.name}`"
                help = f"expected hyperparameters: {listed(callee.hyperparameters)}"
                interpreter.fault("missing-argument", message, at, help=help)
            failed = True
            values[name] = POISON
            continue
        else:
            value = default
        failed = not _fits(interpreter, callee, name, default, value, place) or failed
        values[name] = value
    return None if failed else values


def _fits(
    interpreter: Interpreter, callee: Definition, name: str, default: Value, value: Value, place: Located | None
) -> bool:
    """Whether `value` may be the hyperparameter `name`; reports an error if not."""
    if value is POISON:
        return False
    if place is None:
        return True
    if value is DYNAMIC or value.__class__ is Tensor:
        refuse_input(callee.name, place, interpreter.fault)
        return False
    return fits_default(interpreter, callee, name, default, value, place)


def _default(interpreter: Interpreter, callee: Definition, name: str, values: dict[str, Value]) -> Value:
    """Evaluate the default of a hyperparameter, which may use those before it."""
    parameter = callee.hyperparameters[name]
    if isinstance(parameter.default, tree.Literal):
        return parameter.default.value
    expr = resolved(parameter.origin, interpreter.program.report).defaults[name]
    return Interpreter(interpreter.program, parameter.unit, callee, values).value(expr)
