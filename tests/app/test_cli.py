"""The command line: what it accepts, where it writes, how it ends."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import ROOT

import archspec
from archspec import testing
from archspec.testing import main

GOOD = """
import std { Linear }
block Tiny(width = 2)(x [..., width]) -> [..., width] {
  return x |> dense: Linear(width, width)
}
model "tiny" = Tiny() { expect params == 6 }
"""
UNTIDY = GOOD.replace("import std { Linear }", "import std { Linear, LayerNorm, Embedding }")
BAD = UNTIDY + 'model "first" = Nowhere()\nmodel "second" = Nothing()\n'


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.arch"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.arch"
    path.write_text(BAD)
    return str(path)


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}  # type: ignore[dict-item]
    command = [sys.executable, "-m", "archspec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options)  # type: ignore[call-overload]


# Usage


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"archspec-dsl {archspec.__version__} from {ROOT / 'archspec'}\n"


def test_alone_it_is_a_short_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 15 and "archspec --help" in out
    for example in re.findall(r"^  archspec ([\w -]+?)   ", out, re.MULTILINE):
        if "-o" not in example:
            assert main(example.split()) == 0


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert {"list", "show", "check", "count", "graph", "error"} <= set(listed)
    for command in listed:
        assert main([command, "--help"]) == 0


SMALL = "--set layers=2 --set hidden=24"
DOCUMENTS = {
    name: tuple(shlex.split(line))
    for name, line in {
        "list": "list",
        "count": f"count bert-base-uncased-mlm {SMALL}",
        "count-tensors": f"count bert-base-uncased-mlm {SMALL} --by tensor --select 'cls.*'",
        "cost": f"cost albert-base-v2 {SMALL} --batch 1 --seq 8",
        "compare": f"compare bert-base-uncased albert-base-v2 --depth 2 {SMALL} --batch 1 --seq 8",
        "diff": f"diff bert-base-uncased roberta-base {SMALL}",
        "diff-operations": "diff t5-small t5-v1_1-base --set layers=2",
        "explain": "explain bert-base-uncased 110M",
        "explain-flops": "explain bert-base-uncased 22.5G --flops --seq 128",
        "audit": "audit bert-by-hand",
        "formula": "formula transformer-seq2seq --open hidden,layers",
        "count-layers": f"count bert-base-uncased-mlm {SMALL} --by layer",
        "count-blocks": f"count bert-base-uncased-mlm {SMALL} --by block",
        "count-roles": f"count bert-base-uncased-mlm {SMALL} --by role",
        "cost-two-dims": "cost t5-small --set layers=2 --batch 2 --seq 8 --dim target=4 --dtype bfloat16",
        "cost-decoding": "cost gpt2 --set layers=2 --batch 2 --past 99",
        "search": "search bert-base-uncased --vary layers=1..3 --vary 'heads=[2, 4]' --best params --best layers",
    }.items()
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    assert main([*DOCUMENTS[name], "--format", "json"]) in (0, 1)
    golden(f"documents/{name}.json", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["count", "count-blocks", "compare", "diff", "explain", "explain-flops"])
def test_tables_for_other_programs(
    name: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    assert main([*DOCUMENTS[name], "--format", "csv"]) in (0, 1)
    golden(f"documents/{name}.csv", capsys.readouterr().out)


# list, show, check, error


def test_list_has_every_bundled_model_with_its_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--format", "json"]) == 0
    rows = {row["model"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert sorted(rows) == sorted(archspec.models())
    assert rows["bert-base-uncased"]["total"] == 109_482_240
    assert (rows["transformer-seq2seq"]["trainable"], rows["transformer-seq2seq"]["frozen"]) == (10_118_656, 33_792)
    for format in ("table", "yaml", "csv", "markdown"):
        assert main(["list", "--format", format, *(["--wide"] if format == "table" else [])]) == 0
        out = capsys.readouterr().out
        assert all(name in out for name in rows)


def test_check_of_clean_files(capsys: pytest.CaptureFixture[str], good: str) -> None:
    assert main(["check", good]) == 0
    assert capsys.readouterr() == ("1 file, no errors or warnings\n", "")
    assert main(["check", good, good]) == 0
    assert capsys.readouterr() == ("2 files, no errors or warnings\n", "")


def test_check_reports_every_finding_of_every_file(capsys: pytest.CaptureFixture[str], good: str, bad: str) -> None:
    assert main(["check", good, bad]) == 1
    out, err = capsys.readouterr()
    assert out == "2 files, 2 errors, 2 warnings\n"
    assert err.count("error[unknown-name]") == 2 and "Nowhere" in err and "Nothing" in err
    assert err.index("warning[") > err.rindex("error[")
    assert err.count("warning[unused-import]") == 1 and "unused imports `LayerNorm` and `Embedding`" in err


def test_what_is_only_unused_stops_a_strict_check_and_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "untidy.arch"
    path.write_text(UNTIDY)
    for command, status in ((["count"], 0), (["graph"], 0), (["check"], 0), (["check", "--strict"], 1)):
        assert main([*command, str(path)]) == status
        out, err = capsys.readouterr()
        assert out and err.count("warning[unused-import]: unused imports `") == 1 and "error[" not in err


def test_a_missing_file_among_others_ends_with_2(capsys: pytest.CaptureFixture[str], good: str, bad: str) -> None:
    assert main(["check", bad, "missing.arch", good]) == 2
    assert capsys.readouterr().err.count("error[") == 3


def test_findings_end_a_count_with_1_and_no_total(capsys: pytest.CaptureFixture[str], bad: str) -> None:
    bad += ":first"
    for command in (["count", bad], ["count", bad, "--format", "json"], ["graph", bad]):
        assert main(command) == 1
        out, err = capsys.readouterr()
        assert out == "" and "error[" in err


def test_warnings_of_one_kind_are_one_block(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "many.arch").write_text(
        "import std { Linear, relu, gelu,\n             silu }\n\ndim batch, seq, keys\n\n"
        "block Net(n = 8, m = 4)(x [batch, n]) -> [batch, n] {\n  return x |> up: Linear(n, o)\n}\n"
    )
    with contextlib.chdir(tmp_path):
        assert main(["check", "many.arch"]) == 1
    assert capsys.readouterr().err.split("\n\n")[1:] == [
        "warning[unused-import]: unused imports `relu`, `gelu` and `silu`\n --> many.arch:1:22\n  |\n"
        "1 | import std { Linear, relu, gelu,\n  |                      ^^^^  ^^^^\n --> many.arch:2:14\n  |\n"
        "2 |              silu }\n  |              ^^^^\nhelp: remove them",
        "warning[unused-dimension]: unused dimensions `seq` and `keys`\n --> many.arch:4:12\n  |\n"
        "4 | dim batch, seq, keys\n  |            ^^^  ^^^^\nhelp: remove them",
        "warning[unused-hyperparameter]: unused hyperparameter `m`\n --> many.arch:6:18\n  |\n"
        "6 | block Net(n = 8, m = 4)(x [batch, n]) -> [batch, n] {\n  |                  ^^^^^\n"
        "help: use it or remove it\n",
    ]
    status, _, errors = testing.run("count", "gpt2", "--select", "a*", "--exclude", "b*", "--depth", "0")
    assert status == 0
    assert "`--select a*` matches no tensor\nnote: `--exclude b*` matches no tensor\nhelp: " in errors


# Formats


def test_hostile_names_stay_in_their_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "hostile.arch"
    name = 'a,b|c`d"<b>\x1b[31m'
    path.write_text(
        f"layer Odd()(x [...]) -> [...] {{\n  w: param [1]\n  return x * .w\n}}\nmodel {json.dumps(name)} = Odd()\n"
    )
    status = main(["count", str(path)])
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    if status == 0:
        assert main(["count", str(path), "--format", "yaml"]) == 0
        assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_any_encoding_of_the_terminal_will_do(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "größe.arch"
    path.write_text(GOOD.replace('"tiny"', '"größe"'), encoding="utf-8")
    for arguments in (["count"], ["check"], ["graph"], ["count", "--format", "markdown"]):
        done = process(*arguments, str(path), env={"PYTHONIOENCODING": encoding}, errors="replace")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""


def test_no_colours_in_a_pipe_or_against_the_users_wish() -> None:
    for env in ({}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}):
        assert "\x1b" not in process("count", "bert-base-uncased", env=env).stdout
        assert "\x1b" not in process("count", "no-such-model", env=env).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("no_colour", "expected"), [("", True), ("1", False)])
def test_colours_on_a_terminal(no_colour: str, expected: bool) -> None:
    assert ("\x1b[" in on_a_terminal("count", "bert-base-uncased", no_colour=no_colour)) is expected
    assert ("\x1b[" in on_a_terminal("count", "no-such-model", no_colour=no_colour)) is expected


def on_a_terminal(*arguments: str, no_colour: str) -> str:
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": no_colour, "TERM": "xterm"}
    command = [sys.executable, "-m", "archspec", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            text += part
        child.wait(timeout=60)
    os.close(ours)
    return text.decode()


# Streams


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("reader", ["head -n 1", "true", "head -c 5000"])
def test_a_closed_pipe_is_no_error(reader: str) -> None:
    for command in ("count bert-base-uncased --format json", "list", "show bert-base-uncased", "--help"):
        script = f"set -o pipefail; {sys.executable} -m archspec {command} | {reader}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(("command", "status"), [("count bert-base-uncased", 0), ("count no-such-model", 2)])
def test_closed_streams_leave_the_status_as_it_is(command: str, status: int) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        script = f"{sys.executable} -m archspec {command} {closed}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode == status
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told() -> None:
    script = f"{sys.executable} -m archspec count bert-base-uncased >/dev/full"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error[") and "Traceback" not in done.stderr


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("archspec.app.cli.run.count.load_table", interrupt)
    assert main(["count", "bert-base-uncased"]) == 130


def test_a_spec_on_standard_input() -> None:
    done = process("count", "-", "--format", "json", input=GOOD)
    assert json.loads(done.stdout)["params"]["total"] == 6


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"model", b"\x00" * 100, b"{" * 5000], ids=repr)
def test_no_file_yields_a_traceback(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.arch"
    path.write_bytes(content)
    done = process("count", str(path))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for command in ("check", "graph"):
        status = main([command, str(path)])
        assert status in (0, 1) and "Traceback" not in capsys.readouterr().err
        assert command == "check" or status == 1


# Pictures into files


def test_graph_writes_a_file_and_never_over_another(
    capsys: pytest.CaptureFixture[str], good: str, tmp_path: Path
) -> None:
    target = tmp_path / "out.dot"
    assert main(["graph", good, "-o", str(target)]) == 0
    written = target.read_text()
    assert written.startswith("digraph")
    assert main(["graph", good, "--to", "mermaid", "-o", str(target)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert target.read_text() == written
    assert main(["graph", good, "--to", "mermaid", "-o", str(target), "--force"]) == 0
    assert "flowchart" in target.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.arch", "out.dot"]


def test_a_picture_that_cannot_be_written_is_told(
    capsys: pytest.CaptureFixture[str], good: str, bad: str, tmp_path: Path
) -> None:
    assert main(["graph", good, "-o", str(tmp_path / "no" / "such" / "folder.dot")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert main(["graph", good, "-o", str(tmp_path), "--force"]) == 2
    target = tmp_path / "never.dot"
    assert main(["graph", f"{bad}:first", "-o", str(target)]) == 1
    assert not target.exists()


def test_a_new_file_has_the_usual_permissions(good: str, tmp_path: Path) -> None:
    target, other = tmp_path / "out.dot", tmp_path / "other"
    other.touch()
    assert main(["graph", good, "-o", str(target)]) == 0
    assert target.stat().st_mode == other.stat().st_mode


def test_onnx_is_written_to_a_file_only(capsys: pytest.CaptureFixture[str], good: str, tmp_path: Path) -> None:
    command = ["build", good, "--to", "onnx"]
    assert main(command) == main([*command, "-o", "-"]) == 2
    assert capsys.readouterr().err.count("name it with `-o FILE.onnx`") == 2
    assert main([*command, "-o", good]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*command, "-o", str(tmp_path), "--force"]) == main([*command, "-o", os.devnull, "--force"]) == 2
    assert capsys.readouterr().err.count("is not a file") == 2


@pytest.mark.parametrize("command", ["count", "check", "graph", "cost", "build"])
def test_standard_input_may_be_closed(command: str) -> None:
    program = "import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'archspec', *sys.argv[1:]])"
    done = subprocess.run([sys.executable, "-c", program, command, "-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "error[unreadable]: cannot read <stdin>: it is closed" in done.stderr


@pytest.mark.parametrize("missing", ["pygls", "archspec.app.lsp.server"])
def test_a_language_server_without_its_library(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("archspec.app.cli.run.lsp", "archspec.app.lsp.server"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "pygls":
        assert main(["lsp"]) == 2
        assert "pygls is required but not installed" in capsys.readouterr().err
    else:
        with pytest.raises(ModuleNotFoundError, match=missing):
            main(["lsp"])
