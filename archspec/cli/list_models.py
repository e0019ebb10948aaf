"""`archspec list`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.cli.tables import write_page, write_rows
from archspec.pipeline.files import models
from archspec.pipeline.tables import table_of
from archspec.reporting import documents
from archspec.reporting.page import Page
from archspec.reporting.tables import Column, Row, View, columns
from archspec.reporting.units import parameters


def run(options: Namespace) -> int:
    """Write the bundled models with their parameter counts, file by file."""
    rows: list[Row] = [{"model": name, **table_of(name)[0].params._asdict()} for name in models()]
    if options.format in documents.FORMATS:
        sys.stdout.write(documents.write({"format": 1, "models": rows}, options.format))
    elif options.format == "csv":
        write_rows(View(columns("model", "total", "trainable", "frozen"), rows))
    else:
        shown = [
            Column("model", "model", fit="shorten"),
            Column("total", "total"),
            Column("rounded", "", style="unit"),
            Column("trainable", "trainable", drop=2),
            Column("frozen", "frozen", drop=1),
        ]
        rounded = [row | {"rounded": parameters(row["total"])} for row in rows]
        write_page(Page("", [View(shown, rounded)]), options)
    return 0
