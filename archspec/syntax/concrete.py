"""The concrete syntax tree: every token, as a formatter needs them. It comes from the same grammar, parser and recovery
as the syntax tree of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TypeAlias

from archspec.record import Record
from archspec.source import Report, Source
from archspec.syntax.machine import Children, Fault, Machine, Token
from archspec.syntax.parse import CONTEXTUAL, read
from archspec.syntax.parser_tables import shipped
from archspec.syntax.tree import Broken, Comment

TALLEST = 300
"""The maximum height of a tree below a statement. Anything taller exceeds the limits of the compiler, too."""

_STATEMENTS = frozenset(("body", "branch", "repeat", "definition", "model", "expects", "file"))


class Branch:
    """What a rule of the grammar matched: tokens, and branches of other rules that have any.

    It has characters `start` to `end` (exclusive). `height` is that of the tree, up to the next statement.
    """

    __slots__ = ("children", "end", "height", "rule", "start")
    __match_args__ = ("rule", "children")

    def __init__(self, rule: str, children: list[Part], start: int, end: int, height: int) -> None:
        self.rule = rule
        self.children = children
        self.start = start
        self.end = end
        self.height = height


Part: TypeAlias = Branch | Token


class Concrete(Record):
    """The tree of a file, and what it does not contain: comments, and the ranges that could not be parsed."""

    file: Branch
    comments: tuple[Comment, ...]
    broken: tuple[Broken, ...]


def concrete(source: Source, report: Report) -> Concrete:
    """Parse a file as `parse` does; errors that only the nodes of the compiler's tree show are not reported."""
    file, comments, broken = read(source, report, _machine())
    assert isinstance(file, Branch)
    return Concrete(file, comments, broken)


def tokens_in(part: Part) -> Iterator[Token]:
    """Yield the tokens of a tree in the order of the file, without line ends."""
    pending = [part]
    while pending:
        found = pending.pop()
        if isinstance(found, Branch):
            pending += reversed(found.children)
        elif found.kind != "_NL":
            yield found


@cache
def _machine() -> Machine:
    from archspec.syntax.build import MAKERS

    return Machine(shipped(), {rule: partial(_branch, rule) for rule in MAKERS}, CONTEXTUAL)


def _branch(rule: str, children: Children) -> Branch:
    parts: list[Part] = [part for part in children if isinstance(part, Token) or part.children]
    if not parts:
        return Branch(rule, [], -1, -1, 0)
    height = 0
    if rule not in _STATEMENTS:
        height = 1 + max(part.height if isinstance(part, Branch) else 0 for part in parts)
    start, end = parts[0].start, parts[-1].end
    if height > TALLEST:
        raise Fault("expression is nested too deeply", start, end, "assign parts of it to names", "budget")
    return Branch(rule, parts, start, end, height)
