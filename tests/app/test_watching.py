"""`--watch`: what is run again, when, and with which output."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from archspec.app.cli import watching
from archspec.pipeline.watching import files_with_imports, read_contents, wait_for_change
from archspec.testing import main

SPEC = 'import "parts/more.arch" { twice }\ndim batch\nblock Net(n = 2)(x [batch, n]) -> [batch, n] {\n'
SPEC += "  return twice(x) |> a: Scale(n)\n}\nlayer Scale(n)(x [batch, n]) -> [batch, n] {\n  weight: param [n]\n"
SPEC += '  return x * .weight\n}\nmodel "net" = Net()\n'
MORE = "fn twice(x [...]) -> [...] {\n  return x * 2.0\n}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "more.arch").write_text(MORE)
    path = tmp_path / "net.arch"
    path.write_text(SPEC)
    return path


@pytest.fixture
def after_each_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the given functions, one after each run, change files instead of a user; then the watch is interrupted."""

    def use(*edits: Callable[[], object]) -> None:
        pending = [*edits]

        def wait(before: object, look: Callable[[], object]) -> object:
            if not pending:
                raise KeyboardInterrupt
            pending.pop(0)()
            assert look() != before
            return look()

        monkeypatch.setattr(watching, "wait_for_change", wait)

    return use


def test_a_count_is_renewed(
    spec: Path, after_each_run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    more = spec.parent / "parts" / "more.arch"
    after_each_run(
        lambda: spec.write_text(SPEC.replace("n = 2", "n = 3")),
        lambda: more.write_text("oh"),
        lambda: more.unlink(),
        lambda: more.write_text(MORE),
    )
    assert main(["count", str(spec), "--watch", "--depth", "0"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines() if line[:1].isdigit()] == ["2", "3", "3"]
    assert [len(line) for line in out.splitlines() if line.startswith("-")] == [80] * 4
    assert err.count("watching for changes") == 1
    assert "error[syntax]" in err
    assert "error[missing-file]" in err


def test_a_directory_is_checked_again(
    spec: Path, after_each_run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    after_each_run(lambda: (spec.parent / "new.arch").write_text("dim a\n"), spec.unlink)
    assert main(["check", str(spec.parent), "--watch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "file" in line] == [
        *("2 files, no errors or warnings", "3 files, 1 warning", "2 files, 1 warning")
    ]


def test_a_graph_is_written_again(
    spec: Path, after_each_run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    target = spec.parent / "net.dot"
    seen: list[str] = []
    after_each_run(lambda: seen.append(target.read_text()) or spec.write_text(SPEC.replace("a: Scale", "b: Scale")))
    assert main(["graph", str(spec), "-o", str(target), "--watch"]) == 0
    assert len(seen) == 1
    assert target.read_text() != seen[0]
    assert main(["graph", str(spec), "-o", str(target), "--watch"]) == 2  # the first run does not overwrite
    assert "already exists" in capsys.readouterr().err


def test_imports_are_watched_also_with_errors(spec: Path) -> None:
    more = str(spec.parent / "parts" / "more.arch")
    assert files_with_imports(str(spec)) == [str(spec), more]
    spec.write_text(f'{SPEC}\n import "gone.arch" {{ x }}\nblock (')
    assert files_with_imports(str(spec)) == [str(spec), str(spec.parent / "gone.arch"), more]
    Path(more).write_text('import "../net.arch" { Net }\n')  # a circle
    assert len(files_with_imports(str(spec))) == 3
    assert files_with_imports(str(spec.parent / "none.arch")) == [str(spec.parent / "none.arch")]


def test_a_change_is_seen_when_it_is_complete(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter([lambda: None, lambda: spec.write_text("a"), lambda: spec.write_text("ab"), lambda: None])
    monkeypatch.setattr("archspec.pipeline.watching.sleep", lambda _: next(steps)())
    before = read_contents([str(spec)])
    assert wait_for_change(before, lambda: read_contents([str(spec)])) == {str(spec): b"ab"}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.slow
def test_the_process(spec: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "archspec", "count", str(spec), "--watch", "--format", "json"]
    # Ctrl+C is ignored by what was started in the background, and by its children.
    options: Any = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "env": environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            assert process.stderr and process.stdout
            assert process.stderr.readline() == "watching for changes (press Ctrl+C to stop)\n"
            spec.write_text(SPEC.replace("n = 2", "n = 3"))
            lines = iter(process.stdout.readline, "")
            assert any('"total": 3' in line for line in lines)
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()  # or the test would wait for it


def test_a_file_that_becomes_too_large_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.pipeline.watching.MAX_FILE_BYTES", 4)
    path = tmp_path / "net.arch"
    path.write_text("1234")
    before = read_contents([str(path)])
    path.write_text("12345")
    assert read_contents([str(path)]) != before
