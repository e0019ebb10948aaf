"""The lexer and the table-driven LALR(1) parser. `tables.py` generates the tables from the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict

from archspec.core.record import Record, from_values

TITLING = frozenset(("label",))
"""Keywords that are names unless they begin a statement and a string follows."""

Rule: TypeAlias = tuple[str, str, int, list[int]]
"""A production: its symbol, action, size, and inlined positions.

The action names a maker, or is "" to pass on a single child, or "_" for a list inlined in another rule. A reduction
pops `size` symbols from the stack; the children at the inlined positions are lists to be spliced.
"""


class ParserData(TypedDict):
    """The tables.

    `actions` maps, for each state, the kind of the next token to an action: n >= 0 shifts to state n, n < 0 reduces by
    `rules[~n]`. `gotos` maps the symbol of a reduction to the next state. `starts` holds the first and the last state
    of each start symbol. `origin` is the checksum of what they were generated from.
    """

    origin: int
    actions: list[dict[str, int]]
    gotos: list[dict[str, int]]
    rules: list[Rule]
    starts: dict[str, list[int]]
    literals: list[str]
    patterns: dict[str, str]


Children: TypeAlias = list[Any]
"""The children of a rule: tokens, and the results of the makers of nested rules."""

NodeMaker: TypeAlias = Callable[[Children], object]


class Token(Record):
    """A word, number, string, operator or line end.

    `kind` is the text of a keyword or operator, or NAME, WORD, INT, REAL, STRING or _NL; BAD for an invalid character.
    """

    start: int
    end: int
    kind: str
    text: str


class ArchSyntaxError(Exception):
    """A syntax error at characters `start` to `end`, with the data for a diagnostic."""

    def __init__(self, message: str, start: int, end: int, help: str | None = None, code: str = "syntax") -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.code = code


class UnexpectedTokenError(Exception):
    """An unexpected token or end of input at `index`; `accepted` takes the parser's `stack`."""

    def __init__(self, tokens: Sequence[Token], index: int, stack: list[int]) -> None:
        super().__init__()
        self.tokens = tokens
        self.index = index
        self.stack = stack


class Parser:
    """A lexer and a parser for one set of tables; `makers` construct the nodes."""

    def __init__(self, data: ParserData, makers: dict[str, NodeMaker], contextual: frozenset[str]) -> None:
        """`contextual` are the keywords that are names where the keyword is not allowed."""
        self._actions = data["actions"]
        self._gotos = data["gotos"]
        self._starts = data["starts"]
        maker_of_action: dict[str, NodeMaker | None] = {**makers, "": None, "_": _pass_children}
        self._rules = [
            (origin, maker_of_action[action], size, inlined) for origin, action, size, inlined in data["rules"]
        ]
        self._unit_reductions: dict[
            tuple[int, int, str], tuple[int, int | None]
        ] = {}  # cached results of `_reduce_units`
        self._contextual = contextual
        literals, patterns = data["literals"], data["patterns"]
        self.keywords = frozenset(text for text in literals if text.isalpha())
        signs = "|".join(re.escape(text) for text in literals if not text.isalpha())
        # After a single dot, every word is an address segment: `layer.0.1` does not contain the number 0.1.
        self._lexer = re.compile(
            rf"(?P<WORD>(?<=\.)(?<!\.\.){patterns['WORD']})|(?P<NAME>{patterns['NAME']})|(?P<_NL>{patterns['_NL']})"
            rf"|(?P<SIGN>{signs})|(?P<REAL>(?>{patterns['REAL']}))(?!\w)|(?P<INT>(?>{patterns['INT']}))(?!\w)"
            rf"|(?P<STRING>{patterns['STRING']})|(?P<BAD>[0-9]\w*|\S)"
        )

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of `text`; an invalid character becomes a token of kind BAD."""
        keywords = self.keywords - TITLING
        result: list[Token] = []
        for match in self._lexer.finditer(text):
            word = match[0]
            kind = match.lastgroup or ""
            if kind == "SIGN" or (kind == "NAME" and word in keywords):
                kind = word
            elif kind == "STRING" and result and result[-1].text in TITLING and _begins_statement(result):
                result[-1] = result[-1]._replace(kind=result[-1].text)
            result.append(from_values(Token, (*match.span(), kind, word)))
        return result

    def run(self, tokens: Sequence[Token], start: str) -> object:
        """Parse `tokens` as a `start`. Raises UnexpectedTokenError, or ArchSyntaxError from a maker."""
        actions, gotos, rules, contextual = self._actions, self._gotos, self._rules, self._contextual
        unit_reductions = self._unit_reductions
        state, last = self._starts[start]
        states: list[int] = [state]
        values: Children = []
        end = tokens[-1].end if tokens else 0
        for index, token in enumerate((*tokens, Token(end, end, "$END", ""))):
            kind = token.kind
            target: int | None = actions[state].get(kind)
            while target is None or target < 0:
                if target is None:
                    if kind not in contextual:
                        raise UnexpectedTokenError(tokens, index, states)
                    kind = "NAME"
                    target = actions[state].get(kind)
                    continue
                origin, make, size, inlined = rules[~target]
                if make is None:
                    key: tuple[int, int, str] = (states[-2], target, kind)
                    state, target = unit_reductions.get(key) or self._reduce_units(*key)
                    states[-1] = state
                else:
                    children: Children = []
                    if size:
                        children = values[-size:]
                        del values[-size:]
                        del states[-size:]
                        if inlined:
                            children = _splice(children, inlined)
                    values.append(make(children))
                    state = gotos[states[-1]][origin]
                    states.append(state)
                    target = actions[state].get(kind)
                if state == last and kind == "$END":
                    return values[0]
            state = target
            states.append(state)
            values.append(token)
        raise AssertionError

    def _reduce_units(self, below: int, target: int, kind: str) -> tuple[int, int | None]:
        """Return the parser state above `below` after `target` and all following unit reductions, and the next action.

        Cached, because a name passes through one unit rule for each operator precedence.
        """
        state, following = below, target
        while following is not None and following < 0 and self._rules[~following][1] is None:
            state = self._gotos[below][self._rules[~following][0]]
            following = self._actions[state].get(kind)
        result = self._unit_reductions[below, target, kind] = (state, following)
        return result

    def accepted(self, stack: list[int]) -> set[str]:
        """Return the kinds of token that are allowed next for a parser stack."""
        return {kind for kind in (*self._actions[stack[-1]], "$END") if self._is_accepted(list(stack), kind)}

    def _is_accepted(self, states: list[int], kind: str) -> bool:
        final_states = {last for _, last in self._starts.values()}
        while not (kind == "$END" and states[-1] in final_states):
            target = self._actions[states[-1]].get(kind)
            if target is None or target >= 0:
                return target is not None
            origin, _, size, _ = self._rules[~target]
            if size:
                del states[-size:]
            states.append(self._gotos[states[-1]][origin])
        return True


def _begins_statement(tokens: Sequence[Token]) -> bool:
    """Whether the last of some tokens begins a statement."""
    return len(tokens) == 1 or tokens[-2].kind in ("_NL", "{")


def _pass_children(children: Children) -> Children:
    return children


def _splice(children: Children, inlined: list[int]) -> Children:
    first = inlined[0]
    if first == 0:
        result: Children = children[0]  # the list is not shared and grows in place, in linear time
    else:
        result = children[:first]
        result.extend(children[first])
    for position in range(first + 1, len(children)):
        if position in inlined:
            result.extend(children[position])
        else:
            result.append(children[position])
    return result
