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
from archspec.language.syntax.machine import ArchSyntaxError, Parser, Token, UnexpectedTokenError, load_tables
from archspec.language.syntax.tree import Comment, Definition, Expr, File, Item, Model, UnparsedRange

CONTEXTUAL = frozenset(("import", "export", "dim", "fn", "layer", "block", "model", "frozen"))
"""Keywords that are names where the keyword is not allowed."""


@cache
def parser() -> Parser:
    """Return the parser."""
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
    """Return what a parser makes of a file, the comments in it, and the ranges that could not be parsed."""
    found = scan(source.text)
    tokens = _close_braces(machine.tokens(found.text), found)
    faults, broken = list(found.faults), list(found.broken)
    try:
        file = machine.run(tokens, "file")
        faults += found.surplus
    except (UnexpectedTokenError, ArchSyntaxError):
        from archspec.language.syntax.recover import (
            Recovery,  # which a correct file does without, with all that explains errors
        )

        recovery = Recovery(machine, tokens, found)
        file = recovery.file
        faults += recovery.faults
        broken += recovery.broken
    for fault in sorted(faults, key=lambda fault: fault.start)[:MAX_ERRORS]:
        _add(report, source, fault)
    return file, tuple(found.comments), _unparsed_ranges(source.text, broken)


def parse_expression(source: Source, report: Report) -> Expr | None:
    """Parse an expression; None after a diagnostic."""
    found = scan(source.text)
    for fault in (*found.faults, *found.surplus)[:1]:
        _add(report, source, fault)
        return None
    from archspec.language.syntax.expressions import shallow

    machine = parser()
    try:
        return shallow(cast("Expr", machine.run(machine.tokens(found.text), "expr")))
    except UnexpectedTokenError as error:
        from archspec.language.syntax.messages import explain

        _add(report, source, explain(machine, error, "expr"))
    except ArchSyntaxError as fault:
        _add(report, source, fault)
    return None


def _add(report: Report, source: Source, fault: ArchSyntaxError) -> None:
    report.error(fault.code, fault.message, Span(source, fault.start, fault.end), help=fault.help)


def _close_braces(tokens: list[Token], found: ScanResult) -> list[Token]:
    """Return `tokens` with the missing `}` inserted."""
    if not found.closers:
        return tokens
    missing = [token for at in found.closers for token in (Token(at, at, "}", ""), Token(at, at, "_NL", ""))]
    return sorted([*missing, *tokens], key=lambda token: token.start)


def _unparsed_ranges(text: str, stretches: list[tuple[int, int]]) -> tuple[UnparsedRange, ...]:
    found: list[UnparsedRange] = []
    for start, end in sorted(stretches, key=lambda stretch: (stretch[0], -stretch[1])):
        if not found or end > found[-1].end:
            words = dict.fromkeys(re.findall(r"\w+", text[start:end]))
            found.append(UnparsedRange(start, end, tuple(words)))
    return tuple(found)


def _attach_docs(item: Item, comments: Sequence[Comment], text: str) -> Item:
    """Return `item` with the `##` lines directly above it as its `doc`."""
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


# Parsing of a changed file: only the items that changed are parsed, the trees of all others are taken over.
#
# An item ends on its last line, strings and comments end on theirs, and no item begins like the continuation of
# another. So a file is a sequence of parts, cut after the last lines of items, each of which parses alone as it does
# in the file; that a changed part has no errors alone shows that it begins and ends like the one that it replaces.

T = TypeVar("T")


def reparse(source: Source, old: str, file: tree.File) -> tree.File | None:
    """Return the tree of a file, from that of its `old` text, which has no errors; None if the file has any."""
    text = source.text
    same_before = _common_prefix_length(old, text)
    same_after = _common_prefix_length(old[same_before:][::-1], text[same_before:][::-1])
    cuts = [0, *[_line_end(old, item.end) for item in file.items]]  # one before each item, and one after the last
    first = max(i for i, cut in enumerate(cuts) if cut <= same_before)
    last = next((i for i, cut in enumerate(cuts) if cut > len(old) - same_after), len(cuts))
    last += 1  # the first item that is the same may have other documentation above it
    start, stop = cuts[first], cuts[last] if last < len(cuts) else len(old)
    if start and text.startswith("\ufeff", start):  # a byte order mark, which only a file may begin with
        return None
    moved = len(text) - len(old)
    report = Report()
    part = parse(Source(source.label, text[start : stop + moved]), report)
    if report.diagnostics:
        return None
    items = (*file.items[:first], *_shift_nodes(part.items, start), *_shift_nodes(file.items[last:], moved))
    kept = [comment for comment in file.comments if comment.start < start]
    below = tuple([comment for comment in file.comments if comment.start >= stop])
    return tree.File(0, len(text), items, (*kept, *_shift_nodes(part.comments, start), *_shift_nodes(below, moved)), ())


def _common_prefix_length(a: str, b: str) -> int:
    """Return the number of characters with which both texts begin."""
    least, most = 0, min(len(a), len(b))
    while least < most:
        middle = (least + most + 1) // 2
        if a[least:middle] == b[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _line_end(text: str, offset: int) -> int:
    """Return where the line after that of an offset begins; beyond the text if there is none."""
    end = text.find("\n", offset)
    return len(text) + 1 if end < 0 else end + 1


def _shift_nodes(part: T, by: int) -> T:
    """Return a copy of a tuple of nodes with all locations shifted by `offset` characters."""
    if by == 0 or not is_tuple(part):
        return part
    items = [_shift_nodes(item, by) if is_tuple(item) else item for item in part]
    if isinstance(part, tree.SyntaxNode):
        return cast("T", from_values(part.__class__, (part.start + by, part.end + by, *items[2:])))
    return cast("T", tuple(items))
