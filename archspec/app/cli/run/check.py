"""`archspec check PATH...`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec import __version__
from archspec.app.cli import is_usage, write_diagnostics
from archspec.app.cli.files import spec_files
from archspec.app.cli.output import write
from archspec.app.cli.progress import PROGRESS
from archspec.app.cli.run.error import read_entries
from archspec.core.diagnostics import Diagnostic
from archspec.core.reports.diagnostic_formats import github_text, json_text, sarif_text
from archspec.core.reports.text import number
from archspec.formats.configs.configuration import Configuration
from archspec.pipeline.compile import check


def run(options: Namespace) -> int:
    """Write all diagnostics. Returns 1 for errors, or for warnings with --strict."""
    files = [file for path in options.paths for file in spec_files(path)]
    by_text: dict[str, Diagnostic] = {}  # a file that others import is checked several times
    for index, (path, root) in enumerate(files, 1):
        PROGRESS.step = f"archspec check, file {index} of {len(files)}"
        result = check(Configuration(path, options.type, tuple(options.ignore), options.strict), root)
        by_text.update({diagnostic.render(): diagnostic for diagnostic in result.diagnostics})
    diagnostics = list(by_text.values())
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    warnings = len(diagnostics) - errors
    counts = [number(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    summary = f"{number(len(files), 'file')}, {', '.join(counts) or 'no errors or warnings'}\n"
    _write(diagnostics, [path for path, _ in files], summary, options.format)
    if is_usage(diagnostics):
        return 2
    return int(errors > 0 or (options.strict and warnings > 0))


def _write(diagnostics: Sequence[Diagnostic], files: Sequence[str], summary: str, format: str) -> None:
    """Write diagnostics to standard error and the summary to standard output, or a document to standard output."""
    match format:
        case "json":
            write(json_text(diagnostics, files))
        case "sarif":
            write(sarif_text(diagnostics, read_entries() if diagnostics else {}, __version__))
        case "github":
            write(github_text(diagnostics) + summary)
        case _:
            write_diagnostics(diagnostics)
            write(summary)
