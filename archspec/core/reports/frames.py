"""Rows as pandas data frames, if pandas is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from archspec.core.diagnostics import make_error
from archspec.core.reports.tables import Cell, View

_MAX_INT64 = 2**63 - 1


def frame(view: View) -> Any:
    """Return the rows of a view as a data frame. Integers stay integers where others are missing.

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
    """Return the type of a column: that of its values, with a way to say that one is missing."""
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, bool) for cell in present):
        return "boolean" if len(present) < len(cells) else "bool"
    if present and all(isinstance(cell, int) and abs(cell) <= _MAX_INT64 for cell in present):
        return "Int64" if len(present) < len(cells) else "int64"
    return "float64" if present and all(isinstance(cell, float) for cell in present) else object
