"""`--svg` and `--html` of `archspec compare` and `archspec diff`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from archspec.app.cli.files import refuse_existing, write_new_file
from archspec.core.diagnostics import make_error
from archspec.core.reports.results import Displayable, page_of


def wants_picture(options: Namespace) -> bool:
    """Whether the options name a file for a picture. Raises ArchError if it exists, or for options that need one."""
    files = [path for path in (options.svg, options.html) if path is not None]
    for path in files:
        refuse_existing(path, options.force)
    if options.dark and options.svg is None:
        raise make_error("usage", "--dark requires --svg", help="use `--svg FILE`; a page follows the reader's theme")
    if len(files) == 2 and files[0] == files[1]:
        raise make_error("usage", "--svg and --html name the same file", help="use two files")
    return bool(files)


def save_pictures(options: Namespace, found: Displayable, draw: Callable[[str], str]) -> None:
    """Write the files that the options name; `draw` returns the picture in a theme."""
    if options.svg is not None:
        write_new_file(options.svg, draw("dark" if options.dark else "light"), options.force)
    if options.html is not None:
        from archspec.core.reports.webpage import webpage  # which tables do not need

        write_new_file(options.html, webpage(page_of(found, "html"), draw("light"), draw("dark")), options.force)
