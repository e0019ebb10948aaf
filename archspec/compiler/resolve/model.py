"""Resolution of the models of a syntax tree, and of what they expect."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.arguments import bind_arguments, join_names
from archspec.compiler.resolve.expressions import Expressions
from archspec.compiler.resolve.files import suggest_definition
from archspec.compiler.resolve.nodes import Arguments
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.language.syntax import tree


class ResolvedModel(Record):
    """A model in resolved form: its definition, and the arguments."""

    at: tree.Model
    name: str
    definition: Definition
    arguments: Arguments


def resolve_model(unit: Unit, model: tree.Model, report: Report) -> ResolvedModel | None:
    """The resolved form of a model; None where it is of no definition, which is reported."""
    scope = Scope(unit, None, report)
    name = model.callee.text
    binding = unit.names.get(name)
    if binding is None:
        if name not in unit.broken:
            scope.fault("unknown-name", f"unknown name `{name}`", model.callee, help=suggest_definition(unit, name))
        return None
    definition = binding.target
    if not isinstance(definition, Definition | None) or (definition is not None and definition.kind == "fn"):
        scope.fault("wrong-kind", "expected the name of a block or layer", model.callee)
    if not isinstance(definition, Definition) or definition.kind == "fn":
        return None
    expressions = Expressions(scope)
    values: list[nodes.Argument] = []
    forwards = None
    for item in model.arguments.items if model.arguments is not None else ():
        if item.value is None:
            forwards = item
            scope.fault("surplus-argument", "`..` is only allowed inside a definition", item, help="remove it")
        else:
            values.append(nodes.Argument(item, item.name, expressions.resolve(item.value)))
    arguments = Arguments(tuple(values), None, None, False, False, None)
    names = list(definition.hyperparameters)
    bound = (
        None
        if definition.open or forwards
        else bind_arguments(definition.name, names, definition.takes, arguments, model, scope.fault)
    )
    for parameter in definition.hyperparameters.values() if bound is not None else ():
        if parameter.default is None and bound is not None and parameter.name not in bound.hyperparameters:
            message = f"missing hyperparameter `{parameter.name}` in call to `{definition.name}`"
            scope.fault("missing-argument", message, model, help=f"expected hyperparameters: {join_names(names)}")
            bound = None
    return ResolvedModel(model, str(model.name.value), definition, arguments.replace(bound=bound))


def resolve_expectations(unit: Unit, model: tree.Model, names: Iterable[str], report: Report) -> list[nodes.Expr]:
    """Resolve the conditions of the `expect` lines of a model, which can use `names`."""
    scope = Scope(unit, None, report)
    for name in names:
        scope.locals[name] = scope.hyperparameter(unit.span(model.callee))
    return [Expressions(scope).resolve(expect.condition) for expect in model.expects]
