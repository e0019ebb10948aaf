"""Tables as text: human-readable (table, markdown) and machine-readable (csv)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from archspec.reporting.colour import coloured
from archspec.source import escaped, printable


class Column(NamedTuple):
    """A column: the key of its values in a row, its title, and the text for an empty value."""

    key: str
    title: str
    blank: str = ""


def columns(*keys: str) -> list[Column]:
    """Return columns whose titles are their keys."""
    return [Column(key, key) for key in keys]


Cell: TypeAlias = str | int | float | Sequence[int] | None
"""A value: text, an integer, a share from 0 to 1, a boolean, a shape, or nothing."""

Row: TypeAlias = dict[str, Cell]
"""Values by the keys of their columns."""


class View(NamedTuple):
    """Rows of values under columns."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]


def csv(view: View) -> str:
    """Comma-separated values under a line of keys.

    Text is quoted where necessary. Control characters are escaped, and text that a spreadsheet would take for a formula
    begins with `'`.
    """
    import csv as library
    from io import StringIO

    out = StringIO()
    writer = library.writer(out, lineterminator="\n")
    writer.writerow([_plain(column.key) for column in view.columns])
    for row in view.rows:
        writer.writerow([_plain(row[column.key]) for column in view.columns])
    return out.getvalue()


def markdown(view: View) -> str:
    """Format a view as a markdown table; text is set as code, so that names are not interpreted as markup."""
    view = _used(view)
    right = [_is_right(view, column) for column in view.columns]
    titles = [column.title for column in view.columns]
    lines = [
        "| " + " | ".join(title if title == "*" else escape_markdown(printable(title)) for title in titles) + " |",
        "|" + "|".join(" ---: " if number else " --- " for number in right) + "|",
    ]
    for row in view.rows:
        lines.append("| " + " | ".join(_markdown_cell(row, column) for column in view.columns) + " |")
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Escape the markup in a text."""
    return "".join(f"\\{c}" if c in "\\`*[]<|" else c for c in text)


def write(view: View, format: str) -> str:
    """Format a view as a table, markdown or csv."""
    return {"table": table, "markdown": markdown, "csv": csv}[format](view)


def table(view: View) -> str:
    """Format a view for a terminal: never truncated, and coloured only if `coloured` is true of standard output."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = _used(view)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in view.columns:
        is_right = _is_right(view, column)
        title = Text(printable(column.title))
        grid.add_column(title, justify="right" if is_right else "left", no_wrap=True, style=_STYLES.get(column.key))
    for row in view.rows:
        grid.add_row(*(Text(text(row[column.key]) or column.blank) for column in view.columns))
    out = StringIO()
    in_colour = coloured(sys.stdout)
    Console(
        file=out,
        width=2**20,
        force_terminal=in_colour,
        color_system="standard" if in_colour else None,
        force_jupyter=False,
        legacy_windows=False,
    ).print(grid)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


_STYLES = {"type": "cyan", "shapes": "dim", "shape": "dim", "share": "dim", "notes": "yellow"}


def text(value: Cell) -> str:
    """Format a value for reading: `109,482,240`, `21.8 %`, `768 x 3072`, yes or no, "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return percent(value)
    if isinstance(value, str):
        return printable(value)
    return shape(value)


def percent(share: float) -> str:
    """Format a fraction from 0 to 1 in percent; a small positive one is not shown as 0."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def shape(sizes: Iterable[int]) -> str:
    """Format a shape: `768 x 3072`; that of a scalar is `1`."""
    return " x ".join(map(str, sizes)) or "1"


def _plain(value: Cell) -> str | int | float | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{escaped(value)}" if value.startswith(_FORMULAS) else escaped(value)
    return value if value is None or isinstance(value, int | float) else "x".join(map(str, value))


_FORMULAS = ("=", "+", "-", "@")
"""The first characters of what spreadsheets evaluate."""


def _used(view: View) -> View:
    """Remove empty columns from a view."""
    empty = ("", None)
    used = [c for c in view.columns if c.blank or any(row[c.key] not in empty for row in view.rows)]
    return View(used, view.rows)


def _is_right(view: View, column: Column) -> bool:
    """Whether a column contains numbers, which are right-aligned."""
    values = [row[column.key] for row in view.rows]
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _markdown_cell(row: Mapping[str, Cell], column: Column) -> str:
    value = row[column.key]
    shown = text(value)
    if not shown or not isinstance(value, str):
        return shown or column.blank
    fence = "`"
    while fence in shown:
        fence += "`"
    space = " " if "`" in shown else ""
    return (fence + space + shown + space + fence).replace("|", "\\|")
