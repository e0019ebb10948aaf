"""`--watch`: a command that is run again after each change of a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

from archspec.app.cli import is_usage, write_diagnostics
from archspec.app.cli.files import spec_files
from archspec.core.diagnostics import ArchError, make_error
from archspec.pipeline.locate import split_spec
from archspec.pipeline.streams import is_stream
from archspec.pipeline.watching import Files, files_with_imports, read_contents, wait_for_change


def run_watching(options: Namespace, command: Callable[[Namespace], int]) -> int:
    """Run a command, and again whenever one of the files of its specs changes, until it is interrupted.

    Raises ArchError if the specs are not files, or the first run fails because of its options.
    """
    paths = [_path(spec) for spec in (options.paths if "paths" in options else [options.spec])]
    is_first = True
    try:
        while True:
            listed = _spec_paths(paths)
            imported = [each for file in listed for each in files_with_imports(file)]

            def look(imported: Sequence[str] = imported) -> Files:
                return read_contents([*_spec_paths(paths), *imported])

            before = look()
            if not is_first:
                _print_separator()
            try:
                command(options)
            except ArchError as error:
                if is_first and is_usage(error.diagnostics):
                    raise
                write_diagnostics(error.diagnostics)
            if is_first:
                print("watching for changes (press Ctrl+C to stop)", file=sys.stderr)
            sys.stdout.flush()
            is_first = False
            wait_for_change(before, look)
    except KeyboardInterrupt:  # the usual way to stop
        return 0


def _path(spec: object) -> str:
    path = split_spec(spec)[0] if isinstance(spec, str) else None
    if path is None or is_stream(path):
        raise make_error("usage", f"--watch cannot be combined with `{spec}`", help="name a file")
    return path


def _spec_paths(paths: Sequence[str]) -> list[str]:
    return [file for path in paths for file, _ in spec_files(path)]


def _print_separator() -> None:
    """Begin the output of another run: on a cleared terminal, or below a line."""
    sys.stdout.write("\x1b[2J\x1b[3J\x1b[H" if sys.stdout.isatty() else "-" * 80 + "\n")
