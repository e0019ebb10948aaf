"""The command line in this process: streams without readers, files that cannot be written, and missing packages."""

import argparse
import errno
import io
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archspec import ArchError, Diagnostic
from archspec.app import cli
from archspec.app.cli import arguments, files, options
from archspec.app.cli.run import error, fmt, lsp, view
from archspec.core.diagnostics import make_error as failing
from archspec.testing import main


class Closed(io.StringIO):
    """A stream that has a file, but no reader."""

    def __init__(self, path: Path, problem: OSError) -> None:
        super().__init__()
        self.file = open(path, "w")  # noqa: SIM115
        self.problem = problem

    def fileno(self) -> int:
        return self.file.fileno()

    def write(self, text: str) -> int:
        raise self.problem

    def is_silent(self) -> bool:
        """Whether what is written to the file is lost."""
        os.write(self.fileno(), b"text")
        return os.path.getsize(self.file.name) == 0


@pytest.mark.parametrize(
    ("problem", "status", "text"),
    [
        (BrokenPipeError(), 0, ""),
        (OSError(errno.ENOSPC, "No space left"), 2, "error[unreadable]: cannot continue: No space left\n"),
        (OSError("odd"), 2, "error[unreadable]: cannot continue: odd\n"),
    ],
)
def test_output_without_a_reader(
    problem: OSError, status: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    stream = Closed(tmp_path / "out", problem)
    monkeypatch.setattr("sys.stdout", stream)
    assert main(["error", "syntax"]) == status
    assert stream.is_silent() and capsys.readouterr().err == text


def test_diagnostics_without_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Closed(tmp_path / "err", BrokenPipeError())
    monkeypatch.setattr("sys.stderr", stream)
    assert main(["error", "nothing-of-this-kind"]) == 2
    assert stream.is_silent()
    monkeypatch.setattr("sys.stderr", None)
    cli.write_diagnostics([Diagnostic("usage", "lost")])


def test_streams_that_cannot_be_redirected_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "out", "w") as stream:
        pass
    cli._redirect_to_null(stream)
    with open(tmp_path / "out", "w") as stream, monkeypatch.context() as patch:
        patch.setattr(os, "devnull", str(tmp_path / "missing"))
        cli._redirect_to_null(stream)


def test_a_closed_output_is_the_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["error"]) == 0
    assert sys.stdout is not None and sys.stdout.name == os.devnull
    sys.stdout.close()


def test_the_width_of_help_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def width() -> int:
        formatter: Any = arguments._formatter("archspec")
        return formatter._width

    def unknown(descriptor: int = 1) -> os.terminal_size:
        raise OSError

    monkeypatch.setenv("COLUMNS", "57")
    assert width() == 55
    monkeypatch.setenv("COLUMNS", "wide")
    assert width() == 78
    monkeypatch.setenv("COLUMNS", "7")
    assert width() == 18
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", unknown)
    assert width() == 78


def test_bytes_are_written_to_the_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    given = argparse.Namespace(output="-", force=False)
    files.write_text(given, lambda: (b"\x00\xff", [Diagnostic("unused-value", "found", severity="warning")]))
    found = capfdbinary.readouterr()
    assert found.out == b"\x00\xff" and b"warning[unused-value]: found" in found.err


def test_devices_are_written_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArchError, match=f"cannot write {pipe}: No such device"):
        files.write_new_file(str(pipe), "text", True)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_new_file(str(pipe), "text\udc80", True)
    assert os.read(reader, 99) == b"text\\udc80"
    descriptor = files._open_nonblocking(str(pipe), os.O_WRONLY)
    assert os.get_blocking(descriptor)
    os.close(descriptor)
    os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_files_without_links_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: str) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "new.txt"
    files.write_new_file(str(path), "text", False)
    assert path.read_text() == "text" and os.listdir(tmp_path) == ["new.txt"]
    with pytest.raises(ArchError, match=f"`{path}` already exists"):
        files.write_new_file(str(path), "other", False)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(FileExistsError()))
    with pytest.raises(ArchError, match=f"`{path}` already exists"):
        files.write_new_file(str(path), "other", False)
    with pytest.raises(ArchError, match=r"cannot write .*none.txt: (?:lstat: )?embedded null (?:byte|character)"):
        files.write_new_file("\0none.txt", "text", True)
    with pytest.raises(ArchError, match=r"cannot write .*none.txt: No such file or directory"):
        files.write_new_file(str(tmp_path / "folder" / "none.txt"), "text", True)
    assert path.read_text() == "text"


def test_files_that_may_not_be_written_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.arch"
    path.write_text("dim  batch\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(ArchError, match=f"cannot write {path}: permission denied") as found:
        files.replace_contents(str(path), b"dim batch\n")
    assert found.value.diagnostics[0].code == "unreadable" and path.read_text() == "dim  batch\n"


def test_errors_of_files_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in "ab":
        (tmp_path / f"{name}.arch").write_text("dim  batch\n")

    def rewrite(path: str, content: bytes) -> None:
        raise failing("unreadable", f"cannot write {os.path.basename(path)}")

    monkeypatch.setattr(fmt, "replace_contents", rewrite)
    assert main(["fmt", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert found.err == "error[unreadable]: cannot write a.arch\n\nerror[unreadable]: cannot write b.arch\n"
    assert found.out == "0 files unchanged\n"


def test_the_language_server_needs_a_package(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    served: list[int] = []
    monkeypatch.setattr(lsp, "serve", lambda: served.append(1))
    assert main(["lsp"]) == 0 and served == [1]
    monkeypatch.setattr(lsp, "serve", None)
    assert main(["lsp"]) == 2
    assert "pygls is required but not installed" in capsys.readouterr().err


def test_errors_need_their_document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(error, "folder_path", lambda name: str(tmp_path / name))
    with pytest.raises(ArchError, match=r"docs/errors.md is not part of this installation"):
        error.read_entries()


def test_numbers_of_processes() -> None:
    assert [options.parse_jobs(text) for text in ("1", "1024")] == [1, 1024]
    for text in ("0", "1025", "many"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"of processes from 1 to 1024, found '{text}'"):
            options.parse_jobs(text)


def test_a_page_is_watched_until_one_stops(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def watch(spec: str, overrides: dict[str, object]) -> Any:
        assert (spec, overrides) == ("gpt2", {"layers": 3})
        yield "file:///page.html", []
        yield "file:///other.html", [Diagnostic("syntax", "broken")]
        raise KeyboardInterrupt

    monkeypatch.setattr(view, "watch", watch)
    given = SimpleNamespace(spec="gpt2", settings=["layers=3"], watch=True)
    assert view.run(given) == 0  # type: ignore[arg-type]
    found = capsys.readouterr()
    assert found.out == "file:///page.html (press Ctrl+C to stop)\n" and found.err == "error[syntax]: broken\n"
    given.spec = "-"
    with pytest.raises(ArchError, match="--watch cannot be combined with a spec on standard input"):
        view.run(given)  # type: ignore[arg-type]
