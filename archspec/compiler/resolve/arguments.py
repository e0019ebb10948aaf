"""Matching of arguments to the hyperparameters and inputs of a callee, of which some may be bound in advance.

Hyperparameters among the inputs, as in `softmax(x, axis = -1)`, are reported as arguments in the wrong list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.nodes import Argument, Arguments, BoundArguments, Invalid
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Definition, Inputs
from archspec.core.diagnostics import suggest
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located
from archspec.language.syntax.walk import names_in

ARGUMENT_ALIASES = {"dim": "axis", "dims": "axis", "keepdim": "keep", "keepdims": "keep"}
"""Names of hyperparameters in PyTorch and NumPy."""


class ErrorReporter(Protocol):
    """Reports an error: code, message, the wrong node of the tree, and by name `help` and `first`, an earlier node."""

    def __call__(
        self, code: str, message: str, node: Located, /, *, help: str | None = None, first: Located | None = None
    ) -> object: ...


def bind_arguments(
    callee: str, hyperparameters: Sequence[str], takes: Inputs, given: Arguments, node: Located, fault: ErrorReporter
) -> BoundArguments | None:
    """Return the arguments by the names of a callee; None after reporting an error.

    `node` is the application. Missing hyperparameters are not reported here, because they may have defaults.
    """
    first, inputs = given.hyperparameters, given.inputs
    if given.undecided and not takes.names:
        first, inputs = inputs or (), ()
    values = match_arguments(callee, hyperparameters, first, "hyperparameter", fault)
    if inputs is None:
        return None if values is None else BoundArguments(values, takes.names, (None,) * len(takes.names))
    if given.piped and not takes.names:
        fault("surplus-argument", f"`{callee}` takes no inputs and cannot be a chain step", node)
        return None
    names = takes.numbered(len(inputs)) if takes.variadic else takes.names
    found = match_arguments(callee, names, inputs, "input", fault)
    if values is None or found is None:
        return None
    missing = [name for name in takes.needed if name not in found]
    if not missing:
        return BoundArguments(values, names, tuple([found.get(name) for name in names]))
    help = f"expected inputs: {join_names(names)}"
    if not inputs and not first and isinstance(node, tree.Call) and len(node.lists) == 1:
        help += f"; to pass the function itself, write `{callee}`"
    if given.piped:
        help += "; mark the position of the piped value with `_`"
    fault("missing-argument", f"missing input `{missing[0]}` in call to `{callee}`", node, help=help)
    return None


def match_arguments(
    callee: str, names: Sequence[str], arguments: Sequence[Argument], what: str, fault: ErrorReporter
) -> dict[str, Argument] | None:
    """Match arguments to `names`; None after reporting an error."""
    found: dict[str, Argument] = {}
    failed = False
    position = 0
    for argument in arguments:
        name = argument.name
        if name and name not in names:
            near = suggest(ARGUMENT_ALIASES.get(name, name), list(names)) or (
                f"available {what}s: {join_names(names)}" if names else None
            )
            fault("unknown-argument", f"unknown {what} `{name}` in call to `{callee}`", argument.at, help=near)
            failed = True
            continue
        if not name:
            if position >= len(names):
                most = f"expected at most {len(names)}" if names else "expected none"
                message = f"too many {what}s for `{callee}`: {most}, found {sum(not a.name for a in arguments)}"
                help = f"expected {what}s: {join_names(names)}" if names else f"remove it: `{callee}` takes no {what}s"
                fault("surplus-argument", message, argument.at, help=help)
                return None
            name = names[position]
            position += 1
        if name in found:
            message = f"{what} `{name}` is specified more than once"
            fault("repeated-argument", message, argument.at, first=found[name].at)
            failed = True
            continue
        found[name] = argument
    return None if failed else found


def join_names(names: Iterable[str]) -> str:
    """Format names as a list in a sentence."""
    return ", ".join(f"`{name}`" for name in names)


def report_tensor_argument(callee: str, node: Located, fault: ErrorReporter) -> None:
    """Report a tensor among hyperparameters."""
    message = f"a hyperparameter of `{callee}` cannot depend on an input"
    fault("wrong-kind", message, node, help="pass hyperparameters in the first list and tensors in the second")


def make_partial(scope: Scope, expr: tree.Call, callee: nodes.Global, arguments: Arguments) -> nodes.Expr | None:
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
    found = match_arguments(target.name, names, given, "hyperparameter", scope.fault)
    if found is None:
        return Invalid(expr)
    return nodes.Partial(expr, callee, tuple([Argument(a.at, name, a.value) for name, a in found.items()]))


def binds_function(names: Collection[str], takes: Inputs, given: tuple[Argument, ...]) -> bool:
    """Whether a list of arguments of a function has only hyperparameters, by name."""
    return bool(takes.names and given) and all(a.name in names and a.name not in takes.names for a in given)


def _is_input(scope: Scope, argument: Argument) -> bool:
    value = argument.value
    return isinstance(value, nodes.Local) and scope.locals[value.name].what == "input"


def has_piped(arguments: tree.Arguments) -> bool:
    """Whether an argument uses `_`, the piped value."""
    return any(item.value is not None and "_" in names_in(item.value) for item in arguments.items)


def report_misplaced_input(
    scope: Scope, callee: str, hyperparameters: Collection[str], takes: Inputs, given: Arguments
) -> bool:
    """Whether an input of a call is a hyperparameter or a list of tensors; reports one error if so."""
    inputs = given.inputs or ()
    found = _hyperparameters(scope, hyperparameters, takes, inputs, given)
    lists = [a for a in inputs if a not in found and takes.variadic and isinstance(a.value, nodes.ListLiteral)]
    if not found and not lists:
        return False
    text = _source(scope)
    values = [text(a.at) for a in given.hyperparameters]
    values += [
        f"{ARGUMENT_ALIASES.get(a.name, a.name)} = {text(a.value.at)}" if a.name else text(a.value.at) for a in found
    ]
    rest = [text(a.value.at)[1:-1].strip() if a in lists else text(a.at) for a in inputs if a not in found]
    hyper = ", ".join(values) or ("axis" if "axis" in hyperparameters else "")
    fixed = f"{callee}({hyper})" if rest == ["_"] else f"{callee}({hyper})({', '.join(rest)})"
    help = f"write `{fixed}`" if len(fixed) <= 80 else f"write `{callee}(hyperparameters)(inputs)`"
    if lists:
        scope.fault("wrong-kind", f"`{callee}` expects tensors as inputs, found a list", lists[0].value.at, help=help)
    elif found[0].name:
        message = f"`{found[0].name}` is not an input of `{callee}`: hyperparameters are in the first list"
        scope.fault("unknown-argument", message, found[0].at, help=help)
    else:
        most = f"expected at most {len(takes.names)}, found {len(inputs)}"
        most = "expected tensors, found a number" if takes.variadic else most
        message = f"too many inputs for `{callee}`: {most}"
        scope.fault("surplus-argument", message, found[0].at, help=help)
    return True


def _hyperparameters(
    scope: Scope, hyperparameters: Collection[str], takes: Inputs, inputs: Sequence[Argument], given: Arguments
) -> list[Argument]:
    """Return the inputs that must be hyperparameters."""
    named = [
        a
        for a in inputs
        if a.name and a.name not in takes.names and ARGUMENT_ALIASES.get(a.name, a.name) in hyperparameters
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
    return isinstance(value, nodes.Literal | nodes.Dimension | nodes.ListLiteral | nodes.Global)


def _source(scope: Scope) -> Callable[[Located], str]:
    """Return a function from nodes to their source."""
    return lambda node: scope.unit.source.text[node.start : node.end]
