"""The concrete syntax tree: every token, for the formatter.

It comes from the same grammar, parser and recovery as the syntax tree of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TypeAlias

from archspec.core.diagnostics import Report, Source
from archspec.core.record import Record
from archspec.language.syntax.machine import ArchSyntaxError, Children, Parser, Token
from archspec.language.syntax.parse import CONTEXTUAL, parse_source
from archspec.language.syntax.tables import load_tables
from archspec.language.syntax.tree import Comment, UnparsedRange

MAX_HEIGHT = 300
"""The maximum height of a tree below a statement. A higher tree exceeds the limits of the compiler, too."""

_STATEMENTS = frozenset(("body", "branch", "repeat", "definition", "model", "expects", "file"))


class RuleNode:
    """A node for a grammar rule, at characters `start` to `end` (exclusive): tokens and non-empty nested nodes.

    `height` is the height of the tree below the node, down to the next nested statement.
    """

    __slots__ = ("children", "end", "height", "rule", "start")
    __match_args__ = ("rule", "children")

    def __init__(self, rule: str, children: list[ConcretePart], start: int, end: int, height: int) -> None:
        self.rule = rule
        self.children = children
        self.start = start
        self.end = end
        self.height = height


ConcretePart: TypeAlias = RuleNode | Token


class ConcreteTree(Record):
    """The tree of a file, with its comments and the ranges that could not be parsed, which the tree lacks."""

    file: RuleNode
    comments: tuple[Comment, ...]
    broken: tuple[UnparsedRange, ...]


def parse_concrete(source: Source, report: Report) -> ConcreteTree:
    """Parse a file. Unlike `parse`, this does not report errors detected by the makers of the compiler's tree."""
    file, comments, broken = parse_source(source, report, _machine())
    assert isinstance(file, RuleNode)
    return ConcreteTree(file, comments, broken)


def tokens_in(root: ConcretePart) -> Iterator[Token]:
    """Yield the tokens of a tree in the order of the file, without line ends."""
    pending = [root]
    while pending:
        part = pending.pop()
        if isinstance(part, RuleNode):
            pending += reversed(part.children)
        elif part.kind != "_NL":
            yield part


@cache
def _machine() -> Parser:
    from archspec.language.syntax.build import MAKERS

    return Parser(load_tables(), {rule: partial(_branch, rule) for rule in MAKERS}, CONTEXTUAL)


def _branch(rule: str, children: Children) -> RuleNode:
    parts: list[ConcretePart] = [part for part in children if isinstance(part, Token) or part.children]
    if not parts:
        return RuleNode(rule, [], -1, -1, 0)
    height = 0
    if rule not in _STATEMENTS:
        height = 1 + max(part.height if isinstance(part, RuleNode) else 0 for part in parts)
    start, end = parts[0].start, parts[-1].end
    if height > MAX_HEIGHT:
        raise ArchSyntaxError("expression is nested too deeply", start, end, "assign parts of it to names", "budget")
    return RuleNode(rule, parts, start, end, height)
