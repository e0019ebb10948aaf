"""Numbers and constants, which need no parser: most of what `--set` is given."""

from __future__ import annotations

import re

from archspec.syntax.tree import Expr, Literal, Unary

_SIMPLE = re.compile(r"true|false|none|-?(?:[0-9]{1,18}|[0-9]{1,9}(?:\.[0-9]{1,9})?(?:e-?[0-9]{1,2})?)")
_CONSTANTS = {"true": True, "false": False, "none": None}


def parse_simple(text: str) -> Expr | None:
    """Return the expression of a number or a constant; None for anything else."""
    word = text.strip()
    return _parsed(word, len(text) - len(text.lstrip())) if _SIMPLE.fullmatch(word) else None


def _parsed(text: str, start: int) -> Expr:
    """Parse a number or a constant, the most common values on a command line."""
    end = start + len(text)
    if text.startswith("-"):
        return Unary(start, end, "-", _parsed(text[1:], start + 1))
    value = _CONSTANTS[text] if text in _CONSTANTS else int(text) if text.isdigit() else float(text)
    return Literal(start, end, value)
