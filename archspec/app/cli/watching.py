"""`--watch`: repeated runs of a command. Imported only with this option, because it needs the pipeline."""

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
    """Run a command, and again after each change of the files of its specs, until interrupted.

    Raises ArchError if the specs are not files, or if the options are invalid in the first run.
    """
    paths = [_spec_path(spec) for spec in (options.paths if "paths" in options else [options.spec])]
    is_first = True
    try:
        while True:
            imported = [path for file in _spec_paths(paths) for path in files_with_imports(file)]

            def read(imported: Sequence[str] = imported) -> Files:
                return read_contents([*_spec_paths(paths), *imported])

            before = read()
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
            wait_for_change(before, read)
    except KeyboardInterrupt:  # users stop `--watch` with Ctrl+C
        return 0


def _spec_path(spec: object) -> str:
    path = split_spec(spec)[0] if isinstance(spec, str) else None
    if path is None or is_stream(path):
        raise make_error("usage", f"--watch cannot be combined with `{spec}`", help="name a file")
    return path


def _spec_paths(paths: Sequence[str]) -> list[str]:
    return [file for path in paths for file, _ in spec_files(path)]


def _print_separator() -> None:
    """Separate the output of two runs: clear a terminal, or write a line."""
    sys.stdout.write("\x1b[2J\x1b[3J\x1b[H" if sys.stdout.isatty() else "-" * 80 + "\n")
