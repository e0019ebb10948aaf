"""Output of reports."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.app.cli.progress import PROGRESS
from archspec.core.reports import documents
from archspec.core.reports.results import Displayable, contents_of, page_of, rows_of


def print_result(found: Displayable, options: Namespace) -> None:
    """Write a result in the format of the options."""
    write(format_result(found, options))


def format_result(found: Displayable, options: Namespace) -> str:
    """Return a result in the format of the options."""
    format = options.format
    if format in documents.FORMATS:
        return documents.write(contents_of(found), format)
    from archspec.app.cli.pages import csv_text, page_text  # not at the top: a document needs no tables

    return csv_text(rows_of(found)) if format == "csv" else page_text(page_of(found, format), options)


def write(text: str) -> None:
    """Write text to standard output, in place of the line of progress."""
    PROGRESS.end()
    sys.stdout.write(text)
