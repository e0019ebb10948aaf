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
    """Write the bundled models, or those that match a word, with their parameter counts, grouped by family."""
    models = read_index() or [*_compile_models()]
    matches = [model for model in models if _matches(model, options.word)]
    if not matches:
        suggestion = suggest(options.word, [*dict.fromkeys(model.file for model in models), *(m.name for m in models)])
        help = suggestion or "run `archspec list` to show all bundled models"
        raise make_error("unknown-model", f"no bundled model or family matches `{options.word}`", help=help)
    specs = resources.specs_root()
    kinds = {file: resources.bundled_kind(specs, file) for file in dict.fromkeys(model.file for model in matches)}
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
        Column("kind", "kind") if is_markdown else None,
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
    view = View([column for column in table_columns if column is not None], table_rows)
    write(format_page(Page("", [view]), options))


def _matches(model: BundledModel, word: str) -> bool:
    """Return whether a word is the kind of a model, or occurs in its name or in the name of its family.

    Punctuation and case are ignored.
    """
    if word in resources.KINDS:
        return resources.bundled_kind(resources.specs_root(), model.file) == word
    return any(simplify(word) in simplify(name) for name in (model.file, model.name))


def _compile_models() -> Iterator[BundledModel]:
    models = find_models()
    for number, (file, name) in enumerate(models, 1):
        PROGRESS.step = f"archspec list, model {number} of {len(models)}"
        yield BundledModel(file, name, load_table(name)[0].params)
