"""`archspec list`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli.output import show
from archspec.pipeline.files import models
from archspec.pipeline.tables import table_of
from archspec.reporting.documents import Document
from archspec.reporting.tables import Row, View, columns, write


def run(options: Namespace) -> int:
    """Write the bundled models with their parameter counts, file by file."""
    rows: list[Row] = [{"model": name, **table_of(name)[0].params._asdict()} for name in models()]
    show(rows, options.format, _contents, _page)
    return 0


def _contents(rows: list[Row]) -> Document:
    return {"format": 1, "models": rows}


def _page(rows: list[Row], format: str) -> str:
    return write(View(columns("model", "total", "trainable", "frozen"), rows), format)
