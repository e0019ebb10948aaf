"""Requirements of a spec as checks of arguments. `code` translates an expression; `source` is the text of the spec."""

from __future__ import annotations

import ast
from collections.abc import Callable

from archspec.codegen.python.trees import literal, names_in, negated, py, raised_if
from archspec.compiler.resolve import nodes

Code = Callable[[nodes.Expr], ast.expr]


def requirement(code: Code, source: str, statement: nodes.Require) -> list[ast.stmt]:
    """The check of a requirement, unless it is about no argument."""
    condition = code(statement.condition)
    if not names_in([condition]):
        return []
    message = statement.message or f"required: {_text(source, statement.condition)}"
    return [raised_if(negated(condition), literal(message))]


def ordered(code: Code, source: str, loop: nodes.Loop) -> list[ast.stmt]:
    """The check that a loop ends at its start or later, unless it starts at 0 and nothing is subtracted in its end."""
    first, last = code(loop.first), code(loop.last)
    is_count = isinstance(first, ast.Constant) and first.value == 0
    if not names_in([first, last]) or (is_count and not _subtracts(last)):
        return []
    message = f"required: {_text(source, loop.first)} <= {_text(source, loop.last)}"
    return [raised_if(py("last < first", first=first, last=last), literal(message))]


def _subtracts(code: ast.expr) -> bool:
    return any(isinstance(part, ast.Sub | ast.USub) for part in ast.walk(code))


def _text(source: str, expr: nodes.Expr) -> str:
    return " ".join(source[expr.at.start : expr.at.end].split())
