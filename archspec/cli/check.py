"""`archspec check PATH...`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import USAGE, write_diagnostics
from archspec.pipeline.compile import check
from archspec.reporting.text import number


def run(options: Namespace) -> int:
    """Write all diagnostics to standard error, and a line with their number to standard output."""
    found = [diagnostic for path in options.paths for diagnostic in check(path).diagnostics]
    write_diagnostics(found)
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    warnings = len(found) - errors
    counted = [number(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    print(f"{number(len(options.paths), 'file')}, {', '.join(counted) or 'no errors or warnings'}")
    if any(diagnostic.code in USAGE for diagnostic in found):
        return 2
    return int(errors > 0 or (options.strict and warnings > 0))
