"""Progress of commands that take longer than a second, on the terminal of standard error."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event, Thread

FIRST, EVERY = 1.0, 0.2
"""Seconds until the first line, and between two."""


class Progress:
    """A status line with the current step and the elapsed time; cleared before other output."""

    def __init__(self) -> None:
        self.what = ""
        self._running: tuple[Event, Thread] | None = None

    def begin(self, what: str) -> None:
        """Begin to measure; nothing is written unless standard error is a terminal."""
        self.end()
        self.what = what
        if not getattr(sys.stderr, "isatty", bool)() or os.environ.get("TERM") == "dumb":
            return
        import threading  # not at the top: it takes a millisecond, and most output is not for a terminal

        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(over, monotonic()))
        self._running = over, thread
        thread.start()

    def end(self) -> None:
        """Remove the line."""
        if self._running is not None:
            over, thread = self._running
            over.set()
            thread.join()
            self._running = None

    def _run(self, over: Event, start: float) -> None:
        if over.wait(FIRST):
            return
        line = ""
        while not over.is_set():
            line = f"{self.what}, {monotonic() - start:.0f} s"  # never shorter than the one before
            _write(f"\r{line}")
            over.wait(EVERY)
        _write(f"\r{' ' * len(line)}\r")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # the terminal is gone
        return


PROGRESS = Progress()
"""That of the command which is running."""
