"""`archspec list`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli.output import write
from archspec.cli.progress import PROGRESS
from archspec.cli.tables import page_text
from archspec.pipeline.files import models
from archspec.pipeline.tables import table_of
from archspec.reporting import documents
from archspec.reporting.page import Page
from archspec.reporting.tables import Column, Row, View, columns, csv
from archspec.reporting.units import parameters


def run(options: Namespace) -> int:
    """Write the bundled models with their parameter counts, file by file."""
    rows: list[Row] = []
    names = list(models())
    for number, name in enumerate(names, 1):
        PROGRESS.what = f"archspec list, model {number} of {len(names)}"
        rows.append({"model": name, **table_of(name)[0].params._asdict()})
    if options.format in documents.FORMATS:
        write(documents.write({"format": 1, "models": rows}, options.format))
    elif options.format == "csv":
        write(csv(View(columns("model", "total", "trainable", "frozen"), rows)))
    else:
        shown = [
            Column("model", "model", fit="shorten"),
            Column("total", "total"),
            Column("rounded", "", style="unit"),
            Column("trainable", "trainable", drop=2),
            Column("frozen", "frozen", drop=1),
        ]
        rounded = [row | {"rounded": parameters(row["total"])} for row in rows]
        write(page_text(Page("", [View(shown, rounded)]), options))
    return 0
