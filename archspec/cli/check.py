"""`archspec check PATH...`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import USAGE, write_diagnostics
from archspec.cli.files import spec_files
from archspec.cli.progress import PROGRESS
from archspec.configuration import Configuration
from archspec.pipeline.compile import check
from archspec.reporting.text import number
from archspec.source import Diagnostic


def run(options: Namespace) -> int:
    """Write all diagnostics to standard error, and a line with their number to standard output."""
    files = [file for path in options.paths for file in spec_files(path)]
    every: list[Diagnostic] = []
    for done, (path, root) in enumerate(files, 1):
        PROGRESS.what = f"archspec check, file {done} of {len(files)}"
        every += check(Configuration(path, options.type, tuple(options.ignore)), root).diagnostics
    found = list({diagnostic.render(): diagnostic for diagnostic in every}.values())  # imported files are checked twice
    write_diagnostics(found)
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    warnings = len(found) - errors
    counted = [number(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    print(f"{number(len(files), 'file')}, {', '.join(counted) or 'no errors or warnings'}")
    if any(diagnostic.code in USAGE for diagnostic in found):
        return 2
    return int(errors > 0 or (options.strict and warnings > 0))
