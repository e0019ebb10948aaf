"""The result of a search."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

from archspec.analysis.search.columns import Array
from archspec.analysis.search.plot import Plot, draw
from archspec.analysis.search.search import SearchCounts
from archspec.core.diagnostics import make_error, missing_package_error
from archspec.core.record import Node
from archspec.core.reports.results import Result, rows_of
from archspec.ir.table import PlainValue


class Design(Node):
    """A design: the varied hyperparameters, the figures that the search compared, and its model statement.

    `equal` is the number of designs with the same values of `best`, of which this is the first.
    """

    values: dict[str, PlainValue]
    figures: dict[str, int]
    equal: int
    line: str


class SearchResult(Result):
    """The designs that satisfy the conditions of a search: the best, the nearest, or all.

    `tally` has the numbers of designs, and `found` is the number of chosen designs. `designs` are the first of the
    chosen designs, each compiled from its `line`. `every` has the values of all designs that satisfy the conditions,
    as arrays by name, or None if they were not collected. `imports` are names of the standard library that the lines
    need in addition to those that the spec imports. `helpers` are the varied names that are not hyperparameters.
    """

    model: str
    overrides: dict[str, PlainValue]
    varied: tuple[str, ...]
    where: tuple[str, ...]
    best: tuple[str, ...]
    near: str
    tally: SearchCounts
    figures: tuple[str, ...]
    found: int
    designs: tuple[Design, ...]
    imports: tuple[str, ...]
    plotted: Plot | None
    every: dict[str, Array] | None
    helpers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Search of {self.model!r}: {self.tally.answers:,} of {self.tally.designs:,} designs>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the designs with matplotlib, on `ax` or on new axes, and return the axes.

        Raises ArchError if matplotlib is not installed or if there is nothing to draw.
        """
        if self.plotted is None:
            raise make_error("usage", "there is nothing to draw: no design satisfies the conditions")
        return draw(self.plotted, ax)


def to_parquet(result: SearchResult) -> bytes:
    """Return the rows of the CSV output as a Parquet file. Raises ArchError if pyarrow is not installed."""
    try:
        pyarrow, library = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        message = "Parquet output requires pyarrow, which is not installed"
        raise missing_package_error(message, "parquet") from None
    view = rows_of(result)
    table = pyarrow.table({column.key: [row[column.key] for row in view.rows] for column in view.columns})
    file = BytesIO()
    library.write_table(table, file)
    return file.getvalue()
