"""The LALR(1) tables of the grammar as plain data, so that they can be cached and used without lark."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from archspec.resources import grammar_text

STARTS = ("file", "item", "statement", "step", "expect", "expr")

ParserData: TypeAlias = dict[str, Any]
"""Plain data for JSON; see `parser_data`."""


class Rule(NamedTuple):
    """A production.

    `action` names a maker, or is "" to pass on a single child, or "_" for a list inlined in another rule. `size`
    symbols are popped from the stack; those at the positions in `inlined` are lists to be spliced.
    """

    origin: str
    action: str
    size: int
    inlined: list[int]


def parser_data() -> ParserData:
    """Generate the tables from the grammar with lark.

    `actions` maps, for each state, the kind of the next token to an action: n >= 0 shifts to state n, n < 0 reduces by
    `rules[~n]`. `gotos` maps the symbol of a reduction to the next state. `starts` holds the first and the last state
    of each start symbol.
    """
    from lark import Lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import Lexer, TerminalDef

    class NoLexer(Lexer):
        """A stub: only the parser tables are used, and creating lark's lexer is slow."""

        def __init__(self, conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            raise AssertionError

    grammar: Any = Lark(grammar_text(), parser="lalr", lexer=NoLexer, start=list(STARTS), maybe_placeholders=False)
    data, memo = grammar.memo_serialize([TerminalDef, LarkRule])
    table: Any = data["parser"]["parser"]
    patterns = {t.name: t.pattern for t in grammar.terminals}
    kinds = {name: p.value if p.type == "str" else name for name, p in patterns.items()}
    numbers: dict[int, int] = {}
    rules: list[Rule] = []

    def action(entry: Any) -> int:
        kind, target = entry
        if kind == 0:
            return target
        key = target["@"]
        if key not in numbers:
            numbers[key] = len(rules)
            rules.append(_rule(memo[key]))
        return ~numbers[key]

    symbols: dict[int, str] = table["tokens"]
    kinds["$END"] = "$END"
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for _, row in sorted(table["states"].items()):
        named = {symbols[t]: action(entry) for t, entry in row.items()}
        actions.append({kinds[s]: n for s, n in named.items() if s in kinds})
        gotos.append({s: n for s, n in named.items() if s not in kinds})
    return {
        "actions": actions,
        "gotos": gotos,
        "rules": [list(rule) for rule in rules],
        "starts": {start: [table["start_states"][start], table["end_states"][start]] for start in STARTS},
        "literals": sorted((p.value for p in patterns.values() if p.type == "str"), key=len, reverse=True),
        "patterns": {name: p.value for name, p in patterns.items() if p.type == "re"},
    }


def check(data: ParserData) -> None:
    """Raise ValueError, TypeError, LookupError or AttributeError for invalid tables."""
    actions: list[dict[str, int]] = data["actions"]
    gotos: list[dict[str, int]] = data["gotos"]
    rules = [Rule(*rule) for rule in data["rules"]]
    reached = [n for row in (*actions, *gotos) for n in row.values()]
    reached += [state for start in STARTS for state in data["starts"][start]]
    numbers = [*reached, *(rule.size for rule in rules)]
    literals: list[str] = data["literals"]
    words = [*literals, *data["patterns"].values()]
    if {type(n) for n in numbers} != {int} or {type(w) for w in words} != {str} or type(literals) is not list:
        raise ValueError("invalid parser tables")
    if not literals or not all(words) or len(gotos) != len(actions):
        raise ValueError("incomplete parser tables")
    if min(reached) < -len(rules) or max(reached) >= len(actions):
        raise ValueError("invalid state in parser tables")


def _rule(data: Any) -> Rule:
    origin: str = data["origin"]["name"]
    symbols: list[dict[str, Any]] = data["expansion"]
    inlined = [i for i, s in enumerate(symbols) if s["__type__"] == "NonTerminal" and s["name"].startswith("_")]
    if origin.startswith("_"):
        action = "_"
    elif data["options"]["expand1"] and not data["alias"] and len(symbols) == 1:
        action = ""
    else:
        action = data["alias"] or origin
    return Rule(origin, action, len(symbols), inlined)
