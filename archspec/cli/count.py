"""`archspec count SPEC`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import write_diagnostics
from archspec.cli.output import show
from archspec.counts.count import count
from archspec.counts.select import Rule
from archspec.overrides import parse_overrides
from archspec.pipeline.tables import table_of
from archspec.source import Diagnostic, fail


def run(options: Namespace) -> int:
    """Write the parameter count of a model."""
    if options.depth is not None and options.by in ("tensor", "role"):
        raise fail("usage", f"--depth cannot be combined with --by {options.by}", help="remove it, or use --by layer")
    table, warnings = table_of(options.spec, parse_overrides(options.settings))
    counted = count(table, options.rules, options.by, options.depth)
    show(counted, options)
    write_diagnostics([*warnings, *map(_unmatched, counted.selection.unmatched)])
    return 0


def _unmatched(rule: Rule) -> Diagnostic:
    option = "--select" if rule.include else "--exclude"
    return Diagnostic(
        "no-match",
        f"`{option} {rule.pattern}` matches no tensor",
        help="a pattern must match the whole name; use `--by tensor` to list the names",
        severity="warning",
    )
