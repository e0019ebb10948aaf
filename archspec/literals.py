"""Literals of the language outside a spec."""

from __future__ import annotations

from archspec.source import Report, Source
from archspec.syntax import tree
from archspec.syntax.simple import parse_simple


def literal(text: str, label: str) -> object:
    """Parse a number, `true`, `false`, `none`, string, name or list of these; Ellipsis for any other text."""
    expr = parse_simple(text)
    if expr is None:
        from archspec.syntax.parse import parse_expression  # which needs the parser's tables

        expr = parse_expression(Source(label, text), Report())
    return _value(expr) if expr is not None else ...


def _value(expr: tree.Expr) -> object:
    """Return the value of a literal expression; Ellipsis for any other."""
    match expr:
        case tree.Literal():
            return expr.value
        case tree.Name():
            return expr.text
        case tree.Unary(operator="-", operand=tree.Literal(value=int() | float() as number)) if number is not True:
            return -number
        case tree.Listing():
            items = [_value(item) for item in expr.items]
            return ... if ... in items else items
        case _:
            return ...
