"""Files that can be read only once: pipes, process substitutions, standard input."""

from __future__ import annotations

import os
import stat
import sys

from archspec.core.diagnostics import MAX_FILE_BYTES, Report, decode, make_error, unreadable_error
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES

WRITER_TIMEOUT = 5.0
"""Seconds to wait for a process that writes to a named pipe."""

_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")


def is_stream(path: str) -> bool:
    """Whether a path names a stream; a file whose name ends in `.arch` has to be a regular one."""
    if path in ("-", "/dev/stdin") or path.startswith(_DESCRIPTORS):
        return True
    try:
        return not path.endswith(".arch") and stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def read_stream(path: str, max_bytes: int) -> bytes:
    """Read a stream, at most `max_bytes` of it. Raises ArchError if it cannot be read."""
    label = stream_label(path)
    try:
        if path in ("-", "/dev/stdin"):
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                help = "pipe a spec or a configuration into it, or name a file"
                raise make_error("unreadable", f"cannot read {label}: it is closed", help=help)
            return sys.stdin.buffer.read(max_bytes)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb", buffering=0):
            first = _read_first_byte(descriptor, label)
            os.set_blocking(descriptor, True)
            return first + _read(descriptor, max_bytes - len(first))
    except (OSError, ValueError) as error:
        raise unreadable_error(label, error) from None


def stream_text(path: str, report: Report) -> tuple[str, bool]:
    """Return the text in a stream, and whether it is a configuration, which begins with a brace, or a spec.

    Raises ArchError.
    """
    data = read_stream(path, MAX_CONFIGURATION_BYTES + 1)
    is_configuration = data.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{")
    max_bytes = MAX_CONFIGURATION_BYTES if is_configuration else MAX_FILE_BYTES
    text = decode(data, stream_label(path), report, max_bytes=max_bytes)
    report.check()
    assert text is not None
    return text, is_configuration


def stream_label(path: str) -> str:
    """Return what diagnostics call a stream."""
    return "<stdin>" if path in ("-", "/dev/stdin") else path


def _read_first_byte(descriptor: int, label: str) -> bytes:
    """Wait until a named pipe has a writer; return the byte that was read to find out. Raises ArchError without one."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return b""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if poll.poll(WRITER_TIMEOUT * 1000):
        return b""
    try:
        first = os.read(descriptor, 1)
    except BlockingIOError:  # there is a writer, which has not written yet
        return b""
    if not first:
        raise make_error(
            "unreadable", f"cannot read {label}: no process writes to this pipe", help="start its writer first"
        )
    return first


def _read(descriptor: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    while max_bytes > 0 and (part := os.read(descriptor, min(max_bytes, 2**16))):
        parts.append(part)
        max_bytes -= len(part)
    return b"".join(parts)
