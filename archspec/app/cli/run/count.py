"""`archspec count SPEC`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from archspec.analysis.count.count import count
from archspec.analysis.count.select import SelectionRule
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.pipeline.locate import Location, locate
from archspec.pipeline.overrides import parse_overrides
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.analysis.adapter.adapter import Adapter


def run(options: Namespace) -> int:
    """Write the parameter count of a model."""
    if options.depth is not None and options.by in ("tensor", "role"):
        raise make_error(
            "usage", f"--depth cannot be combined with --by {options.by}", help="remove it, or use --by layer"
        )
    location = locate(options.spec)
    if location.kind == "adapter":
        return _count_adapter(location, options)
    if options.base is not None:
        raise make_error("usage", "--base has no effect: SPEC is not an adapter", help="remove it")
    table, warnings = load_table(location, parse_overrides(options.settings))
    result = count(table, options.rules, options.by, options.depth)
    print_result(result, options)
    write_diagnostics([*warnings, *map(_unmatched, result.selection.unmatched)])
    return 0


def read_adapter(location: Location, options: Namespace) -> Adapter:
    """Return the adapter at a location, on the base model of --base. Raises ArchError."""
    from archspec.analysis.adapter.adapter import load_adapter  # imported late: it imports the compiler

    return load_adapter(location, options.base, parse_overrides(options.settings))


def _count_adapter(location: Location, options: Namespace) -> int:
    adapter = read_adapter(location, options)
    if options.by is None and options.depth is None and not options.rules:
        print_result(adapter, options)
        return 0
    result = count(adapter.table, options.rules, options.by, options.depth)
    print_result(result, options)
    write_diagnostics([*map(_unmatched, result.selection.unmatched)])
    return 0


def _unmatched(rule: SelectionRule) -> Diagnostic:
    option = "--select" if rule.include else "--exclude"
    return Diagnostic(
        "no-match",
        f"`{option} {rule.pattern}` matches no tensor",
        help="a pattern must match the full name; use `--by tensor` to list the names",
        severity="warning",
    )
