"""The content of tables: rows of values under columns; their text as markdown and csv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from archspec.core.diagnostics import escape_controls, escape_for_terminal, make_error
from archspec.core.record import Record


class Column(Record):
    """A column: the key of its values in a row, its title, and the text for an empty value.

    The other fields adapt a table to a width. `fit` is how to treat long text: "shorten" (in the middle) or "wrap";
    other text and numbers are never cut. If that is not enough, columns with a `drop` are omitted, the lowest first.
    `style` is "role" (in the color of the row's `role`), "dim", "note", "unit" (right-aligned) or "".
    """

    key: str
    title: str
    blank: str = ""
    fit: str = ""
    drop: int = 0
    style: str = ""


def columns(*keys: str) -> list[Column]:
    """Return columns whose titles are their keys."""
    return [Column(key, key) for key in keys]


class Bar(Record):
    """A bar of a length proportional to `value`; a value of `maximum` fills the column."""

    value: int
    maximum: int


Cell: TypeAlias = str | int | float | Sequence[int] | Bar | None
"""A value: text, an integer, a share from 0 to 1, a boolean, a shape, a bar, or nothing."""

Row: TypeAlias = dict[str, Cell]
"""Values by the keys of their columns, and further values such as `role`."""


class View(Record):
    """Rows of values under columns."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]


def used(view: View) -> View:
    """Remove empty columns from a view."""
    empty = ("", None)
    columns = [c for c in view.columns if c.blank or any(row[c.key] not in empty for row in view.rows)]
    return View(columns, view.rows)


def is_right(view: View, column: Column) -> bool:
    """Whether a column is right-aligned: it contains numbers or units."""
    values = [row[column.key] for row in view.rows]
    return column.style == "unit" or any(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def csv(view: View) -> str:
    """Comma-separated values under a line of keys.

    Text is quoted where necessary. Control characters are escaped, and text that a spreadsheet would take for a formula
    begins with `'`.
    """
    import csv as library
    from io import StringIO

    out = StringIO()
    writer = library.writer(out, lineterminator="\n")
    writer.writerow([_csv_value(column.key) for column in view.columns])
    for row in view.rows:
        writer.writerow([_csv_value(row[column.key]) for column in view.columns])
    return out.getvalue()


def markdown(view: View) -> str:
    """Format a view as a markdown table; text is set as code, so that names are not interpreted as markup."""
    view = used(view)
    right = [is_right(view, column) for column in view.columns]
    titles = [column.title for column in view.columns]
    lines = [
        "| "
        + " | ".join(title if title == "*" else escape_markdown(escape_for_terminal(title)) for title in titles)
        + " |",
        "|" + "|".join(" ---: " if number else " --- " for number in right) + "|",
    ]
    for row in view.rows:
        lines.append("| " + " | ".join(_markdown_cell(row, column) for column in view.columns) + " |")
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Escape the markup in a text."""
    return "".join(f"\\{c}" if c in "\\`*[]<|" else c for c in text)


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
        return escape_for_terminal(value)
    return f"{value.value:,}" if isinstance(value, Bar) else shape(value)


def percent(share: float) -> str:
    """Format a fraction from 0 to 1 in percent; a small positive one is not shown as 0."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def shape(sizes: Iterable[int]) -> str:
    """Format a shape: `768 x 3072`; that of a scalar is `1`."""
    return " x ".join(map(str, sizes)) or "1"


def _csv_value(value: Cell) -> str | int | float | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{escape_controls(value)}" if value.startswith(_FORMULA_PREFIXES) else escape_controls(value)
    if isinstance(value, Bar):
        return value.value
    return value if value is None or isinstance(value, int | float) else "x".join(map(str, value))


_FORMULA_PREFIXES = ("=", "+", "-", "@")
"""First characters of text that spreadsheets evaluate as a formula."""


def _markdown_cell(row: Mapping[str, Cell], column: Column) -> str:
    value = row[column.key]
    content = text(value)
    if not content or not isinstance(value, str) or column.style == "unit":
        return content or column.blank
    fence = "`"
    while fence in content:
        fence += "`"
    space = " " if "`" in content else ""
    return (fence + space + content + space + fence).replace("|", "\\|")


# Data frames, if pandas is installed ----------------------------------------------------------------------------------

_MAX_INT64 = 2**63 - 1


def frame(view: View) -> Any:
    """Return the rows of a view as a data frame. Integers remain integers in columns with missing values.

    Raises ArchError if pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        message = "a data frame requires pandas, which is not installed"
        raise make_error("missing-package", message, help="run `pip install pandas`") from None
    values = {column.key: [row[column.key] for row in view.rows] for column in view.columns}
    return pandas.DataFrame({key: pandas.Series(cells, dtype=_type(cells)) for key, cells in values.items()})


def _type(cells: list[Cell]) -> str | type[object]:
    """Return the type of a column: the type of its values, nullable if values are missing."""
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, bool) for cell in present):
        return "boolean" if len(present) < len(cells) else "bool"
    if present and all(isinstance(cell, int) and abs(cell) <= _MAX_INT64 for cell in present):
        return "Int64" if len(present) < len(cells) else "int64"
    return "float64" if present and all(isinstance(cell, float) for cell in present) else object
