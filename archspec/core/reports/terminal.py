"""Tables for a terminal, which fit its width: names shortened in the middle, columns left out, long cells wrapped."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from archspec.core.diagnostics import escape_for_terminal
from archspec.core.record import Record
from archspec.core.reports.cells import bar, padded, shortened, width_of, wrapped
from archspec.core.reports.colour import coloured
from archspec.core.reports.roles import style_of
from archspec.core.reports.tables import Bar, Cell, Column, View, is_right, text, used

NO_TERMINAL = 100
"""The width of tables if neither `COLUMNS` nor a terminal gives one."""

COLUMN_GAP = 2
MAX_BAR_WIDTH = 40


class MinWidths(Record):
    """How narrow columns may become: of names, of text, of bars, and for their titles.

    With `different`, names are shortened only as far as they stay different.
    """

    name: int
    text: int
    bar: int
    title: int
    different: bool


DEFAULT_MIN_WIDTHS = MinWidths(name=24, text=24, bar=10, title=14, different=True)
"""As narrow as columns become before one is left out."""

FALLBACK_MIN_WIDTHS = (
    DEFAULT_MIN_WIDTHS._replace(text=12),
    DEFAULT_MIN_WIDTHS._replace(text=12, name=12, different=False),
    MinWidths(6, 6, 6, 6, False),
)
"""What is tried, in this order, when no more columns can be left out."""


class Layout(Record):
    """What the reader of a table can see: its width (None for any), colors, and the characters of an encoding."""

    width: int | None = NO_TERMINAL
    color: bool = False
    encoding: str = "utf-8"


def output_layout(wide: bool = False) -> Layout:
    """Return the layout for standard output; `wide` is for any width."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a stream without an encoding accepts any text
    return Layout(None if wide else output_width(), coloured(sys.stdout), encoding)


def output_width() -> int:
    """Return the width given by `COLUMNS`, else that of the terminal, else NO_TERMINAL."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    for descriptor in (1, 2):  # where output is piped, the diagnostics usually reach the terminal
        try:
            return os.get_terminal_size(descriptor).columns or NO_TERMINAL
        except OSError:
            continue
    return NO_TERMINAL


def table(view: View, layout: Layout) -> str:
    """Format a view as lines of text; the last one names the columns that were left out, if any."""
    view = used(view)
    mark = "…" if _has(layout.encoding, "…") else "..."
    every = [_Field(view, column, mark) for column in view.columns]
    fields = _fitting(every, layout.width)
    lines = _lines([field.heading() for field in fields], fields, ["1" * layout.color] * len(fields), at_end=True)
    for number, row in enumerate(view.rows):
        styles = [_style(field.column, row) if layout.color else "" for field in fields]
        lines += _lines([field.cell(number, layout.encoding) for field in fields], fields, styles)
    titles = [field.title or field.column.key for field in every if field not in fields]
    if titles:
        lines.append(f"(not shown at this width: {', '.join(titles)}; use --wide)")
    return "".join(f"{line}\n" for line in lines)


class _Field:
    """A column with its texts, its width now, and how narrow it may become."""

    def __init__(self, view: View, column: Column, mark: str) -> None:
        self.column = column
        self.mark = mark
        self.title = escape_for_terminal(column.title)
        self.values = [row[column.key] for row in view.rows]
        self.texts = [text(value) or column.blank for value in self.values]
        self.right = is_right(view, column)
        self.sizes = [MAX_BAR_WIDTH] if column.fit == "bar" else [*map(width_of, self.texts)]
        self.width = self.least = max([width_of(self.title), *self.sizes])

    def find_least(self, narrowest: MinWidths) -> None:
        """Compute how narrow the column may become."""
        least = widest = max(self.sizes, default=0)
        if self.column.fit == "bar":
            least = min(widest, narrowest.bar)
        elif self.column.fit == "wrap":  # lines are not shorter than a word
            words = max((width_of(word) for text in self.texts for word in text.split(" ")), default=0)
            least = min(words, narrowest.text)
        elif self.column.fit == "shorten":
            least = min(widest, narrowest.name)
            different = len({*self.texts})
            while narrowest.different and len({shortened(t, least, self.mark) for t in self.texts}) < different:
                least += 1
        self.least = max(least, min(width_of(self.title), narrowest.title))

    def loss(self, width: int) -> int:
        """Return what a width costs: the lines of wrapped cells, squared because long cells make long rows,
        or the number of shortened ones; half of the length of bars costs nothing.
        """
        if self.column.fit == "wrap":
            return sum((-(-size // width)) ** 2 for size in self.sizes)
        if self.column.fit == "bar":
            return max(MAX_BAR_WIDTH // 2 - width, 0)
        return sum(size > width for size in self.sizes)

    def heading(self) -> list[str]:
        return wrapped(self.title, self.width)

    def cell(self, number: int, encoding: str) -> list[str]:
        """Return the lines of a cell."""
        value, shown = self.values[number], self.texts[number]
        if isinstance(value, Bar):
            return [bar(value.value, value.most, self.width, encoding)]
        if self.column.fit == "wrap":
            return wrapped(shown, self.width)
        return [shortened(shown, self.width, self.mark) if self.column.fit == "shorten" else shown]


def _fitting(fields: Sequence[_Field], limit: int | None) -> list[_Field]:
    """Return the fields that fit the limit, narrowed if necessary."""
    kept = list(fields)
    if limit is None or _over([field.width for field in kept], limit) <= 0:
        return kept
    for field in kept:
        field.find_least(DEFAULT_MIN_WIDTHS)
    while _over([field.least for field in kept], limit) > 0 and any(field.column.drop for field in kept):
        kept.remove(min((field for field in kept if field.column.drop), key=lambda field: field.column.drop))
    for narrowest in FALLBACK_MIN_WIDTHS:
        if _over([field.least for field in kept], limit) <= 0:
            break
        for field in kept:
            field.find_least(narrowest)
    over = _over([field.width for field in kept], limit)
    while over > 0 and (wider := [field for field in kept if field.width > field.least]):
        best = min(wider, key=lambda field: (field.loss(field.width - 1) - field.loss(field.width), -field.width))
        best.width -= 1
        over -= 1
    return kept


def _over(widths: Sequence[int], limit: int) -> int:
    """Return by how much columns of these widths exceed the limit."""
    return sum(widths) + COLUMN_GAP * (len(widths) - 1) - limit


def _lines(
    cells: Sequence[Sequence[str]], fields: Sequence[_Field], styles: Sequence[str], at_end: bool = False
) -> list[str]:
    """Join cells of several lines side by side; `at_end` is where the shorter ones are aligned."""
    height = max(map(len, cells), default=0)
    found: list[str] = []
    for line in range(height):
        parts: list[str] = []
        for cell, field, style in zip(cells, fields, styles, strict=True):
            position = line - (height - len(cell) if at_end else 0)
            part = cell[position] if 0 <= position < len(cell) else ""
            filled = padded(part, field.width, field.right)
            parts.append(filled.replace(part, f"\x1b[{style}m{part}\x1b[0m") if style and part.strip() else filled)
        found.append((" " * COLUMN_GAP).join(parts).rstrip())
    return found


_STYLES = {"dim": "2", "unit": "2", "note": "33"}


def _style(column: Column, row: Mapping[str, Cell]) -> str:
    """Return the codes of a cell's colors; "" for none."""
    if column.style == "role":
        role = row.get("role")
        number = style_of(role if isinstance(role, str) else None).terminal
        return f"38;5;{number}" if number is not None else ""
    return _STYLES.get(column.style, "")


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
