"""Writing a file whole or not at all, and never over another by accident."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from archspec.cli import write_findings
from archspec.source import Diagnostic, fail

if TYPE_CHECKING:
    from argparse import Namespace


def write_text(options: Namespace, make: Callable[[], tuple[str, Sequence[Diagnostic]]]) -> None:
    """Writes the text that `make` gives to the file of `-o`, or to standard output, and then its findings.

    A file in the way is refused before anything is made. Raises ArchError as `save` does.
    """
    to_file = options.output and options.output != "-"
    if to_file:
        refuse_existing(options.output, options.force)
    text, findings = make()
    if to_file:
        save(options.output, text, options.force)
    else:
        sys.stdout.write(text)
    write_findings(findings)


def refuse_existing(path: str, force: bool) -> None:
    """Raises ArchError if the file exists and is not to be replaced."""
    if os.path.lexists(path) and not force:
        raise fail("usage", f"`{path}` exists already", help="add --force to replace it")


def save(path: str, text: str, force: bool) -> None:
    """Writes the text as UTF-8. Raises ArchError if the file exists and `force` is not set, or cannot be written."""
    try:
        if force and os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8", opener=_without_waiting) as device:
                device.write(text)
        else:
            _replace(os.path.realpath(path), text, force)
    except FileExistsError:
        refuse_existing(path, False)
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise fail("usage", f"`{path}` cannot be written: {reason}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Opens a device, or a pipe that somebody reads; a pipe without a reader is an error."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def _replace(path: str, text: str, force: bool) -> None:
    part = f"{path}.{os.getpid()}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        if force:
            os.replace(part, path)
        else:
            _link(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _link(part: str, path: str) -> None:
    """Gives the file its name, unless the name was taken meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        refuse_existing(path, False)
        os.replace(part, path)
