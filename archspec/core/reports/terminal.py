"""Tables that fit the width of a terminal: names are shortened, columns omitted, long cells wrapped."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from archspec.core.diagnostics import escape_for_terminal
from archspec.core.record import Record
from archspec.core.reports.colour import supports_color
from archspec.core.reports.roles import style_of
from archspec.core.reports.tables import Bar, Cell, Column, View, is_right, text, used
from archspec.core.wrapping import DEFAULT_WIDTH, line_width, longest_prefix, output_width, text_width, wrap, wrap_line

COLUMN_GAP = 2
MAX_BAR_WIDTH = 40


class MinWidths(Record):
    """Minimum widths of columns of names, text and bars, and of titles.

    With `different`, names are shortened only while they remain distinct.
    """

    name: int
    text: int
    bar: int
    title: int
    different: bool


DEFAULT_MIN_WIDTHS = MinWidths(name=24, text=24, bar=10, title=14, different=True)
"""Minimum widths while columns can still be omitted."""

FALLBACK_MIN_WIDTHS = (
    DEFAULT_MIN_WIDTHS._replace(text=12),
    DEFAULT_MIN_WIDTHS._replace(text=12, name=12, different=False),
    MinWidths(6, 6, 6, 6, False),
)
"""Minimum widths to try, in this order, when no more columns can be omitted."""


class Layout(Record):
    """The output device: its width (None for unlimited), whether it supports colors, and its encoding.

    Lines of text are wrapped at `line_width`, if it is not None: programs read whole lines.
    """

    width: int | None = DEFAULT_WIDTH
    color: bool = False
    encoding: str = "utf-8"
    line_width: int | None = None


def output_layout(wide: bool = False) -> Layout:
    """Return the layout for standard output; `wide` removes the limit on the width."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a stream without an encoding accepts any text
    color = supports_color(sys.stdout)
    return Layout(None, color, encoding) if wide else Layout(output_width(), color, encoding, line_width(1))


def table(view: View, layout: Layout) -> str:
    """Format a view as lines of text; the last line names the omitted columns, if any."""
    view = used(view)
    mark = "…" if _can_encode(layout.encoding, "…") else "..."
    all_fields = [_Field(view, column, mark) for column in view.columns]
    fields = _fit_fields(all_fields, layout.width)
    lines = _join_cells(
        [field.heading() for field in fields], fields, ["1" * layout.color] * len(fields), align_bottom=True
    )
    for number, row in enumerate(view.rows):
        styles = [_style_codes(field.column, row) if layout.color else "" for field in fields]
        lines += _join_cells([field.cell(number, layout.encoding) for field in fields], fields, styles)
    titles = [field.title or field.column.key for field in all_fields if field not in fields]
    if titles:
        omitted = f"(not shown at this width: {', '.join(titles)}; use --wide)"
        lines += wrap_line(omitted, layout.width) if layout.line_width else [omitted]
    return "".join(f"{line}\n" for line in lines)


class _Field:
    """A column with its texts, its current width, and its minimum width."""

    def __init__(self, view: View, column: Column, mark: str) -> None:
        self.column = column
        self.mark = mark
        self.title = escape_for_terminal(column.title)
        self.values = [row[column.key] for row in view.rows]
        self.texts = [text(value) or column.blank for value in self.values]
        self.right = is_right(view, column)
        self.sizes = [MAX_BAR_WIDTH] if column.fit == "bar" else [*map(text_width, self.texts)]
        self.width = self.min_width = max([text_width(self.title), *self.sizes])

    def update_min_width(self, limits: MinWidths) -> None:
        """Compute the minimum width of the column."""
        min_width = max_width = max(self.sizes, default=0)
        if self.column.fit == "bar":
            min_width = min(max_width, limits.bar)
        elif self.column.fit == "wrap":  # lines are not shorter than a word
            words = max((text_width(word) for text in self.texts for word in text.split(" ")), default=0)
            min_width = min(words, limits.text)
        elif self.column.fit == "shorten":
            min_width = min(max_width, limits.name)
            distinct = len({*self.texts})
            while limits.different and len({shorten(t, min_width, self.mark) for t in self.texts}) < distinct:
                min_width += 1
        self.min_width = max(min_width, min(text_width(self.title), limits.title))

    def loss(self, width: int) -> int:
        """Return the cost of a width: the squared line counts of wrapped cells, which favor short rows, or the number
        of shortened cells. Bars may lose half of their length at no cost.
        """
        if self.column.fit == "wrap":
            return sum((-(-size // width)) ** 2 for size in self.sizes)
        if self.column.fit == "bar":
            return max(MAX_BAR_WIDTH // 2 - width, 0)
        return sum(size > width for size in self.sizes)

    def heading(self) -> list[str]:
        return wrap(self.title, self.width)

    def cell(self, number: int, encoding: str) -> list[str]:
        """Return the lines of a cell."""
        value, shown = self.values[number], self.texts[number]
        if isinstance(value, Bar):
            return [format_bar(value.value, value.maximum, self.width, encoding)]
        if self.column.fit == "wrap":
            return wrap(shown, self.width)
        return [shorten(shown, self.width, self.mark) if self.column.fit == "shorten" else shown]


def _fit_fields(fields: Sequence[_Field], limit: int | None) -> list[_Field]:
    """Return the fields that fit the limit, narrowed if necessary."""
    fitted = list(fields)
    if limit is None or _excess_width([field.width for field in fitted], limit) <= 0:
        return fitted
    for field in fitted:
        field.update_min_width(DEFAULT_MIN_WIDTHS)
    while _excess_width([field.min_width for field in fitted], limit) > 0 and any(
        field.column.drop for field in fitted
    ):
        fitted.remove(min((field for field in fitted if field.column.drop), key=lambda field: field.column.drop))
    for limits in FALLBACK_MIN_WIDTHS:
        if _excess_width([field.min_width for field in fitted], limit) <= 0:
            break
        for field in fitted:
            field.update_min_width(limits)
    excess = _excess_width([field.width for field in fitted], limit)
    while excess > 0 and (shrinkable := [field for field in fitted if field.width > field.min_width]):
        cheapest = min(
            shrinkable, key=lambda field: (field.loss(field.width - 1) - field.loss(field.width), -field.width)
        )
        cheapest.width -= 1
        excess -= 1
    return fitted


def _excess_width(widths: Sequence[int], limit: int) -> int:
    """Return the number of characters by which columns of these widths exceed the limit."""
    return sum(widths) + COLUMN_GAP * (len(widths) - 1) - limit


def _join_cells(
    cells: Sequence[Sequence[str]], fields: Sequence[_Field], styles: Sequence[str], align_bottom: bool = False
) -> list[str]:
    """Join cells of several lines side by side; `align_bottom` moves short cells down."""
    height = max(map(len, cells), default=0)
    lines: list[str] = []
    for line in range(height):
        texts: list[str] = []
        for cell, field, style in zip(cells, fields, styles, strict=True):
            position = line - (height - len(cell) if align_bottom else 0)
            text = cell[position] if 0 <= position < len(cell) else ""
            padded = pad(text, field.width, field.right)
            texts.append(padded.replace(text, f"\x1b[{style}m{text}\x1b[0m") if style and text.strip() else padded)
        lines.append((" " * COLUMN_GAP).join(texts).rstrip())
    return lines


_STYLES = {"dim": "2", "unit": "2", "note": "33"}


def _style_codes(column: Column, row: Mapping[str, Cell]) -> str:
    """Return the terminal codes for the colors of a cell; "" for none."""
    if column.style == "role":
        role = row.get("role")
        number = style_of(role if isinstance(role, str) else None).terminal
        return f"38;5;{number}" if number is not None else ""
    return _STYLES.get(column.style, "")


def _can_encode(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


# Text in cells of a given width ---------------------------------------------------------------------------------------

_PARTIAL_BLOCKS = " ▏▎▍▌▋▊▉"
_FULL_BLOCK = "█"


def format_bar(value: int, maximum: int, width: int, encoding: str) -> str:
    """Draw a bar of at most `width` characters for a value of at most `maximum`; small positive values remain visible.

    The resolution is an eighth of a character. If the encoding has no block characters, the bar consists of `#`.
    """
    eighths = -(-8 * width * value // maximum) if maximum else 0
    full, remainder = divmod(eighths, 8)
    text = _FULL_BLOCK * full + (_PARTIAL_BLOCKS[remainder] if remainder else "")
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "#" * (full + bool(remainder))
    return text


def pad(text: str, width: int, is_right: bool) -> str:
    """Fill a text up to a width with spaces."""
    spaces = " " * (width - text_width(text))
    return spaces + text if is_right else text + spaces


def shorten(text: str, width: int, mark: str = "…") -> str:
    """Replace the middle of a text that is too long with a mark, after its indentation."""
    if text_width(text) <= width:
        return text
    content = text.lstrip(" ")
    indent = text[: min(len(text) - len(content), max(width - 8, 0))]
    available = width - len(indent) - text_width(mark)
    head = longest_prefix(content, available // 2)
    tail = longest_prefix(content[::-1], available - text_width(head))[::-1]
    return f"{indent}{head}{mark}{tail}"
