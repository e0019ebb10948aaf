"""Definitions with some of their hyperparameters bound, as values: `Inner(n = 4)`."""

from __future__ import annotations

from collections.abc import Collection

from archspec.resolve import nodes
from archspec.resolve.arguments import match
from archspec.resolve.nodes import Argument, Arguments, Invalid
from archspec.resolve.scope import Scope
from archspec.resolve.unit import Definition, Inputs
from archspec.syntax import tree


def partial_of(scope: Scope, expr: tree.Call, callee: nodes.Global, arguments: Arguments) -> nodes.Expr | None:
    """Return a call that binds hyperparameters as a node; None for one that applies its callee."""
    target = callee.target
    given = (*arguments.hyperparameters, *(arguments.inputs or ()))
    if not isinstance(target, Definition) or target.open or len(expr.lists) != 1 or not given:
        return None
    if target.kind == "fn" and not binds_function(target.hyperparameters, target.takes, given):
        return None
    forward = next((item for item in expr.lists[0].items if item.value is None), None)
    written = [argument for argument in given if argument.at is not forward]
    if target.kind != "fn" and any(not argument.name and _is_input(scope, argument) for argument in written):
        return None
    if forward is not None:
        help = "name each hyperparameter, as in `n = n`"
        scope.fault("surplus-argument", f"`..` cannot bind hyperparameters of `{target.name}`", forward, help=help)
        return Invalid(expr)
    names = list(target.hyperparameters)
    found = match(target.name, names, given, "hyperparameter", scope.fault)
    if found is None:
        return Invalid(expr)
    return nodes.Partial(expr, callee, tuple([Argument(a.at, name, a.value) for name, a in found.items()]))


def binds_function(names: Collection[str], takes: Inputs, given: tuple[Argument, ...]) -> bool:
    """Whether a list of arguments of a function has only hyperparameters, by name."""
    return bool(takes.names and given) and all(a.name in names and a.name not in takes.names for a in given)


def _is_input(scope: Scope, argument: Argument) -> bool:
    value = argument.value
    return isinstance(value, nodes.Local) and scope.locals[value.name].what == "input"
