"""Spec files of a command, and atomic writing of output files, which overwrites a file only with --force."""

from __future__ import annotations

import errno
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence

from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import write
from archspec.core.diagnostics import ArchError, Diagnostic, make_error, suggest
from archspec.core.reports.results import Displayable, page_of


def spec_files(path: str) -> Iterator[tuple[str, str | None]]:
    """Yield a file, or all spec files below a directory, each with the directory from which it may import.

    Hidden directories and Python environments are skipped.
    """
    specs: list[str] = []
    if os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            if "pyvenv.cfg" in files:
                folders.clear()
            else:
                specs += [os.path.join(folder, file) for file in files if file.endswith(".arch")]
                folders[:] = [name for name in folders if not name.startswith(".")]
    root = os.path.realpath(path)
    yield from ((file, root) for file in sorted(specs))
    if not specs:
        yield path, None


def write_text(options: Namespace, make: Callable[[], tuple[str | bytes, Sequence[Diagnostic]]]) -> None:
    """Write the text or bytes of `make` to the file of `-o` or to standard output, and then its diagnostics.

    An existing file is refused before `make` is called. Raises ArchError as `write_new_file` does.
    """
    to_file = options.output and options.output != "-"
    if to_file:
        refuse_existing(options.output, options.force)
    text, diagnostics = make()
    if to_file:
        write_new_file(options.output, text, options.force)
    elif isinstance(text, str):
        write(text)
    else:
        sys.stdout.buffer.write(text)
    write_diagnostics(diagnostics)


def extension_error(path: str, extension: str, supported: Sequence[str], help: str) -> ArchError:
    """Return the error for a file whose extension no format has."""
    problem = f"unknown extension `.{extension}`" if extension else f"`{path}` has no extension"
    return make_error("usage", problem, help=suggest(extension, [*supported]) or help)


def refuse_existing(path: str, force: bool) -> None:
    """Raise ArchError if the file exists and `force` is not set."""
    if os.path.lexists(path) and not force:
        raise make_error("usage", f"`{path}` already exists", help="use --force to overwrite it")


def write_new_file(path: str, text: str | bytes, force: bool) -> None:
    """Write bytes, or text as UTF-8, to a file.

    Raises ArchError if the file exists and `force` is not set, or if it cannot be written.
    """
    content = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    try:
        if force and os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb", opener=_open_nonblocking) as device:
                device.write(content)
        else:
            _replace(os.path.realpath(path), content, force)
    except FileExistsError:
        refuse_existing(path, False)
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise make_error("usage", f"cannot write {path}: {reason}") from None


def replace_contents(path: str, content: bytes) -> None:
    """Replace the contents of a file or of the target of a link, and keep its permissions.

    Raises ArchError if the file cannot be written.
    """
    target = os.path.realpath(path)
    try:
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _replace(target, content, True, stat.S_IMODE(os.stat(target).st_mode))
    except OSError as error:
        raise make_error("unreadable", f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a device or a pipe. Opening a pipe without a reader fails instead of waiting."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def _replace(path: str, content: bytes, force: bool, mode: int | None = None) -> None:
    part = f"{path}.{os.getpid()}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        if mode is not None:
            os.chmod(part, mode)
        if force:
            os.replace(part, path)
        else:
            _move_into_place(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _move_into_place(part: str, path: str) -> None:
    """Move a complete file to its final name; fail if a file with that name was created in the meantime."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except (AttributeError, OSError):  # a platform or a file system without links
        refuse_existing(path, False)
        os.replace(part, path)


# Pictures: the options --svg and --html.


def wants_picture(options: Namespace) -> bool:
    """Return whether the options name a file for a picture.

    Raises ArchError if the file exists, or if another option requires it.
    """
    files = [path for path in (options.svg, options.html) if path is not None]
    for path in files:
        refuse_existing(path, options.force)
    if options.dark and options.svg is None:
        raise make_error("usage", "--dark requires --svg", help="use `--svg FILE`; a page follows the reader's theme")
    if len(files) == 2 and files[0] == files[1]:
        raise make_error("usage", "--svg and --html name the same file", help="use two files")
    return bool(files)


def save_pictures(options: Namespace, result: Displayable, draw: Callable[[str], str]) -> None:
    """Write the picture, and the page with the tables of a result; `draw` returns the picture in a theme."""
    if options.svg is not None:
        write_new_file(options.svg, draw("dark" if options.dark else "light"), options.force)
    if options.html is not None:
        from archspec.core.reports.webpage import webpage  # imported late: text output does not need it

        write_new_file(options.html, webpage(page_of(result, "html"), draw("light"), draw("dark")), options.force)
