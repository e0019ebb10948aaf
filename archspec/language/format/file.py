"""Rows of files: items, bodies, and the comments and empty lines between statements."""

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

_HEADER_RULES = frozenset(("imports", "dims"))
_WITH_BODY = frozenset(("definition", "model", "branch", "repeat"))


class _Entry(Record):
    """A statement, a comment, or text that stays unchanged (`node` is None), at characters `start` to `end`."""

    start: int
    end: int
    node: RuleNode | Comment | None


class FileRows:
    """Creates the rows of a file."""

    def __init__(self, text: str, tree: ConcreteTree) -> None:
        self._text = text
        self._layout = Layout(text, tree.comments)
        self._statements = Statements(self._layout)
        self.rows: list[Row] = []
        self._add_body(_nested_nodes(tree.file), 0, len(text), 0)

    def _add_body(self, nodes: Sequence[RuleNode], start: int, end: int, indent: int) -> None:
        """Add the rows of statements, and of the comments and the unparsable text between them."""
        self._statements.separate()
        previous: _Entry | None = None
        comment_row = self.rows[-1] if self.rows else None
        last = start
        for entry in self._entries(nodes, start, end):
            between = self._text[last : entry.start]
            if isinstance(entry.node, Comment) and "\n" not in between and comment_row is not None:
                self._append_comment(comment_row, between, entry.node)
            else:
                if previous is not None and (between.count("\n") > 1 or _are_separated(previous.node, entry.node)):
                    self.rows.append(Row(None, (), ""))
                    self._statements.separate()
                first = len(self.rows)
                self._add_entry(entry, indent)
                previous, comment_row = entry, self._comment_row(entry, first)
            last = entry.end

    def _entries(self, nodes: Sequence[RuleNode], start: int, end: int) -> Iterator[_Entry]:
        """Yield statements, and the comments and the unparsable text between them."""
        for node in nodes:
            yield from self._gap_entries(start, node.start)
            length = len(self._text[node.start : node.end].rstrip())  # an inserted brace is at the next item
            yield _Entry(node.start, node.start + length, node)
            start = node.end
        yield from self._gap_entries(start, end)

    def _gap_entries(self, start: int, end: int) -> Iterator[_Entry]:
        comments = self._layout.comments_in(start, end)
        characters = list(self._text[start:end])
        for comment in comments:
            characters[comment.start - start : comment.end - start] = " " * (comment.end - comment.start)
        unparsable = re.search(r"\S(?:.*\S)?", "".join(characters), re.DOTALL)
        first, last = (start + unparsable.start(), start + unparsable.end()) if unparsable else (end, end)
        yield from (_Entry(comment.start, comment.end, comment) for comment in comments if comment.start < first)
        if unparsable:
            yield _Entry(first, last, None)
        yield from (_Entry(comment.start, comment.end, comment) for comment in comments if comment.start >= last)

    def _add_entry(self, entry: _Entry, indent: int) -> None:
        match entry.node:
            case Comment(_, _, text):
                self._statements.separate()
                self.rows.append(Row(indent, (), text))
            case RuleNode() as node if all(token.text for token in tokens_in(node)):
                self._add_statement(node, indent)
            case _:  # unparsable, or without a closing brace
                self._add_unchanged(entry.start, entry.end)

    def _comment_row(self, entry: _Entry, first: int) -> Row:
        """Return the row, at index `first` or later, of a comment at the end of a statement.

        It is the last row, but the row of the loop or the first row for a one-line statement that has several rows now.
        """
        rows = self.rows[first:]
        if isinstance(entry.node, RuleNode) and "\n" not in self._text[entry.start : entry.end]:
            if entry.node.rule in _WITH_BODY:
                return rows[0]
            repeated = (row for row, (_, step) in zip(rows[1:], _steps(entry.node), strict=False) if _has_loop(step))
            return next(repeated, rows[-1])
        return rows[-1]

    # Statements -------------------------------------------------------------------------------------------------------

    def _add_statement(self, node: RuleNode, indent: int) -> None:
        match node.rule:
            case "definition":
                self._add_definition(node)
            case "model":
                self._add_model(node)
            case "branch" | "repeat":
                self._add_nested(node, indent)
            case _:
                self._add_simple(node, indent)

    def _add_simple(self, node: RuleNode, indent: int) -> None:
        """Add the rows of a statement without a body."""
        comments = self._layout.comments_in(node.start, node.end)
        steps = _steps(node)
        gaps = [self._layout.comments_in(start, step.start) for start, step in steps]
        if sum(map(len, gaps)) + self._layout.comments_in_brackets(node) < len(comments):
            self._add_unchanged(node.start, node.end)
            return
        rows = self._statements.rows(node, indent, in_steps=any(gaps))
        if any(gaps):
            for i, gap in reversed(list(enumerate(gaps, 1))):
                for comment in reversed(gap):
                    between = self._text[steps[i - 1][0] : comment.start]
                    if "\n" in between:
                        rows.insert(i, Row(indent + INDENT, (), comment.text))
                    else:
                        self._append_comment(rows[i - 1], between, comment)
        self.rows += rows

    def _add_definition(self, node: RuleNode) -> None:
        *head, body = node.children
        comments = self._layout.comments_in(node.start, body.start)
        if sum(map(self._layout.comments_in_brackets, head)) < len(comments):
            self._add_unchanged(node.start, body.start + 1)
        else:
            self.rows.append(self._statements.signature(head, " {"))
        self._add_indented_body(body, 0)
        self.rows.append(Row(0, (), "}"))

    def _add_model(self, node: RuleNode) -> None:
        *head, expects = node.children
        if not _is_rule(expects, "expects"):
            head, expects = node.children, None
        comments = self._layout.comments_in(node.start, expects.start if expects else node.end)
        if sum(map(self._layout.comments_in_brackets, head)) < len(comments):
            self._add_unchanged(node.start, node.end)
            return
        inside = list(self._entries(_nested_nodes(expects), expects.start + 1, expects.end - 1)) if expects else []
        match inside:
            case [_Entry(_, _, RuleNode() as only)]:
                self.rows.append(self._statements.model(head, only))
            case _:
                self.rows.append(self._statements.model(head, None, " {" if expects else ""))
                if expects:
                    self._add_indented_body(expects, 0)
                    self.rows.append(Row(0, (), "}"))

    def _add_nested(self, node: RuleNode, indent: int) -> None:
        """Add the rows of a branch or a loop."""
        if self._layout.comments_in_brackets(node) < len(self._layout.comments_in(node.start, node.end)):
            self._add_unchanged(node.start, node.end)
            return
        prefix = ""
        parts: Sequence[ConcretePart] = [node]
        while parts:
            part = parts[0]
            if _is_rule(part, "branch") or _is_rule(part, "repeat"):
                assert isinstance(part, RuleNode)
                body_index = next(i for i, child in enumerate(part.children) if _is_rule(child, "body"))
                self.rows.append(self._statements.opening(prefix, part.rule, part.children[:body_index], indent))
                body, parts = part.children[body_index], part.children[body_index + 2 :]
            else:
                self.rows.append(Row(indent, (), f"{prefix}{{"))
                body, parts = part, []
            self._add_indented_body(body, indent)
            prefix = "} else "
        self.rows.append(Row(indent, (), "}"))

    def _add_indented_body(self, body: ConcretePart, indent: int) -> None:
        assert isinstance(body, RuleNode)
        self._add_body(_nested_nodes(body), body.start + 1, body.end - 1, indent + INDENT)
        self._statements.separate()

    # Unchanged text ---------------------------------------------------------------------------------------------------

    def _add_unchanged(self, start: int, end: int) -> None:
        self._statements.separate()
        line = self._text.rfind("\n", 0, start) + 1
        start = start if self._text[line:start].strip() else line
        self.rows.append(Row(None, (), self._text[start:end]))

    def _append_comment(self, row: Row, between: str, comment: Comment) -> None:
        row.comment += comment.text if row.indent is not None else between + comment.text


def _are_separated(first: RuleNode | Comment | None, second: RuleNode | Comment | None) -> bool:
    """Whether an empty line separates two items even if the source has none."""
    if _is_rule(first, "definition"):
        return True
    if not (isinstance(first, RuleNode) and isinstance(second, RuleNode)):
        return False
    return _is_rule(second, "definition") or (first.rule in _HEADER_RULES) != (second.rule in _HEADER_RULES)


def _has_loop(step: RuleNode) -> bool:
    return any(_is_rule(part, "repeated") for part in step.children)


def _steps(node: RuleNode) -> list[tuple[int, RuleNode]]:
    """Return the steps of the chains of a statement, each with the end of the preceding part."""
    chains = [part for part in _nested_nodes(node) if part.rule == "chain"]
    return [
        (previous.end, step)
        for chain in chains
        for previous, step in pairwise(chain.children)
        if isinstance(step, RuleNode)
    ]


def _nested_nodes(node: ConcretePart) -> list[RuleNode]:
    assert isinstance(node, RuleNode)
    return [part for part in node.children if isinstance(part, RuleNode)]


def _is_rule(part: object, rule: str) -> bool:
    return isinstance(part, RuleNode) and part.rule == rule
