"""Literals of the language outside a spec; a separate module, so that the parser is loaded only if needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import cast

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
    return _literal_value(expr, text) if expr is not None else ...


def expression(source: Source, report: Report) -> tree.Expr | None:
    """Parse an expression; None after reporting an error."""
    from archspec.language.syntax.parse import parse_expression  # imported late: most values need no parser

    return parse_expression(source, report)


def definition_names(value: object) -> Iterator[str]:
    """Yield the names in `Name` or `Name(n = 4)`, a definition with hyperparameters bound, and in lists of these.

    Any other value has none.
    """
    if isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from definition_names(item)
    elif not isinstance(value, str):
        return
    elif _NAME_PATTERN.fullmatch(value):
        yield value
    elif _CALL_PATTERN.match(value):
        expr = expression(Source("", value), Report())
        if isinstance(expr, tree.Call) and isinstance(expr.callee, tree.Name):
            yield from names_in(expr)


def _literal_value(expr: tree.Expr, text: str) -> PlainValue | EllipsisType:
    """Return the value of a literal expression in `text`; Ellipsis for any other."""
    match expr:
        case tree.Literal():
            return expr.value
        case tree.Name():
            return expr.text
        case tree.Unary(operator="-", operand=tree.Literal(value=int() | float() as number)) if number is not True:
            return -number
        case tree.ListLiteral():
            items = [
                text[item.start : item.end] if _is_partial(item) else _literal_value(item, text) for item in expr.items
            ]
            values = [item for item in items if not isinstance(item, EllipsisType)]
            return values if len(values) == len(items) else ...
        case _:
            return ...


def _is_partial(expr: tree.Expr) -> bool:
    """Whether an expression is a definition with hyperparameters bound by name: `Name(n = 4)`."""
    return (
        isinstance(expr, tree.Call)
        and isinstance(expr.callee, tree.Name)
        and all(item.name for arguments in expr.lists for item in arguments.items)
    )
