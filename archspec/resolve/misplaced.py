"""Arguments in the wrong list: hyperparameters among the inputs, as in `softmax(x, axis = -1)`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from archspec.resolve import nodes
from archspec.resolve.arguments import ALIASES
from archspec.resolve.nodes import Argument, Arguments
from archspec.resolve.scope import Scope
from archspec.resolve.unit import Inputs


def misplaced(scope: Scope, callee: str, hyperparameters: Collection[str], takes: Inputs, given: Arguments) -> bool:
    """Whether an input of a call is a hyperparameter or a list of tensors; reports one error if so."""
    inputs = given.inputs or ()
    if (
        not takes.variadic
        and len(inputs) <= len(takes.names)
        and all(not a.name or a.name in takes.names for a in inputs)
    ):
        return False
    found = _hyperparameters(scope, hyperparameters, takes, inputs, given)
    lists = [a for a in inputs if a not in found and takes.variadic and isinstance(a.value, nodes.Listing)]
    if not found and not lists:
        return False
    text = _source(scope)
    values = [text(a.at or a.value.at) for a in given.hyperparameters]
    values += [f"{ALIASES.get(a.name, a.name)} = {text(a.value.at)}" if a.name else text(a.value.at) for a in found]
    rest = [
        text(a.value.at)[1:-1].strip() if a in lists else text(a.at or a.value.at) for a in inputs if a not in found
    ]
    hyper = ", ".join(values) or ("axis" if "axis" in hyperparameters else "")
    fixed = f"{callee}({hyper})" if rest == ["_"] else f"{callee}({hyper})({', '.join(rest)})"
    help = f"write `{fixed}`" if len(fixed) <= 80 else f"write `{callee}(hyperparameters)(inputs)`"
    if lists:
        scope.fault("wrong-kind", f"`{callee}` expects tensors as inputs, found a list", lists[0].value.at, help=help)
    elif found[0].name:
        message = f"`{found[0].name}` is not an input of `{callee}`: hyperparameters are in the first list"
        scope.fault("unknown-argument", message, found[0].at or found[0].value.at, help=help)
    else:
        most = f"expected at most {len(takes.names)}, found {len(inputs)}"
        most = "expected tensors, found a number" if takes.variadic else most
        message = f"too many inputs for `{callee}`: {most}"
        scope.fault("surplus-argument", message, found[0].at or found[0].value.at, help=help)
    return True


def _hyperparameters(
    scope: Scope, hyperparameters: Collection[str], takes: Inputs, inputs: Sequence[Argument], given: Arguments
) -> list[Argument]:
    """Return the inputs that must be hyperparameters."""
    named = [
        a for a in inputs if a.name and a.name not in takes.names and ALIASES.get(a.name, a.name) in hyperparameters
    ]
    positional = [a for a in inputs if not a.name]
    surplus = positional[len(takes.names) :]
    if takes.variadic:  # a number at the end is no tensor to join
        surplus = surplus[-1:] if surplus and isinstance(surplus[-1].value, nodes.Literal | nodes.Unary) else []
    free = len(hyperparameters) - len(given.hyperparameters) - len(named)
    return surplus + named if len(surplus) <= free and all(_is_constant(scope, a.value) for a in surplus) else named


def _is_constant(scope: Scope, value: nodes.Expr) -> bool:
    """Whether a value can be that of a hyperparameter."""
    if isinstance(value, nodes.Local):
        return scope.locals[value.name].what in ("hyperparameter", "index")
    if isinstance(value, nodes.Unary):
        return _is_constant(scope, value.operand)
    return isinstance(value, nodes.Literal | nodes.Dimension | nodes.Listing | nodes.Global)


def _source(scope: Scope) -> Callable[[Any], str]:
    """Return a function from nodes to their source."""
    return lambda node: scope.unit.source.text[node.start : node.end]
