"""Results of searches as Parquet files, if pyarrow is installed."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO

from archspec.analysis.search.result import SearchResult
from archspec.core.diagnostics import missing_package_error
from archspec.core.reports.results import rows_of


def parquet(found: SearchResult) -> bytes:
    """Return the rows of the CSV output as a Parquet file. Raises ArchError if pyarrow is not installed."""
    try:
        pyarrow, library = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        message = "Parquet output requires pyarrow, which is not installed"
        raise missing_package_error(message, "parquet") from None
    view = rows_of(found)
    table = pyarrow.table({column.key: [row[column.key] for row in view.rows] for column in view.columns})
    file = BytesIO()
    library.write_table(table, file)
    return file.getvalue()
