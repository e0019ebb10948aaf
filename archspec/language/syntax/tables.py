"""Parser tables: plain data, which lark generates from the grammar, so that parsing does not need lark.

A wheel contains the tables. In a checkout, `load_tables` generates them if they are missing or older than the grammar.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, NoReturn
from zlib import crc32

from archspec.core.diagnostics import make_error
from archspec.core.resources import grammar_path, grammar_text, package_path
from archspec.language.syntax.machine import ParserData, Rule

PATH = package_path("language", "syntax", "parser_tables.json")

STARTS = ("file", "item", "statement", "step", "expect", "expr")


def load_tables() -> ParserData:
    """Return the tables. Raises ArchError if they must be generated and lark is not installed."""
    is_checkout = not os.path.isdir(package_path("grammars"))
    origin = _fingerprint() if is_checkout else None
    with suppress(OSError, ValueError):
        with open(PATH, encoding="utf-8") as file:
            tables: ParserData = json.load(file)
        if not is_checkout or tables["origin"] == origin:
            return tables
    tables = generate()
    with suppress(OSError):  # in a read-only checkout, they are generated each time
        write_tables(tables)
    return tables


def write_tables(tables: ParserData) -> None:
    """Write the tables to their file, which other processes may read at the same time."""
    temporary = f"{PATH}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(json.dumps(tables, separators=(",", ":")) + "\n")
    os.replace(temporary, PATH)


def _fingerprint() -> int:
    """Return a checksum of the grammar and of this module."""
    result = 0
    for path in (grammar_path(), __file__):
        with open(path, "rb") as file:
            result = crc32(file.read(), result)
    return result


def generate() -> ParserData:
    """Generate the tables from the grammar with lark."""
    try:
        from lark import Lark
        from lark.grammar import Rule as LarkRule
        from lark.lexer import Lexer, TerminalDef
    except ImportError:
        message = "lark is required to generate the parser tables of a checkout, but not installed"
        raise make_error("missing-package", message, help="run `pip install lark`") from None

    class NoLexer(Lexer):
        """A stub: only the parser tables are used, and creating lark's lexer is slow."""

        def __init__(self, conf: object) -> None:
            pass

        def lex(self, lexer_state: object, parser_state: object) -> NoReturn:
            raise AssertionError

    grammar: Any = Lark(grammar_text(), parser="lalr", lexer=NoLexer, start=list(STARTS), maybe_placeholders=False)
    tables, memo = grammar.memo_serialize([TerminalDef, LarkRule])
    table = tables["parser"]["parser"]
    patterns = {t.name: t.pattern for t in grammar.terminals}
    kinds = {name: p.value if p.type == "str" else name for name, p in patterns.items()}
    numbers: dict[int, int] = {}
    rules: list[Rule] = []

    def convert_action(entry: tuple[int, Any]) -> int:
        kind, target = entry
        if kind == 0:
            return target
        key = target["@"]
        if key not in numbers:
            numbers[key] = len(rules)
            rules.append(_convert_rule(memo[key]))
        return ~numbers[key]

    symbols: dict[int, str] = table["tokens"]
    kinds["$END"] = "$END"
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for _, row in sorted(table["states"].items()):
        actions_by_symbol = {symbols[t]: convert_action(entry) for t, entry in row.items()}
        actions.append({kinds[s]: n for s, n in actions_by_symbol.items() if s in kinds})
        gotos.append({s: n for s, n in actions_by_symbol.items() if s not in kinds})
    starts = {start: [table["start_states"][start], table["end_states"][start]] for start in STARTS}
    literals = [p.value for p in patterns.values() if p.type == "str"]
    data: ParserData = {
        "origin": _fingerprint(),
        "actions": actions,
        "gotos": gotos,
        "rules": rules,
        "starts": starts,
        "literals": sorted(literals, key=lambda literal: (-len(literal), literal)),
        "patterns": {name: p.value for name, p in sorted(patterns.items()) if p.type == "re"},
    }
    return _renumber(data)


def _renumber(data: ParserData) -> ParserData:
    """Number states and rules in the order of traversal from the start states: lark's numbers differ between runs."""
    actions, gotos, starts = data["actions"], data["gotos"], data["starts"]
    states = dict.fromkeys(state for state, _ in starts.values())
    numbers: dict[int, int] = {}
    queue = list(states)
    for state in queue:
        for _, target in (*sorted(actions[state].items()), *sorted(gotos[state].items())):
            if target < 0:
                numbers.setdefault(~target, len(numbers))
            elif target not in states:
                states[target] = None
                queue.append(target)
    order = {state: number for number, state in enumerate(states)}

    def renumber_row(row: dict[str, int]) -> dict[str, int]:
        return {symbol: order[n] if n >= 0 else ~numbers[~n] for symbol, n in sorted(row.items())}

    return {
        **data,
        "actions": [renumber_row(actions[state]) for state in states],
        "gotos": [renumber_row(gotos[state]) for state in states],
        "rules": [data["rules"][number] for number in numbers],
        "starts": {start: [order[state] for state in ends] for start, ends in starts.items()},
    }


def _convert_rule(data: dict[str, Any]) -> Rule:
    origin: str = data["origin"]["name"]
    symbols = data["expansion"]
    inlined = [i for i, s in enumerate(symbols) if s["__type__"] == "NonTerminal" and s["name"].startswith("_")]
    if origin.startswith("_"):
        action = "_"
    elif data["options"]["expand1"] and not data["alias"] and len(symbols) == 1:
        action = ""
    else:
        action = data["alias"] or origin
    return origin, action, len(symbols), inlined
