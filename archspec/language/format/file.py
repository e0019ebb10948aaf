"""Files as rows: items, bodies, and the comments and empty lines between statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from archspec.core.record import Record
from archspec.language.format.expressions import Layout
from archspec.language.format.rows import Row
from archspec.language.format.statements import INDENT, Statements
from archspec.language.syntax.concrete import ConcretePart, ConcreteTree, RuleNode, tokens_in
from archspec.language.syntax.tree import Comment

_HEADING = frozenset(("imports", "dims"))
_NESTED = frozenset(("definition", "model", "branch", "repeat"))


class _Entry(Record):
    """A statement, a comment, or text that stays as it is (`node` is None), at characters `start` to `end`."""

    start: int
    end: int
    node: RuleNode | Comment | None


class FileRows:
    """Makes the rows of a file."""

    def __init__(self, text: str, tree: ConcreteTree) -> None:
        self._text = text
        self._layout = Layout(text, tree.comments)
        self._statements = Statements(self._layout)
        self.rows: list[Row] = []
        self._body(_branches(tree.file), 0, len(text), 0)

    def _body(self, nodes: Sequence[RuleNode], start: int, end: int, indent: int) -> None:
        """Add the rows of statements, and of the comments and the unreadable text between them."""
        self._statements.separate()
        before: _Entry | None = None
        beside = self.rows[-1] if self.rows else None
        last = start
        for entry in self._entries(nodes, start, end):
            between = self._text[last : entry.start]
            if isinstance(entry.node, Comment) and "\n" not in between and beside is not None:
                self._comment_beside(beside, between, entry.node)
            else:
                if before is not None and (between.count("\n") > 1 or _are_apart(before.node, entry.node)):
                    self.rows.append(Row(None, (), ""))
                    self._statements.separate()
                first = len(self.rows)
                self._entry(entry, indent)
                before, beside = entry, self._beside(entry, first)
            last = entry.end

    def _entries(self, nodes: Sequence[RuleNode], start: int, end: int) -> Iterator[_Entry]:
        """Yield statements, and the comments and the unreadable text between them."""
        for node in nodes:
            yield from self._between(start, node.start)
            length = len(self._text[node.start : node.end].rstrip())  # a missing brace is only at the next item
            yield _Entry(node.start, node.start + length, node)
            start = node.end
        yield from self._between(start, end)

    def _between(self, start: int, end: int) -> Iterator[_Entry]:
        comments = self._layout.comments_in(start, end)
        unread = list(self._text[start:end])
        for comment in comments:
            unread[comment.start - start : comment.end - start] = " " * (comment.end - comment.start)
        found = re.search(r"\S(?:.*\S)?", "".join(unread), re.DOTALL)
        first, last = (start + found.start(), start + found.end()) if found else (end, end)
        yield from (_Entry(comment.start, comment.end, comment) for comment in comments if comment.start < first)
        if found:
            yield _Entry(first, last, None)
        yield from (_Entry(comment.start, comment.end, comment) for comment in comments if comment.start >= last)

    def _entry(self, entry: _Entry, indent: int) -> None:
        match entry.node:
            case Comment(_, _, text):
                self._statements.separate()
                self.rows.append(Row(indent, (), text))
            case RuleNode() as node if all(token.text for token in tokens_in(node)):
                self._statement(node, indent)
            case _:  # unreadable, or without a closing brace
                self._unchanged(entry.start, entry.end)

    def _beside(self, entry: _Entry, first: int) -> Row:
        """Return the row, from the `first` on, to which a comment at the end of a statement belongs.

        That is the last one; but if the statement was in one line and no longer is, that of its loop or its beginning.
        """
        rows = self.rows[first:]
        if isinstance(entry.node, RuleNode) and "\n" not in self._text[entry.start : entry.end]:
            if entry.node.rule in _NESTED:
                return rows[0]
            repeated = (row for row, (_, step) in zip(rows[1:], _steps(entry.node), strict=False) if _has_loop(step))
            return next(repeated, rows[-1])
        return rows[-1]

    # Statements -------------------------------------------------------------------------------------------------------

    def _statement(self, node: RuleNode, indent: int) -> None:
        match node.rule:
            case "definition":
                self._definition(node)
            case "model":
                self._model(node)
            case "branch" | "repeat":
                self._nested(node, indent)
            case _:
                self._simple(node, indent)

    def _simple(self, node: RuleNode, indent: int) -> None:
        """Add the rows of a statement without a body."""
        comments = self._layout.comments_in(node.start, node.end)
        steps = _steps(node)
        gaps = [self._layout.comments_in(start, step.start) for start, step in steps]
        if sum(map(len, gaps)) + self._layout.comments_in_brackets(node) < len(comments):
            self._unchanged(node.start, node.end)
            return
        rows = self._statements.rows(node, indent, in_steps=any(gaps))
        if any(gaps):
            for i, gap in reversed(list(enumerate(gaps, 1))):
                for comment in reversed(gap):
                    between = self._text[steps[i - 1][0] : comment.start]
                    if "\n" in between:
                        rows.insert(i, Row(indent + INDENT, (), comment.text))
                    else:
                        self._comment_beside(rows[i - 1], between, comment)
        self.rows += rows

    def _definition(self, node: RuleNode) -> None:
        *head, body = node.children
        comments = self._layout.comments_in(node.start, body.start)
        if sum(map(self._layout.comments_in_brackets, head)) < len(comments):
            self._unchanged(node.start, body.start + 1)
        else:
            self.rows.append(self._statements.head(head, " {"))
        self._inside(body, 0)
        self.rows.append(Row(0, (), "}"))

    def _model(self, node: RuleNode) -> None:
        *head, expects = node.children
        if not _is(expects, "expects"):
            head, expects = node.children, None
        comments = self._layout.comments_in(node.start, expects.start if expects else node.end)
        if sum(map(self._layout.comments_in_brackets, head)) < len(comments):
            self._unchanged(node.start, node.end)
            return
        inside = list(self._entries(_branches(expects), expects.start + 1, expects.end - 1)) if expects else []
        match inside:
            case [_Entry(_, _, RuleNode() as only)]:
                self.rows.append(self._statements.model(head, only))
            case _:
                self.rows.append(self._statements.model(head, None, " {" if expects else ""))
                if expects:
                    self._inside(expects, 0)
                    self.rows.append(Row(0, (), "}"))

    def _nested(self, node: RuleNode, indent: int) -> None:
        """Add the rows of a branch or a loop."""
        if self._layout.comments_in_brackets(node) < len(self._layout.comments_in(node.start, node.end)):
            self._unchanged(node.start, node.end)
            return
        before = ""
        rest: Sequence[ConcretePart] = [node]
        while rest:
            part = rest[0]
            if _is(part, "branch") or _is(part, "repeat"):
                assert isinstance(part, RuleNode)
                at = next(i for i, child in enumerate(part.children) if _is(child, "body"))
                self.rows.append(self._statements.opening(before, part.rule, part.children[:at], indent))
                body, rest = part.children[at], part.children[at + 2 :]
            else:
                self.rows.append(Row(indent, (), f"{before}{{"))
                body, rest = part, []
            self._inside(body, indent)
            before = "} else "
        self.rows.append(Row(indent, (), "}"))

    def _inside(self, body: ConcretePart, indent: int) -> None:
        assert isinstance(body, RuleNode)
        self._body(_branches(body), body.start + 1, body.end - 1, indent + INDENT)
        self._statements.separate()

    # Text that stays as it is -----------------------------------------------------------------------------------------

    def _unchanged(self, start: int, end: int) -> None:
        self._statements.separate()
        line = self._text.rfind("\n", 0, start) + 1
        start = start if self._text[line:start].strip() else line
        self.rows.append(Row(None, (), self._text[start:end]))

    def _comment_beside(self, row: Row, between: str, comment: Comment) -> None:
        row.comment += comment.text if row.indent is not None else between + comment.text


def _are_apart(first: RuleNode | Comment | None, second: RuleNode | Comment | None) -> bool:
    """Whether there is an empty line between two items even if there was none."""
    if _is(first, "definition"):
        return True
    if not (isinstance(first, RuleNode) and isinstance(second, RuleNode)):
        return False
    return _is(second, "definition") or (first.rule in _HEADING) != (second.rule in _HEADING)


def _has_loop(step: RuleNode) -> bool:
    return any(_is(part, "repeated") for part in step.children)


def _steps(node: RuleNode) -> list[tuple[int, RuleNode]]:
    """Return the steps of the chains of a statement, each with the end of what precedes it."""
    chains = [part for part in _branches(node) if part.rule == "chain"]
    return [
        (before.end, step)
        for chain in chains
        for before, step in pairwise(chain.children)
        if isinstance(step, RuleNode)
    ]


def _branches(node: ConcretePart) -> list[RuleNode]:
    assert isinstance(node, RuleNode)
    return [part for part in node.children if isinstance(part, RuleNode)]


def _is(part: object, rule: str) -> bool:
    return isinstance(part, RuleNode) and part.rule == rule
