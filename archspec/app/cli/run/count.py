"""`archspec count SPEC`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.count.count import count
from archspec.analysis.count.select import SelectionRule
from archspec.app.cli import write_diagnostics
from archspec.app.cli.adapters import adapter_for
from archspec.app.cli.output import print_result
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.pipeline.locate import locate
from archspec.pipeline.overrides import parse_overrides
from archspec.pipeline.tables import load_table


def run(options: Namespace) -> int:
    """Write the parameter count of a model."""
    if options.depth is not None and options.by in ("tensor", "role"):
        raise make_error(
            "usage", f"--depth cannot be combined with --by {options.by}", help="remove it, or use --by layer"
        )
    location = locate(options.spec)
    if location.kind == "adapter":
        return _count_adapter(options)
    if options.base is not None:
        raise make_error("usage", "--base has no effect: SPEC is not an adapter", help="remove it")
    table, warnings = load_table(location, parse_overrides(options.settings))
    counted = count(table, options.rules, options.by, options.depth)
    print_result(counted, options)
    write_diagnostics([*warnings, *map(_unmatched, counted.selection.unmatched)])
    return 0


def _count_adapter(options: Namespace) -> int:
    found = adapter_for(options)
    if options.by is None and options.depth is None and not options.rules:
        print_result(found, options)
        return 0
    counted = count(found.table, options.rules, options.by, options.depth)
    print_result(counted, options)
    write_diagnostics([*map(_unmatched, counted.selection.unmatched)])
    return 0


def _unmatched(rule: SelectionRule) -> Diagnostic:
    option = "--select" if rule.include else "--exclude"
    return Diagnostic(
        "no-match",
        f"`{option} {rule.pattern}` matches no tensor",
        help="a pattern must match the whole name; use `--by tensor` to list the names",
        severity="warning",
    )
