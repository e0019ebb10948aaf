"""Requirements of a spec as checks of arguments."""

from __future__ import annotations

import ast

from archspec.pytorch.pyast import literal, names_in, negated, py
from archspec.pytorch.static_code import StaticCode
from archspec.resolve import nodes


def requirement(static: StaticCode, statement: nodes.Require) -> list[ast.stmt]:
    """The check of a requirement, unless it is about no argument."""
    with static.verbatim():
        condition = static.code(statement.condition)
    if not names_in([condition]):
        return []
    at = statement.condition.at
    text = " ".join(static.scope.unit.source.text[at.start : at.end].split())
    told = literal(statement.message or f"required: {text}")
    return [ast.If(negated(condition), [ast.Raise(py("ValueError(told)", told=told))], [])]
