"""`archspec list`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from archspec.app.cli.output import write
from archspec.app.cli.pages import format_page
from archspec.app.cli.progress import PROGRESS
from archspec.core import resources
from archspec.core.diagnostics import make_error, suggest
from archspec.core.reports import documents
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View, columns, csv
from archspec.core.reports.text import parameters
from archspec.pipeline.index import BundledModel, find_models, read_index, simplify
from archspec.pipeline.tables import load_table


def run(options: Namespace) -> int:
    """Write the bundled models, or a selection of them, with their parameter counts, grouped by kind and family."""
    models = read_index() or [*_compile_models()]
    specs, word = resources.specs_root(), options.word
    kinds = {file: resources.bundled_kind(specs, file) for file in dict.fromkeys(model.file for model in models)}
    matches = [m for m in models if (kinds[m.file] == word if word in resources.KINDS else _matches(m, word))]
    if not matches:
        suggestion = suggest(word, [*dict.fromkeys(model.file for model in models), *(m.name for m in models)])
        help = suggestion or "run `archspec list` to show all bundled models"
        raise make_error("unknown-model", f"no bundled model or family matches `{word}`", help=help)
    matches.sort(key=lambda model: resources.KINDS.index(kinds[model.file]))
    rows: list[Row] = [
        {"kind": kinds[model.file], "family": model.file, "model": model.name, **model.params._asdict()}
        for model in matches
    ]
    if options.format in documents.FORMATS:
        write(documents.write({"format": 1, "models": rows}, options.format))
    elif options.format == "csv":
        write(csv(View(columns(*rows[0]), rows)))
    else:
        _write_table(rows, options)
    return 0


def _write_table(rows: list[Row], options: Namespace) -> None:
    is_markdown = options.format == "markdown"
    table_columns = [
        *([Column("kind", "kind")] if is_markdown else []),
        Column("family", "family", fit="shorten", drop=2),
        Column("model", "model", fit="shorten"),
        Column("total", "parameters"),
        Column("rounded", "", style="unit"),
        Column("frozen", "frozen", drop=1),
    ]
    table_rows: list[Row] = []
    last: Row = {}
    for row in rows:
        shown = {**row, "rounded": parameters(row["total"]), "frozen": row["frozen"] or None}
        if not is_markdown:
            if row["kind"] != last.get("kind"):
                table_rows.append({**dict.fromkeys(shown, ""), "family": row["kind"]})
            shown["family"] = f"  {row['family']}" if row["family"] != last.get("family") else ""
        table_rows.append(shown)
        last = row
    write(format_page(Page("", [View(table_columns, table_rows)]), options))


def _matches(model: BundledModel, word: str) -> bool:
    """Return whether a word occurs in the name of a model or of its family, without regard to punctuation and case."""
    return any(simplify(word) in simplify(name) for name in (model.file, model.name))


def _compile_models() -> Iterator[BundledModel]:
    models = find_models()
    for number, (file, name) in enumerate(models, 1):
        PROGRESS.step = f"archspec list, model {number} of {len(models)}"
        yield BundledModel(file, name, load_table(name)[0].params)
