"""`archspec compare`: the command, and the document that programs read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from archspec.cli import write_findings
from archspec.cli.commands import DOCUMENTS, write_document
from archspec.cli.several import overrides_for
from archspec.source import Diagnostic, fail, printable

if TYPE_CHECKING:
    from argparse import Namespace

    from archspec.comparisons.compare import Comparison, Costs, Figure, Part
    from archspec.table import Table


def run_compare(options: Namespace) -> int:
    """`archspec compare A B [C ...]`."""
    specs = [options.a, *options.others]
    if options.svg is not None:
        from archspec.cli.files import refuse_existing

        if len(specs) != 2:
            raise fail("usage", "--svg is a picture of two models", help="name two, or leave it out")
        refuse_existing(options.svg, options.force)
    found, warnings = _compared(options, specs)
    if options.svg is not None:
        from archspec.cli.files import save
        from archspec.comparisons.report import names, pairs
        from archspec.comparisons.svg import svg

        first, second = map(printable, names(found))
        save(options.svg, svg((first, second), pairs(found)), options.force)
    if options.format in DOCUMENTS:
        write_document(contents(found), options.format)
    else:
        from archspec.comparisons.report import page

        sys.stdout.write(page(found, options.format))
    write_findings(list(dict.fromkeys(warnings)))
    return 0


def _compared(options: Namespace, specs: list[str]) -> tuple[Comparison, list[Diagnostic]]:
    """The comparison; models are compiled only where tables are not enough."""
    from archspec.comparisons.compare import compare_tables

    given = list(zip(specs, overrides_for(len(specs), options.settings), strict=True))
    sizes = _sizes(options)
    warnings: list[Diagnostic] = []
    tables: list[Table] = []
    costs: Costs | None = None
    if sizes:
        from archspec.comparisons.api import costs as costs_of
        from archspec.pipeline import compile_spec

        models = [compile_spec(spec, overrides) for spec, overrides in given]
        tables = [model.table for model in models]
        warnings = [warning for model in models for warning in model.warnings]
        costs = costs_of(models, sizes)
    else:
        from archspec.pipeline import table_of

        for spec, overrides in given:
            table, found = table_of(spec, overrides)
            tables.append(table)
            warnings += found
    return compare_tables(tables, options.depth, costs), warnings


def _sizes(options: Namespace) -> dict[str, int]:
    """The sizes of --batch, --seq and --dim. Raises ArchError."""
    found: dict[str, int] = {}
    if options.dims:
        from archspec.cli.cost import dims

        found = dims(options.dims)
    for name, size in (("batch", options.batch), ("seq", options.seq)):
        if size is not None and found.setdefault(name, size) != size:
            raise fail("usage", f"the dimension `{name}` is given as {size} and as {found[name]}")
    return found


def contents(found: Comparison) -> dict[str, Any]:
    """The document that JSON and YAML write. Values stand in the order of the models."""
    from archspec.counts.document import finite

    costs = found.costs
    return {
        "format": 1,
        "models": [
            {"model": table.model, "overrides": finite(table.overrides), "params": table.params._asdict()}
            for table in found.models
        ],
        "hyperparameters": [
            {
                "name": setting.name,
                "has": [i in setting.values for i in range(len(found.models))],
                "values": [finite({"": setting.values.get(i)})[""] for i in range(len(found.models))],
            }
            for setting in found.settings
        ],
        "totals": [_figure(figure) for figure in found.totals],
        "roles": [_figure(figure) for figure in found.roles],
        "components": [_part(part) for part in found.parts],
        "costs": None
        if costs is None
        else {"dims": costs.dims, "notes": list(costs.notes), "figures": [*map(_figure, costs.figures)]},
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name or None,
        "values": list(figure.plain),
        "differences": list(figure.differences),
        "ratios": [ratio if ratio is None else round(ratio, 6) for ratio in figure.ratios],
    }


def _part(part: Part) -> dict[str, Any]:
    row = part.row
    return {
        "level": row.level,
        "by": [by or None for by in row.by],
        "parts": [
            [
                {
                    "address": component.address,
                    "type": component.type,
                    "times": component.times,
                    "each": component.each,
                    "params": component.total,
                    "role": component.role,
                }
                for component in group
            ]
            for group in row.groups
        ],
        **{key: value for key, value in _figure(part.params).items() if key != "name"},
    }
