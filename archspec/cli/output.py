"""Output of reports."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.reporting import documents
from archspec.reporting.results import Shown, contents_of, page_of, rows_of


def show(found: Shown, options: Namespace) -> None:
    """Write a result in the format of the options."""
    format = options.format
    if format in documents.FORMATS:
        sys.stdout.write(documents.write(contents_of(found), format))
        return
    from archspec.cli.tables import write_page, write_rows  # not at the top: a document needs no tables

    if format == "csv":
        write_rows(rows_of(found))
    else:
        write_page(page_of(found, format), options)
