"""The LALR(1) tables of the grammar: plain data, shipped with the package, so that parsing needs no lark."""

from __future__ import annotations

import json
import os
from typing import Any, TypeAlias

from archspec.record import Record

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parser_tables.json")

STARTS = ("file", "item", "statement", "step", "expect", "expr")

ParserData: TypeAlias = dict[str, Any]
"""Plain data for JSON; see `shipped`."""


class Rule(Record):
    """A production.

    `action` names a maker, or is "" to pass on a single child, or "_" for a list inlined in another rule. `size`
    symbols are popped from the stack; those at the positions in `inlined` are lists to be spliced.
    """

    origin: str
    action: str
    size: int
    inlined: list[int]


def shipped() -> ParserData:
    """Return the tables that the package ships, as `archspec.syntax.generate` writes them.

    `actions` maps, for each state, the kind of the next token to an action: n >= 0 shifts to state n, n < 0 reduces by
    `rules[~n]`. `gotos` maps the symbol of a reduction to the next state. `starts` holds the first and the last state
    of each start symbol.
    """
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)
