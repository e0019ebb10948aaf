"""Creation and application of definitions with some hyperparameters bound."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.compiler.evaluate.numbers import NumberEvaluator
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    Partial,
    Tensor,
    Value,
    accepts,
    describe,
    show,
    type_description,
)
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.callees import bind_arguments, binds_function, match_arguments, report_tensor_argument
from archspec.compiler.resolve.nodes import Argument, Arguments, BoundArguments
from archspec.compiler.resolve.unit import Definition, operation_inputs
from archspec.core.diagnostics import Note
from archspec.ir.ops import Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located


def split_partial(callee: Value) -> tuple[Value, Partial | None]:
    """Return the definition or operation of a callee, and the callee itself if it has hyperparameters bound."""
    return (callee.definition, callee) if isinstance(callee, Partial) else (callee, None)


def unbound_names(definition: Definition, partial: Partial | None) -> list[str]:
    """Return the names of the hyperparameters that `partial` does not bind."""
    bound = dict(partial.values) if partial is not None else {}
    return [name for name in definition.hyperparameters if name not in bound]


def binds_hyperparameters(interpreter: NumberEvaluator, callee: Value, arguments: Arguments) -> bool:
    """Whether an application of a callee that is a value, with one list of arguments, binds hyperparameters."""
    definition, _ = split_partial(callee)
    inputs = arguments.inputs
    if not arguments.undecided or not inputs or not isinstance(definition, Definition) or definition.open:
        return False
    if definition.kind == "fn":
        return binds_function(definition.hyperparameters, definition.takes, inputs)
    values = [interpreter.env.get(a.value.name) for a in inputs if isinstance(a.value, nodes.Local)]
    return not any(value is DYNAMIC or isinstance(value, Tensor) for value in values)


def bind_partially(interpreter: NumberEvaluator, callee: Value, arguments: Sequence[Argument], node: Located) -> Value:
    """Bind further hyperparameters of a callee; POISON after reporting an error."""
    definition, partial = split_partial(callee)
    assert isinstance(definition, Definition)
    if partial is not None and report_bound_again(interpreter, partial, arguments):
        return POISON
    matched = match_arguments(
        definition.name, unbound_names(definition, partial), arguments, "hyperparameter", interpreter.fault
    )
    if matched is None:
        return POISON
    values = dict(partial.values) if partial is not None else {}
    failed = False
    for name, argument in matched.items():
        value = values[name] = interpreter.value(argument.value)
        if value is DYNAMIC or isinstance(value, Tensor):
            report_tensor_argument(definition.name, argument.at, interpreter.fault)
            value = POISON
        fits = value is not POISON and fits_default(
            interpreter, definition, name, _constant_default(definition, name), value, argument.at
        )
        failed = failed or not fits
    if failed:
        return POISON
    return Partial(definition, tuple([(name, values[name]) for name in definition.hyperparameters if name in values]))


def report_bound_again(interpreter: NumberEvaluator, partial: Partial, arguments: Sequence[Argument]) -> bool:
    """Whether arguments specify a hyperparameter that is already bound; reports an error if so."""
    bound = dict(partial.values)
    for argument in arguments:
        if argument.name in bound:
            message = f"hyperparameter `{argument.name}` is already bound in `{show(partial)}`"
            interpreter.fault("repeated-argument", message, argument.at, help="remove it here, or do not bind it there")
            return True
    return False


def match_partial(
    interpreter: NumberEvaluator,
    expr: nodes.Apply | nodes.ModuleDeclaration,
    callee: Definition | Op,
    partial: Partial | None,
) -> BoundArguments | None:
    """Match the arguments of an application to the names of its callee; None after reporting an error."""
    if isinstance(callee, Definition):
        if callee.open or (partial is not None and report_bound_again(interpreter, partial, [*expr.arguments.every()])):
            return None
        names = unbound_names(callee, partial)
        bound = bind_arguments(callee.name, names, callee.takes, expr.arguments, expr.at, interpreter.fault)
        return merge_bound_arguments(partial, bound, expr.at) if partial is not None and bound is not None else bound
    if expr.arguments.forward is not None:
        message = f"`..` cannot forward hyperparameters to the operation `{callee.name}`"
        interpreter.fault("surplus-argument", message, expr.arguments.forward)
        return None
    names = [attribute.name for attribute in callee.attributes]
    return bind_arguments(callee.name, names, operation_inputs(callee), expr.arguments, expr.at, interpreter.fault)


def merge_bound_arguments(partial: Partial, bound: BoundArguments, node: Located) -> BoundArguments:
    """Return the arguments of an application, completed by the bound hyperparameters."""
    values = {name: Argument(node, name, nodes.BoundHyperparameter(node, value)) for name, value in partial.values}
    return bound.replace(hyperparameters={**values, **bound.hyperparameters})


def fits_default(
    interpreter: NumberEvaluator, callee: Definition, name: str, default: Value, value: Value, node: Located
) -> bool:
    """Whether `value` has the type of a hyperparameter's default; reports an error if not."""
    if default is POISON or accepts(default, value):
        return True
    note = Note(f"the default is {describe(default)}", callee.hyperparameters[name].span)
    message = (
        f"hyperparameter `{name}` of `{callee.name}` expects type {type_description(default)}, found {describe(value)}"
    )
    interpreter.fault("wrong-kind", message, node, notes=(note,))
    return False


def _constant_default(callee: Definition, name: str) -> Value:
    """Return the default of a hyperparameter if it is a literal or a definition; otherwise POISON.

    Any other default depends on hyperparameters without values yet; the application checks the type.
    """
    parameter = callee.hyperparameters[name]
    match parameter.default:
        case tree.Literal(value=value):
            return value
        case tree.Name(text=text) if text in parameter.unit.names:
            target = parameter.unit.names[text].target
            return target if target is not None else POISON
        case _:
            return POISON
