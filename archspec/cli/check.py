"""`archspec check PATH...`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import USAGE, write_findings
from archspec.pipeline.compile import check
from archspec.reporting.text import number


def run(options: Namespace) -> int:
    """Writes every diagnostic to standard error, and one line with their numbers to standard output."""
    found = [diagnostic for path in options.paths for diagnostic in check(path).diagnostics]
    write_findings(found)
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    warnings = len(found) - errors
    counted = [number(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    print(f"{number(len(options.paths), 'file')}, {', '.join(counted) or 'no findings'}")
    return 2 if any(diagnostic.code in USAGE for diagnostic in found) else int(bool(found))
