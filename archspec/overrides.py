"""`--set name=value`: what it gives a hyperparameter."""

from __future__ import annotations

import re
from typing import Any

from archspec.source import Report, Source, fail
from archspec.syntax import tree
from archspec.syntax.simple import parse_simple

_WORD = re.compile(r"[A-Za-z_]\w*")


def parse_override(text: str) -> tuple[str, Any]:
    """The name and value in `name=value`.

    A value is written as in the language: a number, `true`, `false`, `none`, a string, a list of these; a word stands
    for a string, or for the definition or function that it names. Raises ArchError (`bad-override`) for anything else.
    """
    name, separator, written = text.partition("=")
    name = name.strip()
    if not separator or not _WORD.fullmatch(name):
        raise fail(
            "bad-override", f"invalid --set `{text}`: expected name=value", help="write it as in `--set layers=6`"
        )
    written = written.strip()
    if _WORD.fullmatch(written) and written not in ("true", "false", "none", "inf"):
        return name, written
    expr = parse_simple(written) or _expression(written)
    value = _value(expr) if expr is not None else ...
    if value is ...:
        raise fail(
            "bad-override",
            f"invalid value for `{name}`: `{written}`",
            help="use a number, `true`, `false`, `none`, a name, a string or a list",
        )
    return name, value


def _expression(text: str) -> tree.Expr | None:
    from archspec.syntax.parse import parse_expression

    return parse_expression(Source("--set", text), Report())


def _value(expr: tree.Expr) -> Any:
    """The value of a literal expression; Ellipsis for any other."""
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
