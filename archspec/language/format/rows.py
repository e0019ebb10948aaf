"""Rows: what begins a line of its own, in columns that are aligned with those of neighbouring rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from archspec.core.pretty import Doc, render

WIDTH = 120
"""The longest line, not counting comments."""

SPACE_BEFORE_COMMENT = " " * 4

Run: TypeAlias = tuple[Hashable, int]
"""Rows with equal first items are aligned; the second is the number of columns that are."""


@dataclass
class Row:
    """Columns, and the rest as a document.

    `runs` are the alignments to try, one after the other, until the rows fit. `comment` follows the last line.
    `indent` is None for text that stays as it is.
    """

    indent: int | None
    cells: Sequence[str]
    doc: Doc
    runs: Sequence[Run] = ()
    comment: str = ""
    widths: Sequence[int] | None = None
    """The widths to which columns are padded."""


def write(rows: Sequence[Row]) -> str:
    """Return the lines of rows."""
    for attempt in range(max((len(row.runs) for row in rows), default=0)):
        for run in _runs(rows, attempt):
            _align(run, attempt)
    lines = [(row, _lines(row)) for row in rows]
    for _, group in groupby(lines, key=lambda pair: bool(pair[0].comment) and pair[0].indent is not None):
        _put_comments([*group])
    return "".join(line + "\n" for _, each in lines for line in each)


def _runs(rows: Iterable[Row], attempt: int) -> Iterator[list[Row]]:
    """Yield the rows to align with each other that are not aligned so far."""
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        if len(row.runs) > attempt and row.widths is None:
            found.setdefault(row.runs[attempt][0], []).append(row)
    yield from found.values()


def _align(run: Sequence[Row], attempt: int) -> None:
    """Align rows, unless that makes a line too long, or breaks one and there is another alignment to try."""
    columns = min(run[0].runs[attempt][1], max(len(row.cells) for row in run))
    widths = [max(len(row.cells[i]) for row in run if i < len(row.cells)) for i in range(columns)]
    for row in run:
        row.widths = widths
    for row in run:
        before, after = _printed(row, row.cells), _printed(row, _padded(row))
        is_last = attempt + 1 == len(row.runs)
        if _overflow(after) > _overflow(before) or (len(after) > len(before) and not is_last):
            for other in run:
                other.widths = None
            return


def _padded(row: Row) -> list[str]:
    widths = row.widths or ()
    padded = [cell.ljust(width) for cell, width in zip(row.cells, widths, strict=False)]
    return [*padded, *row.cells[len(widths) :]]


def _overflow(lines: Iterable[str]) -> int:
    """Return by how much the longest line is too long."""
    return max(0, *(len(line) - WIDTH for line in lines))


def _printed(row: Row, cells: Iterable[str]) -> list[str]:
    indent = row.indent or 0
    return render(row.doc, WIDTH, indent, " " * indent + "".join(cells))


def _lines(row: Row) -> list[str]:
    if row.indent is None:
        return [f"{row.doc}{row.comment}"]
    return [line.rstrip() for line in _printed(row, _padded(row))]


def _put_comments(rows: Sequence[tuple[Row, list[str]]]) -> None:
    """Add the comments of consecutive rows, in one column."""
    width = max(len(lines[-1]) for _, lines in rows)
    for row, lines in rows:
        if row.comment and row.indent is not None:
            lines[-1] = lines[-1].ljust(width) + SPACE_BEFORE_COMMENT + row.comment
