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
    """Format files in place, or report those that are not formatted. Returns the exit status."""
    found: list[Diagnostic] = []
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
        found += report.diagnostics
    write_diagnostics(found)
    if files != ["-"]:
        _summarize(changed, unchanged, options)
    if is_usage(found):
        return 2
    return int(bool(found) or (changed > 0 and (options.check or options.diff)))


def _format(path: str, options: Namespace, report: Report) -> bool | None:
    """Format a file; return whether that changes it, or None if it cannot be read."""
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
    counted = [f"{number(changed, 'file')} {word}"] if changed else []
    if unchanged or not changed:
        counted.append(f"{number(unchanged, 'file')} unchanged")
    print(", ".join(counted), file=sys.stderr if options.diff else sys.stdout)
