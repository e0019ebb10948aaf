"""The line on the terminal that says what a command does."""

import io
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

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
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.001)
    monkeypatch.delenv("TERM", raising=False)


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Standard error as a terminal; a fixture is too early for it."""
    with pytest.MonkeyPatch.context() as patch:
        made = Terminal()
        patch.setattr("sys.stderr", made)
        yield made


@pytest.fixture
def shown() -> Iterator[progress.Progress]:
    shown = progress.Progress()
    yield shown
    shown.end()  # a thread that a failed test leaves would write into the output of others


def running() -> int:
    """The number of threads that write a line; other tests may have left other threads."""
    return sum(thread.name == "progress" for thread in threading.enumerate())


def test_the_line_vanishes_at_the_end(shown: progress.Progress) -> None:
    shown.end()
    with terminal() as found:
        shown.begin("lifting")
        found.wait("s\rlifting")
        shown.step = "checking"
        found.wait("checking")
        assert running() == 1
        shown.begin("writing")
        found.wait("writing")
        shown.end()
        shown.end()
    assert running() == 0
    pattern = r"(\rlifting, 0 s){2,}(\rchecking, 0 s)+\r {13}\r(\rwriting, 0 s)+\r {12}\r"
    assert re.fullmatch(pattern, found.getvalue())


def test_it_is_shown_while_standard_error_is_replaced(shown: progress.Progress) -> None:
    with terminal() as found:
        shown.begin("lifting a model")
        found.wait("lifting a model, 0 s")
        with redirect_stderr(io.StringIO()) as other:
            shown.step = "checking"
            found.wait("checking, 0 s       \r")
        shown.end()
    assert "\rchecking, 0 s       \r" in found.getvalue() and other.getvalue() == ""


def test_what_is_done_at_once_is_not_shown(monkeypatch: pytest.MonkeyPatch, shown: progress.Progress) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 60.0)
    with terminal() as found:
        shown.begin("lifting")
        shown.end()
    assert found.getvalue() == ""


def test_only_terminals_that_can_return_show_it(monkeypatch: pytest.MonkeyPatch, shown: progress.Progress) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with terminal() as found:
        shown.begin("lifting")
        monkeypatch.setenv("TERM", "xterm")
        for other in (io.StringIO(), None):
            monkeypatch.setattr("sys.stderr", other)
            shown.begin("lifting")
    assert running() == 0 and found.getvalue() == ""


def test_a_terminal_that_is_gone_does_not_matter() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError("gone")

    closed = io.StringIO()
    closed.close()
    for stream in (Gone(), closed):
        progress._write(stream, "text")
