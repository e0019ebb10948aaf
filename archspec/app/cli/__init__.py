"""The command line: `main`, and the streams, exit status and diagnostics that all commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from archspec.app.cli.arguments import parse, resolve_names
from archspec.app.cli.progress import PROGRESS
from archspec.core.diagnostics import ArchError, Diagnostic, combine_warnings
from archspec.core.reports.colour import supports_color
from archspec.core.wrapping import line_width

USAGE_CODES = frozenset(
    {
        "bad-checkpoint",
        "bad-override",
        "bad-plan",
        "bad-size",
        "missing-file",
        "missing-package",
        "unknown-model",
        "unreadable",
        "usage",
        "which-model",
    }
)
"""Codes of diagnostics about the use of a command or an unreadable file; all other codes are about a spec."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `arguments` defaults to the command line of the process.

    The exit status is 0 for success, 1 for errors or differences in the input, 2 for invalid usage or an unreadable
    file, and 130 if the command is interrupted.
    """
    try:
        _prepare_stdout()
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _redirect_to_null(sys.stdout)
        return 0
    except OSError as error:  # files named by the user report their errors where they are opened
        _redirect_to_null(sys.stdout)
        write_diagnostics([Diagnostic("unreadable", f"cannot continue: {error.strerror or error}")])
        return 2


def is_usage(diagnostics: Sequence[Diagnostic]) -> bool:
    """Return whether a diagnostic is about the use of a command or an unreadable file."""
    return any(diagnostic.code in USAGE_CODES for diagnostic in diagnostics)


def write_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Write diagnostics to standard error, separated by blank lines."""
    PROGRESS.end()
    if not diagnostics or sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
    in_colour, width = supports_color(sys.stderr), line_width(2)
    texts = [diagnostic.render(width) for diagnostic in combine_warnings(diagnostics)]
    text = "\n\n".join(map(_paint, texts) if in_colour else texts)
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:  # there is no reader; the exit status still reports the result
        _redirect_to_null(sys.stderr)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        PROGRESS.begin(f"archspec {options.command}")
        try:
            return options.run(options)
        except ArchError as error:  # before any output, if a model is unknown
            notes = resolve_names(options) if error.diagnostics[0].code == "unknown-model" else []
            if not notes:
                raise
            PROGRESS.end()
            sys.stderr.write("".join(f"{note}\n" for note in notes))
            return options.run(options)
    except ArchError as error:
        write_diagnostics(error.diagnostics)
        return 2 if is_usage(error.diagnostics) else 1
    except SystemExit as stop:  # argparse: after --help, --version, or a usage error that it has printed
        return stop.code if isinstance(stop.code, int) else 2
    finally:
        PROGRESS.end()


def _prepare_stdout() -> None:
    """Replace a closed standard output, and escape characters that its encoding lacks."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] -- closed by `>&-`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")


def _redirect_to_null(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that the flush at exit does not fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_PAINT = {"error[": "\x1b[1;31m", "warning[": "\x1b[1;33m", "note: ": "\x1b[1;36m", "help: ": "\x1b[1;32m"}


def _paint(text: str) -> str:
    """Colour the first word of each line, except in source lines, which begin with a number or a space."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        for start, colour in _PAINT.items():
            if line.startswith(start):
                word = line[: line.index(":") + 1]
                lines[i] = f"{colour}{word}\x1b[0m{line[len(word) :]}"
    return "\n".join(lines)
