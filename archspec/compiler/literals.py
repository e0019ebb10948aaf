"""Literals of the language outside a spec; a separate module, so that the parser is loaded only if needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import EllipsisType

from archspec.core.diagnostics import Report, Source
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.language.syntax.tree import names_in

_NUMBER_PATTERN = re.compile(r"-?(?:[0-9]{1,18}|[0-9]{1,9}(?:\.[0-9]{1,9})?(?:e-?[0-9]{1,2})?)")
_NAME_PATTERN = re.compile(r"[A-Za-z_]\w*")
_CALL_PATTERN = re.compile(r"\s*[A-Za-z_]\w*\s*\(")
_CONSTANTS = {"true": True, "false": False, "none": None}


def parse_literal(text: str) -> PlainValue | EllipsisType:
    """Parse a number, `true`, `false`, `none`, string, name or list of these; Ellipsis for any other text."""
    word = text.strip()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if _NUMBER_PATTERN.fullmatch(word):  # most values on a command line; the parser is not loaded
        return int(word) if word.removeprefix("-").isdigit() else float(word)
    expr = expression(Source("", text), Report())
    return _literal_value(expr) if expr is not None else ...


def expression(source: Source, report: Report) -> tree.Expr | None:
    """Parse an expression; None after reporting an error."""
    from archspec.language.syntax.parse import parse_expression  # imported late: most values need no parser

    return parse_expression(source, report)


def definition_names(text: str) -> Iterator[str]:
    """Yield the names in `Name` or `Name(n = 4)`, a definition with hyperparameters bound; none for any other text."""
    if _NAME_PATTERN.fullmatch(text):
        yield text
    elif _CALL_PATTERN.match(text):
        expr = expression(Source("", text), Report())
        if isinstance(expr, tree.Call) and isinstance(expr.callee, tree.Name):
            yield from names_in(expr)


def _literal_value(expr: tree.Expr) -> PlainValue | EllipsisType:
    """Return the value of a literal expression; Ellipsis for any other."""
    match expr:
        case tree.Literal():
            return expr.value
        case tree.Name():
            return expr.text
        case tree.Unary(operator="-", operand=tree.Literal(value=int() | float() as number)) if number is not True:
            return -number
        case tree.ListLiteral():
            items = [_literal_value(item) for item in expr.items]
            values = [item for item in items if not isinstance(item, EllipsisType)]
            return values if len(values) == len(items) else ...
        case _:
            return ...
