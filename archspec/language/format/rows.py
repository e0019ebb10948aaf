"""Rows: the parts of a file that begin a line, in columns aligned with the columns of neighbouring rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from archspec.core.pretty import Doc, render

MAX_LINE_LENGTH = 120
"""The maximum length of a line, not counting comments."""

SPACE_BEFORE_COMMENT = " " * 4

Run: TypeAlias = tuple[Hashable, int]
"""An alignment: a key, equal for rows that are aligned with each other, and the number of aligned columns."""


@dataclass
class Row:
    """Columns, and the remainder of the row as a document.

    `runs` are the alignments to try in turn until the rows fit. `comment` follows the last line. `indent` is None for
    text that stays unchanged.
    """

    indent: int | None
    cells: Sequence[str]
    doc: Doc
    runs: Sequence[Run] = ()
    comment: str = ""
    widths: Sequence[int] | None = None
    """The widths to which columns are padded."""


def write(rows: Sequence[Row]) -> str:
    """Return the text of rows."""
    for attempt in range(max((len(row.runs) for row in rows), default=0)):
        for run in _runs(rows, attempt):
            _align(run, attempt)
    lines = [(row, _row_lines(row)) for row in rows]
    for _, group in groupby(lines, key=lambda pair: bool(pair[0].comment) and pair[0].indent is not None):
        _add_comments([*group])
    return "".join(line + "\n" for _, row_lines in lines for line in row_lines)


def _runs(rows: Iterable[Row], attempt: int) -> Iterator[list[Row]]:
    """Yield groups of rows to align with each other that are not yet aligned."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        if len(row.runs) > attempt and row.widths is None:
            groups.setdefault(row.runs[attempt][0], []).append(row)
    yield from groups.values()


def _align(run: Sequence[Row], attempt: int) -> None:
    """Align rows, unless this makes a line too long, or breaks a line although another alignment remains to try."""
    columns = min(run[0].runs[attempt][1], max(len(row.cells) for row in run))
    widths = [max(len(row.cells[i]) for row in run if i < len(row.cells)) for i in range(columns)]
    for row in run:
        row.widths = widths
    for row in run:
        before, after = _print(row, row.cells), _print(row, _pad(row))
        is_last = attempt + 1 == len(row.runs)
        if _overflow(after) > _overflow(before) or (len(after) > len(before) and not is_last):
            for aligned_row in run:
                aligned_row.widths = None
            return


def _pad(row: Row) -> list[str]:
    widths = row.widths or ()
    cells = [cell.ljust(width) for cell, width in zip(row.cells, widths, strict=False)]
    return [*cells, *row.cells[len(widths) :]]


def _overflow(lines: Iterable[str]) -> int:
    """Return the number of characters by which the longest line exceeds the limit."""
    return max(0, *(len(line) - MAX_LINE_LENGTH for line in lines))


def _print(row: Row, cells: Iterable[str]) -> list[str]:
    indent = row.indent or 0
    return render(row.doc, MAX_LINE_LENGTH, indent, " " * indent + "".join(cells))


def _row_lines(row: Row) -> list[str]:
    if row.indent is None:
        return [f"{row.doc}{row.comment}"]
    return [line.rstrip() for line in _print(row, _pad(row))]


def _add_comments(rows: Sequence[tuple[Row, list[str]]]) -> None:
    """Add the comments of consecutive rows, in one column."""
    width = max(len(lines[-1]) for _, lines in rows)
    for row, lines in rows:
        if row.comment and row.indent is not None:
            lines[-1] = lines[-1].ljust(width) + SPACE_BEFORE_COMMENT + row.comment
