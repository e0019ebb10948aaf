"""The LALR(1) tables of the grammar: plain data, shipped with the package, so that parsing needs no lark."""

from __future__ import annotations

import json
from typing import TypeAlias, TypedDict

from archspec.core.resources import package_path

PATH = package_path("language", "syntax", "parser_tables.json")

STARTS = ("file", "item", "statement", "step", "expect", "expr")

Rule: TypeAlias = tuple[str, str, int, list[int]]
"""A production: its symbol, action, size, and inlined positions.

The action names a maker, or is "" to pass on a single child, or "_" for a list inlined in another rule. As many symbols
as its size are popped from the stack; those at the inlined positions are lists to be spliced.
"""


class ParserData(TypedDict):
    """The tables.

    `actions` maps, for each state, the kind of the next token to an action: n >= 0 shifts to state n, n < 0 reduces by
    `rules[~n]`. `gotos` maps the symbol of a reduction to the next state. `starts` holds the first and the last state
    of each start symbol.
    """

    actions: list[dict[str, int]]
    gotos: list[dict[str, int]]
    rules: list[Rule]
    starts: dict[str, list[int]]
    literals: list[str]
    patterns: dict[str, str]


def load_tables() -> ParserData:
    """Return the tables that the package ships, as `archspec.language.syntax.generate` writes them."""
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)
