"""Progress line of slow commands, on a terminal at standard error. Apart from `output.py`, so that `--help` is fast."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event, Thread
    from typing import TextIO

FIRST_SECONDS, INTERVAL_SECONDS = 1.0, 0.2
"""Seconds until the progress line appears, and between its updates."""


class Progress:
    """A status line with the current step and the elapsed time, which is removed before other output."""

    def __init__(self) -> None:
        self.step = ""
        self._running: tuple[Event, Thread] | None = None

    def begin(self, step: str) -> None:
        """Start the clock; write nothing unless standard error is a terminal."""
        self.end()
        self.step = step
        if not getattr(sys.stderr, "isatty", bool)() or os.environ.get("TERM") == "dumb":
            return
        import threading  # imported late: it takes a millisecond, and most output does not go to a terminal

        stop = threading.Event()
        # the stream of now: while it is written to, PyTorch's own messages may be kept away from `sys.stderr`
        thread = threading.Thread(target=self._run, args=(sys.stderr, stop, monotonic()), name="progress")
        self._running = stop, thread
        thread.start()

    def end(self) -> None:
        """Remove the line."""
        if self._running is not None:
            stop, thread = self._running
            stop.set()
            thread.join()
            self._running = None

    def _run(self, stream: TextIO, stop: Event, start: float) -> None:
        if stop.wait(FIRST_SECONDS):
            return
        line = ""
        while not stop.is_set():
            line = f"{self.step}, {monotonic() - start:.0f} s".ljust(len(line))  # over all of the line before
            _write(stream, f"\r{line}")
            stop.wait(INTERVAL_SECONDS)
        _write(stream, f"\r{' ' * len(line)}\r")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # the terminal was closed
        return


PROGRESS = Progress()
"""The progress line of the running command."""
