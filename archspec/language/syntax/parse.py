"""Parsing of files (`parse`) and of single values (`parse_expression`). Neither raises for invalid text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import TypeVar, cast

from archspec.core.diagnostics import Report, Source, Span
from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.lines import MAX_ERRORS, ScanResult, scan
from archspec.language.syntax.machine import TITLING, ArchSyntaxError, Parser, Token, UnexpectedTokenError
from archspec.language.syntax.tables import load_tables
from archspec.language.syntax.tree import Comment, Definition, Expr, File, Item, Model, UnparsedRange

CONTEXTUAL = frozenset(("import", "export", "dim", "fn", "layer", "block", "model", "frozen", *TITLING))
"""Keywords that are names where the keyword is not allowed."""


@cache
def parser() -> Parser:
    """Return the parser that constructs the nodes of the syntax tree."""
    from archspec.language.syntax.build import MAKERS

    return Parser(load_tables(), MAKERS, CONTEXTUAL)


def parse(source: Source, report: Report) -> File:
    """Parse a file.

    Every error is reported (codes `syntax` and `budget`) and omitted from the tree; its range is in `broken`.
    """
    file, comments, broken = parse_source(source, report, parser())
    assert isinstance(file, File)
    items = tuple(_attach_docs(item, comments, source.text) for item in file.items)
    return File(0, len(source.text), items, comments, broken)


def parse_source(
    source: Source, report: Report, machine: Parser
) -> tuple[object, tuple[Comment, ...], tuple[UnparsedRange, ...]]:
    """Return the result of a parser for a file, its comments, and the ranges that could not be parsed."""
    scanned = scan(source.text)
    tokens = _close_braces(machine.tokens(scanned.text), scanned)
    errors, broken = list(scanned.errors), list(scanned.broken)
    try:
        file = machine.run(tokens, "file")
        errors += scanned.surplus
    except (UnexpectedTokenError, ArchSyntaxError):
        from archspec.language.syntax.recover import Recovery  # imported late: only invalid files need it

        recovery = Recovery(machine, tokens, scanned)
        file = recovery.file
        errors += recovery.errors
        broken += recovery.broken
    for error in sorted(errors, key=lambda error: error.start)[:MAX_ERRORS]:
        _add_error(report, source, error)
    return file, tuple(scanned.comments), _unparsed_ranges(source.text, broken)


def parse_expression(source: Source, report: Report) -> Expr | None:
    """Parse an expression; None after reporting an error."""
    scanned = scan(source.text)
    for error in (*scanned.errors, *scanned.surplus)[:1]:
        _add_error(report, source, error)
        return None
    from archspec.language.syntax.expressions import check_depth

    machine = parser()
    try:
        return check_depth(cast("Expr", machine.run(machine.tokens(scanned.text), "expr")))
    except UnexpectedTokenError as error:
        from archspec.language.syntax.messages import explain

        _add_error(report, source, explain(machine, error, "expr"))
    except ArchSyntaxError as error:
        _add_error(report, source, error)
    return None


def _add_error(report: Report, source: Source, error: ArchSyntaxError) -> None:
    report.error(error.code, error.message, Span(source, error.start, error.end), help=error.help)


def _close_braces(tokens: list[Token], scanned: ScanResult) -> list[Token]:
    """Return `tokens` with the missing `}` inserted."""
    if not scanned.closers:
        return tokens
    missing = [
        token
        for offset in scanned.closers
        for token in (Token(offset, offset, "}", ""), Token(offset, offset, "_NL", ""))
    ]
    return sorted([*missing, *tokens], key=lambda token: token.start)


def _unparsed_ranges(text: str, ranges: list[tuple[int, int]]) -> tuple[UnparsedRange, ...]:
    result: list[UnparsedRange] = []
    for start, end in sorted(ranges, key=lambda span: (span[0], -span[1])):
        if not result or end > result[-1].end:
            words = dict.fromkeys(re.findall(r"\w+", text[start:end]))
            result.append(UnparsedRange(start, end, tuple(words)))
    return tuple(result)


def _attach_docs(item: Item, comments: Sequence[Comment], text: str) -> Item:
    """Return `item` with the `##` lines directly above it as its documentation."""
    if not isinstance(item, Definition | Model):
        return item
    lines: list[str] = []
    index = bisect_left(comments, item.start, key=lambda comment: comment.start) - 1
    below = item.start
    while index >= 0 and comments[index].text.startswith("##"):
        comment = comments[index]
        line = text.rfind("\n", 0, comment.start) + 1
        between = text[comment.end : below]
        if text[line : comment.start].strip() or between.strip() or between.count("\n") != 1:
            break
        lines.insert(0, comment.text[2:].strip())
        below, index = line, index - 1
    return item.replace(doc="\n".join(lines)) if lines else item


# Incremental parsing: only the changed items of a file are parsed; the trees of all other items are reused.
#
# Items, strings and comments end on their last line, and no item begins like the continuation of another. A file can
# therefore be cut after the last line of each item into parts that parse separately with the same result. A changed
# part without errors begins and ends like the part that it replaces.

T = TypeVar("T")


def reparse(source: Source, old: str, file: tree.File) -> tree.File | None:
    """Return the tree of a changed file; `file` is the tree of its error-free `old` text. None for a syntax error."""
    text = source.text
    same_before = _common_prefix_length(old, text)
    same_after = _common_prefix_length(old[same_before:][::-1], text[same_before:][::-1])
    cuts = [0, *[_line_end(old, item.end) for item in file.items]]  # one before each item, and one after the last
    first = max(i for i, cut in enumerate(cuts) if cut <= same_before)
    last = next((i for i, cut in enumerate(cuts) if cut > len(old) - same_after), len(cuts))
    last += 1  # the documentation above the first unchanged item may have changed
    start, stop = cuts[first], cuts[last] if last < len(cuts) else len(old)
    if start and text.startswith("\ufeff", start):  # a byte order mark, valid only at the start of a file
        return None
    shift = len(text) - len(old)
    report = Report()
    part = parse(Source(source.label, text[start : stop + shift]), report)
    if report.diagnostics:
        return None
    items = (*file.items[:first], *_shift_nodes(part.items, start), *_shift_nodes(file.items[last:], shift))
    above = [comment for comment in file.comments if comment.start < start]
    below = tuple([comment for comment in file.comments if comment.start >= stop])
    return tree.File(
        0, len(text), items, (*above, *_shift_nodes(part.comments, start), *_shift_nodes(below, shift)), ()
    )


def _common_prefix_length(a: str, b: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _line_end(text: str, offset: int) -> int:
    """Return the start of the line after `offset`; beyond the text if there is none."""
    end = text.find("\n", offset)
    return len(text) + 1 if end < 0 else end + 1


def _shift_nodes(part: T, offset: int) -> T:
    """Return a copy of a tuple of nodes with all locations shifted by `offset` characters."""
    if offset == 0 or not is_tuple(part):
        return part
    items = [_shift_nodes(item, offset) if is_tuple(item) else item for item in part]
    if isinstance(part, tree.SyntaxNode):
        return cast("T", from_values(part.__class__, (part.start + offset, part.end + offset, *items[2:])))
    return cast("T", tuple(items))
