"""Checks of known callees, and the matching of arguments to their hyperparameters and inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.nodes import Argument, Arguments, BoundArguments, Invalid
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Definition, Inputs, is_numeric, operation_inputs
from archspec.core.diagnostics import suggest
from archspec.ir.ops import REQUIRED, Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located, names_in

ARGUMENT_ALIASES = {"dim": "axis", "dims": "axis", "keepdim": "keep", "keepdims": "keep"}
"""Names of hyperparameters in PyTorch and NumPy, with the name in this language."""


class ErrorReporter(Protocol):
    """Reports an error at a node of the syntax tree; `first` is the node of the first specification."""

    def __call__(
        self, code: str, message: str, node: Located, /, *, help: str | None = None, first: Located | None = None
    ) -> object: ...


def bind_arguments(
    callee: str,
    hyperparameters: Sequence[str],
    takes: Inputs,
    arguments: Arguments,
    node: Located,
    fault: ErrorReporter,
) -> BoundArguments | None:
    """Match arguments to the names of a callee; None after reporting an error.

    `node` is the application. Missing hyperparameters are not reported here, because they may have defaults.
    """
    first, inputs = arguments.hyperparameters, arguments.inputs
    if arguments.undecided and not takes.names:
        first, inputs = inputs or (), ()
    values = match_arguments(callee, hyperparameters, first, "hyperparameter", fault)
    if inputs is None:
        return None if values is None else BoundArguments(values, takes.names, (None,) * len(takes.names))
    if arguments.piped and not takes.names:
        fault("surplus-argument", f"`{callee}` takes no inputs and cannot be a chain step", node)
        return None
    names = takes.names_for(len(inputs)) if takes.variadic else takes.names
    bound_inputs = match_arguments(callee, names, inputs, "input", fault)
    if values is None or bound_inputs is None:
        return None
    missing = [name for name in takes.required if name not in bound_inputs]
    if not missing:
        return BoundArguments(values, names, tuple([bound_inputs.get(name) for name in names]))
    help = f"expected inputs: {join_names(names)}"
    if not inputs and not first and isinstance(node, tree.Call) and len(node.lists) == 1:
        help += f"; to pass the function itself, write `{callee}`"
    if arguments.piped:
        help += "; mark the position of the piped value with `_`"
    fault("missing-argument", f"missing input `{missing[0]}` in call to `{callee}`", node, help=help)
    return None


def match_arguments(
    callee: str, names: Sequence[str], arguments: Sequence[Argument], what: str, fault: ErrorReporter
) -> dict[str, Argument] | None:
    """Match arguments to `names`; None after reporting an error."""
    result: dict[str, Argument] = {}
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
                expectation = f"expected at most {len(names)}" if names else "expected none"
                message = f"too many {what}s for `{callee}`: {expectation}, found {sum(not a.name for a in arguments)}"
                help = f"expected {what}s: {join_names(names)}" if names else f"remove it: `{callee}` takes no {what}s"
                fault("surplus-argument", message, argument.at, help=help)
                return None
            name = names[position]
            position += 1
        if name in result:
            message = f"{what} `{name}` is specified more than once"
            fault("repeated-argument", message, argument.at, first=result[name].at)
            failed = True
            continue
        result[name] = argument
    return None if failed else result


def join_names(names: Iterable[str]) -> str:
    """Format names as a list in a sentence."""
    return ", ".join(f"`{name}`" for name in names)


def report_tensor_argument(callee: str, node: Located, fault: ErrorReporter) -> None:
    """Report a tensor as a hyperparameter."""
    message = f"a hyperparameter of `{callee}` cannot depend on an input"
    fault("wrong-kind", message, node, help="pass hyperparameters in the first list and tensors in the second")


def make_partial(scope: Scope, expr: tree.Call, callee: nodes.Global, arguments: Arguments) -> nodes.Expr | None:
    """Return the node of a call that binds hyperparameters; None for a call that applies its callee."""
    target = callee.target
    explicit = (*arguments.hyperparameters, *(arguments.inputs or ()))
    if not isinstance(target, Definition) or target.open or len(expr.lists) != 1 or not explicit:
        return None
    if target.kind == "fn" and not binds_function(target.hyperparameters, target.takes, explicit):
        return None
    forward = next((item for item in expr.lists[0].items if item.value is None), None)
    passed = [argument for argument in explicit if argument.at is not forward]
    if target.kind != "fn" and any(not argument.name and _is_input(scope, argument) for argument in passed):
        return None
    if forward is not None:
        help = "name each hyperparameter, as in `n = n`"
        scope.fault("surplus-argument", f"`..` cannot bind hyperparameters of `{target.name}`", forward, help=help)
        return Invalid(expr)
    names = list(target.hyperparameters)
    bound = match_arguments(target.name, names, explicit, "hyperparameter", scope.fault)
    if bound is None:
        return Invalid(expr)
    return nodes.Partial(expr, callee, tuple([Argument(a.at, name, a.value) for name, a in bound.items()]))


def binds_function(names: Collection[str], takes: Inputs, arguments: tuple[Argument, ...]) -> bool:
    """Whether all arguments of a function are named hyperparameters."""
    return bool(takes.names and arguments) and all(a.name in names and a.name not in takes.names for a in arguments)


def _is_input(scope: Scope, argument: Argument) -> bool:
    value = argument.value
    return isinstance(value, nodes.Local) and scope.locals[value.name].what == "input"


def has_piped(arguments: tree.Arguments) -> bool:
    """Whether an argument uses `_`, the piped value."""
    return any(item.value is not None and "_" in names_in(item.value) for item in arguments.items)


def report_misplaced_input(
    scope: Scope, callee: str, hyperparameters: Collection[str], takes: Inputs, arguments: Arguments
) -> bool:
    """Whether an input is a list or a hyperparameter, as in `softmax(x, axis = -1)`; reports one error if so."""
    inputs = arguments.inputs or ()
    misplaced = _misplaced_hyperparameters(scope, hyperparameters, takes, inputs, arguments)
    lists = [a for a in inputs if a not in misplaced and takes.variadic and isinstance(a.value, nodes.ListLiteral)]
    if not misplaced and not lists:
        return False
    text = _source(scope)
    values = [text(a.at) for a in arguments.hyperparameters]
    values += [
        f"{ARGUMENT_ALIASES.get(a.name, a.name)} = {text(a.value.at)}" if a.name else text(a.value.at)
        for a in misplaced
    ]
    remaining = [text(a.value.at)[1:-1].strip() if a in lists else text(a.at) for a in inputs if a not in misplaced]
    hyper = ", ".join(values) or ("axis" if "axis" in hyperparameters else "")
    suggestion = f"{callee}({hyper})" if remaining == ["_"] else f"{callee}({hyper})({', '.join(remaining)})"
    help = f"write `{suggestion}`" if len(suggestion) <= 80 else f"write `{callee}(hyperparameters)(inputs)`"
    if lists:
        scope.fault("wrong-kind", f"`{callee}` expects tensors as inputs, found a list", lists[0].value.at, help=help)
    elif misplaced[0].name:
        message = f"`{misplaced[0].name}` is not an input of `{callee}`: hyperparameters are in the first list"
        scope.fault("unknown-argument", message, misplaced[0].at, help=help)
    else:
        mismatch = f"expected at most {len(takes.names)}, found {len(inputs)}"
        mismatch = "expected tensors, found a number" if takes.variadic else mismatch
        message = f"too many inputs for `{callee}`: {mismatch}"
        scope.fault("surplus-argument", message, misplaced[0].at, help=help)
    return True


def _misplaced_hyperparameters(
    scope: Scope, hyperparameters: Collection[str], takes: Inputs, inputs: Sequence[Argument], arguments: Arguments
) -> list[Argument]:
    """Return the arguments in the list of inputs that must be hyperparameters."""
    named = [
        a
        for a in inputs
        if a.name and a.name not in takes.names and ARGUMENT_ALIASES.get(a.name, a.name) in hyperparameters
    ]
    positional = [a for a in inputs if not a.name]
    surplus = positional[len(takes.names) :]
    if takes.variadic:  # a number at the end is not a tensor to join
        surplus = surplus[-1:] if surplus and isinstance(surplus[-1].value, nodes.Literal | nodes.Unary) else []
    free = len(hyperparameters) - len(arguments.hyperparameters) - len(named)
    return surplus + named if len(surplus) <= free and all(_is_constant(scope, a.value) for a in surplus) else named


def _is_constant(scope: Scope, value: nodes.Expr) -> bool:
    """Whether a value is a possible value of a hyperparameter."""
    if isinstance(value, nodes.Local):
        return scope.locals[value.name].what in ("hyperparameter", "index")
    if isinstance(value, nodes.Unary):
        return _is_constant(scope, value.operand)
    return isinstance(value, nodes.Literal | nodes.Dimension | nodes.ListLiteral | nodes.Global)


def _source(scope: Scope) -> Callable[[Located], str]:
    """Return a function from nodes to their source."""
    return lambda node: scope.unit.source.text[node.start : node.end]


def is_function(scope: Scope, callee: nodes.Global) -> bool:
    """Whether a callee without an address is a function; reports an error if not."""
    target = callee.target
    if isinstance(target, Op) or target.kind == "fn":
        return True
    help = f"declare it at an address: `name: {target.name}(...)`"
    message = f"`{target.name}` is a {target.kind} and needs an address"
    scope.fault("wrong-kind", message, callee.at, help=help)
    return False


def is_recursive(scope: Scope, callee: nodes.Global) -> bool:
    """Whether a function of numbers calls itself here; reports an error if so."""
    target = callee.target
    if target is not scope.definition or not is_numeric(target):
        return False
    help = "use a loop for repetition: `for i in 0..n { ... }`"
    scope.fault("definition-cycle", f"`{target.name}` calls itself", callee.at, help=help)
    return True


def is_module(scope: Scope, callee: nodes.Global) -> bool:
    """Whether a callee after an address is a layer or block; reports an error if not."""
    target = callee.target
    if isinstance(target, Definition) and target.kind != "fn":
        return True
    message = f"expected a layer or block after an address, found a function `{target.name}`"
    help = "write it without an address: a function declares nothing"
    scope.fault("wrong-kind", message, callee.at, help=help)
    return False


def bind_known(scope: Scope, target: Definition | Op, arguments: Arguments, node: tree.Expr) -> BoundArguments | None:
    """Match arguments to the names of a known callee; None after reporting an error."""
    takes_tensors = isinstance(node, tree.ModuleDeclaration) or (bool(arguments.inputs) and not arguments.piped)
    if takes_tensors and _report_input(scope, target, arguments):
        return None
    names: list[str]
    if isinstance(target, Op):
        if arguments.forward is not None:
            message = f"`..` cannot forward hyperparameters to the operation `{target.name}`"
            scope.fault("surplus-argument", message, arguments.forward)
            return None
        names, takes = [attribute.name for attribute in target.attributes], operation_inputs(target)
        required = {attribute.name for attribute in target.attributes if attribute.default is REQUIRED}
    elif target.open:
        return None
    else:
        names, takes = list(target.hyperparameters), target.takes
        required = {name for name, declared in target.hyperparameters.items() if declared.default is None}
        if arguments.forward is not None and scope.definition is not None:
            required -= required if scope.definition.open else scope.definition.hyperparameters.keys()
    if report_misplaced_input(scope, target.name, names, takes, arguments):
        return None
    bound = bind_arguments(target.name, names, takes, arguments, node, scope.fault)
    if bound is None:
        return None
    missing = next((name for name in names if name in required and name not in bound.hyperparameters), None)
    if missing is None:
        return bound
    message = f"missing hyperparameter `{missing}` in call to `{target.name}`"
    scope.fault("missing-argument", message, node, help=f"expected hyperparameters: {join_names(names)}")
    return None


def _report_input(scope: Scope, target: Definition | Op, arguments: Arguments) -> bool:
    """Whether a hyperparameter is an input of the definition; reports an error if so."""
    for argument in arguments.hyperparameters:
        value = argument.value
        if isinstance(value, nodes.Local) and scope.locals[value.name].what == "input":
            report_tensor_argument(target.name, argument.at, scope.fault)
            return True
    return False


def is_misspelt(scope: Scope, expr: tree.ModuleDeclaration) -> bool:
    """Whether `param`, `buffer` or `const` is misspelt, as in `w: parm [n]`; reports an error if so."""
    word = expr.callee.value if isinstance(expr.callee, tree.Subscript) else None
    if not isinstance(word, tree.Name) or word.text in scope.locals or word.text in scope.unit.names:
        return False
    near = suggest(word.text, ["param", "buffer", "const"])
    if near is not None:
        scope.fault("unknown-name", f"unknown keyword `{word.text}`", word, help=near)
        scope.ignore(expr)
    return near is not None


def report_hyphen(scope: Scope, expr: tree.Expr) -> bool:
    """Whether an expression such as `layer-norm: Norm(n)` has an address without quotes; reports an error if so."""
    if not isinstance(expr, tree.Binary) or not isinstance(expr.right, tree.ModuleDeclaration) or expr.operator != "-":
        return False
    end = expr.right.address.end
    address = scope.unit.source.text[expr.start : end]
    left = expr.left
    if not re.fullmatch(r"\w+-[\w.]+", address) or not isinstance(left, tree.Name) or left.text in scope.locals:
        return False
    quoted = ".".join(f'"{segment}"' if "-" in segment else segment for segment in address.split("."))
    address_node = tree.Name(expr.start, end, address)
    help = f"quote a segment with a hyphen: `{quoted}`"
    scope.fault("syntax", f"expected an address, found `{address}`", address_node, help=help)
    scope.ignore(expr, left.text, f".{address}")
    return True
