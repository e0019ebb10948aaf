"""Output of results in the format that the options name."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.app.cli.progress import PROGRESS
from archspec.core.reports import documents
from archspec.core.reports.results import Displayable, contents_of, page_of, rows_of


def print_result(result: Displayable, options: Namespace) -> None:
    """Write a result in the format of the options."""
    write(format_result(result, options))


def format_result(result: Displayable, options: Namespace) -> str:
    """Return a result in the format of the options."""
    format = options.format
    if format in documents.FORMATS:
        return documents.write(contents_of(result), format)
    from archspec.app.cli import pages  # imported late: documents need no tables

    return pages.csv(rows_of(result)) if format == "csv" else pages.format_page(page_of(result, format), options)


def write(text: str) -> None:
    """Write text to standard output, after removing the progress line."""
    PROGRESS.end()
    sys.stdout.write(text)
