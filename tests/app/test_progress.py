"""The line on the terminal that says what a command does."""

import io
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from archspec.app.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def wait(self, text: str) -> None:
        end = time.monotonic() + 5
        while text not in self.getvalue() and time.monotonic() < end:
            time.sleep(0.001)


@pytest.fixture(autouse=True)
def shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.delenv("TERM", raising=False)


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Standard error as a terminal; a fixture is too early for it."""
    with pytest.MonkeyPatch.context() as patch:
        made = Terminal()
        patch.setattr("sys.stderr", made)
        yield made


def test_the_line_vanishes_at_the_end() -> None:
    threads = threading.active_count()
    shown = progress.Progress()
    shown.end()
    with terminal() as found:
        shown.begin("lifting")
        found.wait("s\rlifting")
        shown.what = "checking"
        found.wait("checking")
        assert threading.active_count() == threads + 1
        shown.begin("writing")
        found.wait("writing")
        shown.end()
        shown.end()
    assert threading.active_count() == threads
    pattern = r"(\rlifting, 0 s){2,}(\rchecking, 0 s)+\r {13}\r(\rwriting, 0 s)+\r {12}\r"
    assert re.fullmatch(pattern, found.getvalue())


def test_what_is_done_at_once_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST", 60.0)
    shown = progress.Progress()
    with terminal() as found:
        shown.begin("lifting")
        shown.end()
    assert found.getvalue() == ""


def test_only_terminals_that_can_return_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = threading.active_count()
    monkeypatch.setenv("TERM", "dumb")
    shown = progress.Progress()
    with terminal() as found:
        shown.begin("lifting")
        monkeypatch.setenv("TERM", "xterm")
        for other in (io.StringIO(), None):
            monkeypatch.setattr("sys.stderr", other)
            shown.begin("lifting")
    assert threading.active_count() == threads and found.getvalue() == ""


def test_a_terminal_that_is_gone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    closed = io.StringIO()
    closed.close()
    for stream in (Gone(), closed):
        monkeypatch.setattr("sys.stderr", stream)
        progress._write("text")
