"""Values and defaults of hyperparameters as code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, cast

from archspec.ops import OPS, Op
from archspec.pytorch.code import bind, literal, name, py, sequence
from archspec.pytorch.operations import function_of
from archspec.pytorch.plan import names_in as words_in
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book
    from archspec.pytorch.scope import Scope


def default(book: Book, definition: Definition, word: str) -> ast.expr | None:
    """The default of a hyperparameter, if it is a constant or a definition."""
    parameter = definition.hyperparameters[word]
    return _constant(book, parameter.default, parameter.unit) if parameter.default is not None else None


def is_computed(book: Book, definition: Definition, word: str) -> bool:
    """Whether a hyperparameter has a default that depends on others."""
    return definition.hyperparameters[word].default is not None and default(book, definition, word) is None


def computed(scope: Scope, word: str) -> ast.stmt:
    """The default of a hyperparameter, put in where it is not given."""
    definition = scope.definition
    parameter, variable = definition.hyperparameters[word], scope.book.parameters(definition)[word]
    assert parameter.default is not None
    known = set(words_in(parameter.default)) <= set(definition.hyperparameters)
    if not (known or parameter.unit is scope.unit) or None in scope.book.values(definition, word):
        scope.refuse(f"the default of `{word}` has no form in PyTorch", definition.node.name)
    return ast.If(py("x is None", x=name(variable)), [bind(variable, scope.static(parameter.default))], [])


def _constant(book: Book, expr: tree.Expr, unit: Any) -> ast.expr | None:
    match expr:
        case tree.Literal():
            return literal(expr.value)
        case tree.Unary(operator="-"):
            inner = _constant(book, expr.operand, unit)
            return py("-x", x=inner) if inner is not None else None
        case tree.Listing():
            items = [_constant(book, item, unit) for item in expr.items]
            known = [item for item in items if item is not None]
            return sequence(known) if len(known) == len(items) else None
        case tree.Name():
            binding = unit.names.get(expr.text)
            target = binding.target if binding is not None else OPS.get(expr.text)
            if isinstance(target, Definition) and target not in book.names:
                return literal(None)  # no use has it
            return code_of(book, target) if target is not None else None
        case _:
            return None


def code_of(book: Book, value: Any) -> ast.expr | None:
    """A hyperparameter's value as code; None for an operation that is no function in PyTorch."""
    match value:
        case Definition():
            return name(book.written(value).name)
        case Op():
            return function_of(value)
        case _ if isinstance(value, tuple):
            items = [code_of(book, item) for item in cast("tuple[Any, ...]", value)]
            known = [item for item in items if item is not None]
            return sequence(known) if len(known) == len(items) else None
        case _:
            return literal(value)
