"""`archspec fmt [PATH...]`."""

from __future__ import annotations

import sys
from argparse import Namespace
from difflib import unified_diff
from io import StringIO

from archspec.app.cli import is_usage, write_diagnostics
from archspec.app.cli.files import replace_contents, spec_files
from archspec.app.cli.output import write
from archspec.app.cli.progress import PROGRESS
from archspec.core.diagnostics import MAX_FILE_BYTES, ArchError, Diagnostic, Report, read_bytes
from archspec.core.reports.text import number
from archspec.language.format.api import format_bytes
from archspec.pipeline.streams import read_stream, stream_label


def run(options: Namespace) -> int:
    """Format files in place, or report unformatted files. Returns 1 if a file is not formatted or has errors."""
    diagnostics: list[Diagnostic] = []
    changed = unchanged = 0
    files = [file for path in options.paths for file, _ in spec_files(path)]
    for path in files:
        report = Report()
        try:
            is_changed = _format(path, options, report)
        except ArchError as error:
            report.diagnostics += error.diagnostics
            is_changed = None
        changed += is_changed is True
        unchanged += is_changed is False
        diagnostics += report.diagnostics
    write_diagnostics(diagnostics)
    if files != ["-"]:
        _summarize(changed, unchanged, options)
    if is_usage(diagnostics):
        return 2
    return int(bool(diagnostics) or (changed > 0 and (options.check or options.diff)))


def _format(path: str, options: Namespace, report: Report) -> bool | None:
    """Format a file. Returns whether its contents change; None if the file cannot be read."""
    label = stream_label(path)
    before = read_stream(path, MAX_FILE_BYTES + 1) if path == "-" else read_bytes(path, label, report)
    if before is None:
        return None
    after = format_bytes(before, label, report)
    if options.diff:
        write(_difference(before, after, label))
    elif path == "-" and not options.check:
        PROGRESS.end()
        sys.stdout.flush()
        sys.stdout.buffer.write(after)
    elif before != after and options.check:
        print(f"not formatted: {label}")
    elif before != after:
        replace_contents(path, after)
        print(f"formatted: {label}")
    return before != after


def _difference(before: bytes, after: bytes, label: str) -> str:
    old, new = (StringIO(data.decode(errors="replace"), newline="\n").readlines() for data in (before, after))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in unified_diff(old, new, label, f"{label} (formatted)")
    )


def _summarize(changed: int, unchanged: int, options: Namespace) -> None:
    word = "to format" if options.check or options.diff else "formatted"
    counts = [f"{number(changed, 'file')} {word}"] if changed else []
    if unchanged or not changed:
        counts.append(f"{number(unchanged, 'file')} unchanged")
    print(", ".join(counts), file=sys.stderr if options.diff else sys.stdout)
