"""Known callees: whether they may stand where they do, and their arguments by name."""

from __future__ import annotations

import re

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.arguments import (
    bind_arguments,
    join_names,
    report_misplaced_input,
    report_tensor_argument,
)
from archspec.compiler.resolve.nodes import Arguments, BoundArguments
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Definition, inputs_of, is_numeric
from archspec.core.diagnostics import suggest
from archspec.ir.ops import REQUIRED, Op
from archspec.language.syntax import tree


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
    """Return the arguments of a known callee, by name."""
    takes_tensors = isinstance(node, tree.ModuleDeclaration) or (bool(arguments.inputs) and not arguments.piped)
    if takes_tensors and _has_input(scope, target, arguments):
        return None
    names: list[str]
    if isinstance(target, Op):
        if arguments.forward is not None:
            message = f"`..` cannot forward hyperparameters to the operation `{target.name}`"
            scope.fault("surplus-argument", message, arguments.forward)
            return None
        names, takes = [attribute.name for attribute in target.attributes], inputs_of(target)
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


def _has_input(scope: Scope, target: Definition | Op, arguments: Arguments) -> bool:
    """Whether an input is given as a hyperparameter; reports an error if so."""
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
    place = tree.Name(expr.start, end, address)
    help = f"quote a segment with a hyphen: `{quoted}`"
    scope.fault("syntax", f"expected an address, found `{address}`", place, help=help)
    scope.ignore(expr, left.text, f".{address}")
    return True
