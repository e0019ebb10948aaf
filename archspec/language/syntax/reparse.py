"""Parsing of a changed file: only the items that changed are parsed, the trees of all others are taken over.

An item ends on its last line, strings and comments end on theirs, and no item begins like the continuation of another.
So a file is a sequence of parts, cut after the last lines of items, each of which parses alone as it does in the file;
that a changed part has no errors alone shows that it begins and ends like the one that it replaces.
"""

from __future__ import annotations

from typing import TypeVar, cast

from archspec.core.diagnostics import Report, Source
from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse

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
    """Return a copy of a tuple of nodes, in which all nodes are so many characters further."""
    if by == 0 or not is_tuple(part):
        return part
    items = [_shift_nodes(item, by) if is_tuple(item) else item for item in part]
    if isinstance(part, tree.SyntaxNode):
        return cast("T", from_values(part.__class__, (part.start + by, part.end + by, *items[2:])))
    return cast("T", tuple(items))
