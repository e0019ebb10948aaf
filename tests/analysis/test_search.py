"""Searches: what formulas give is what compiling each design gives; fronts, messages, limits and interruptions."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import read_spec

import archspec
from archspec import ArchError
from archspec.testing import main

numpy = pytest.importorskip("numpy")

VARIANTS = read_spec("search_variants")

IRREGULAR = read_spec("search_irregular")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("specs")
    for name, text in (("variants", VARIANTS), ("irregular", IRREGULAR)):
        (made / f"{name}.arch").write_text(text)
    return made


def in_folder(folder: Path, spec: str) -> str:
    return str(folder / f"{spec}.arch") if spec.isalpha() else spec


# Exactness ------------------------------------------------------------------------------------------------------------


TABLE = """
import std {{ Linear }}

dim batch, seq

block Net(n = 16, d = 8)(x [batch, seq, n]) -> [batch, seq, n] {{
  table: param [d, n]
  state: unused param [n]
  {lines}
}}
model "net" = Net()
"""


def test_conditions_with_formulas_are_tried_before_designs_are_compiled(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(TABLE.format(lines="return x + embedding(min(arange(seq), d - 1), .table)"))
    where = ["params < 13", "elementwise(batch = 1, seq = 3) > 0"]
    told: list[tuple[int, int]] = []
    found = archspec.search(
        path, {"n": [2, 3], "d": [1, 2, 3, 4, 7, 8]}, where=where, progress=lambda *numbers: told.append(numbers)
    )
    assert (found.tally.compiled, found.tally.answers) == (7, 7)
    assert told == [(12, 7), (12, 7)]


# Lines ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 4])  # designs that are compiled, and designs with formulas
def test_refusals_are_counted_by_reason(tmp_path: Path, columns: int) -> None:
    path = tmp_path / "net.arch"
    text = TABLE.format(lines="return x + embedding(min(arange(seq), d - 1), .table)")
    path.write_text(text.replace("  table:", '  require n % 4 == 0\n  require n > d, "n is too small"\n  table:'))
    widths, depths = range(6, 11), range(7, 7 + columns)
    found = archspec.search(str(path), {"n": widths, "d": depths})
    expected = {f"`n % 4 == 0` ({path}:7)": 4 * columns, f"`n > d` ({path}:8)": sum(d >= 8 for d in depths)}
    assert found.tally.refusals == {reason: number for reason, number in expected.items() if number}
    assert sum(found.tally.refusals.values()) == found.tally.refused
    assert f"refused: {4 * columns} designs: `n % 4 == 0`" in str(found)


def test_a_line_is_the_design(folder: Path) -> None:
    spec = Path(in_folder(folder, "variants"))
    vary = {"Layer": ["BertLayer", "PreNormLayer"], "hidden": [8, 12], "activation": ["relu", "gelu"], "eps": [1e-5]}
    found = archspec.search(spec, vary, best=["hidden", "-params"])
    assert found.imports == ("relu",)
    for design in found.designs:
        text = f"import std {{ {', '.join(found.imports)} }}\n{spec.read_text()}\n{design.line}\n"
        name = design.line.split('"')[1]
        assert archspec.loads(text, name).params.total == design.figures["params"]


# The command ----------------------------------------------------------------------------------------------------------

ENCODER = ["--vary", "hidden=256..512:64", "--vary", "layers=2..8", "--vary", "heads=hidden//64"]
LIMITS = ["--where", "params < 30M", "--where", "flops(batch=1, seq=128) < 4G", "--best", "layers", "--best", "-params"]


def written(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["search", *arguments]) == status, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize("format", ["table", "json", "csv", "markdown"])
def test_what_the_command_prints(
    format: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    golden(f"search.{format}", written(capsys, "bert-base-uncased", *ENCODER, *LIMITS, "--format", format))


def test_the_table_fits_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = written(capsys, "bert-base-uncased", *ENCODER, *LIMITS)
    table = out.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= 60


def test_all_designs_are_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = written(capsys, "bert-base-uncased", "--vary", "layers=1..3", "--best", "layers", "--all", "--format", "csv")
    assert out.splitlines() == ["layers,params", "1,31515648", "2,38603520", "3,45691392"]
    file = tmp_path / "all.json"
    written(capsys, "bert-base-uncased", "--vary", "layers=1..3", "--format", "json", "-o", str(file))
    assert [row["params"] for row in json.loads(file.read_text())["all"]] == [31515648, 38603520, 45691392]
    assert main(["search", "bert-base-uncased", "--vary", "layers=1..3", "-o", str(file)]) == 2


def test_plots(capsys: pytest.CaptureFixture[str], tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    written(
        capsys, "bert-base-uncased", *ENCODER, *LIMITS, "--svg", f"{tmp_path}/p.svg", "--html", f"{tmp_path}/p.html"
    )
    golden("search.svg", (tmp_path / "p.svg").read_text())
    page = (tmp_path / "p.html").read_text()
    assert "<script" not in page and page.count("<title>hidden = 256, layers = 8, heads = 4") == 2
    assert not re.search(r"(?:src|href)=\"(?!data:)", page)


def test_a_plot_with_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    found = archspec.search("bert-base-uncased", {"layers": "1..3"}, best="layers")
    assert found.plot().get_xlabel() == "layers"


def test_parquet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "all.parquet"
    written(capsys, "bert-base-uncased", "--vary", "layers=1..3", "--format", "parquet", "-o", str(file))
    assert parquet.read_table(file).to_pydict() == {"layers": [1, 2, 3], "params": [31515648, 38603520, 45691392]}


def test_errors_in_a_spec_on_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"model 3\n")))
    assert main(["search", "-", "--vary", "layers=1..9"]) == 1
    assert "\n --> <stdin>:1:7\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", [VARIANTS, '{"model_type": "bert"}'])
def test_a_spec_on_standard_input(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    out = written(capsys, "-", "--vary", "layers=1..9", "--best", "layers")
    assert "Bert(" in out and "layers = 9" in out


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    archspec.search("bert-base-uncased", {"layers": "1..20"}, progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (20, 20)


def test_times_are_those_of_cost(tmp_path: Path) -> None:
    """In whole nanoseconds; a model that is memory bound, and one that is not."""
    card = tmp_path / "card.json"
    card.write_text('{"memory": 1e9, "bandwidth": 4e9, "peak": {"bfloat16": 1e11}}')
    decode, train = f'time(device="{card}", past=20)', f'time(device="{card}", batch=2, seq=9, training=true)'
    found = archspec.search(
        "gpt2", {"layers": "1..4", "hidden": "[24, 96]"}, where=[f"{decode} < 1.5ms"], best=["params", f"-{train}"]
    )
    passes: list[dict[str, Any]] = [{"past": 20}, {"batch": 2, "seq": 9, "training": True}]
    times: dict[tuple[object, object], list[archspec.Cost]] = {
        (layers, hidden): [
            archspec.cost(archspec.load("gpt2", layers=layers, hidden=hidden), dtype="bfloat16", device=card, **sizes)
            for sizes in passes
        ]
        for layers in range(1, 5)
        for hidden in (24, 96)
    }
    for design in found.designs:
        step, training = times[design.values["layers"], design.values["hidden"]]
        assert step.time is not None and training.time is not None
        assert [*design.figures.values()][1:3] == [int(1e9 * x.time.seconds) for x in (step, training) if x.time]
    satisfying = [name for name, (step, _) in times.items() if step.time and step.time.seconds < 0.0015]
    assert found.tally.answers == len(satisfying) and 0 < len(satisfying) < 8


def test_what_remains_of_a_device_is_that_of_fit(tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text('{"memory": 2.88e6}')
    free = f'fit(device="{card}", context=30, batch=4)'
    found = archspec.search("gpt2", {"layers": "1..9", "hidden": "[24]"}, where=[f"{free} >= 0"], best=["layers"])
    (design,) = found.designs
    fits = [archspec.fit(archspec.load("gpt2", layers=n, hidden=24), card, context=30, batch=4) for n in range(1, 10)]
    assert [x.fits for x in fits] == [n <= design.values["layers"] for n in range(1, 10)] and found.tally.answers < 9
    assert -fits[found.tally.answers - 1].missing in design.figures.values()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ('fit(device="h100") > 0', "`fit` expects a number of positions: `fit(context = 1024)`"),
        ('fit(device="h100", context=0) > 0', "`context` expects an integer of at least 1, found 0"),
        ("time(seq=3) < 1", '`time` expects a device: `time(device = "h100")`'),
        ('time(device="h10") < 1', "unknown device `h10`"),
        ("time(device=100) < 1", "`device` expects a name or a file in quotes, found 100"),
        ('time(device="h100", training=1) < 1', "`training` is true or false; found 1"),
        ('time(device="h100", seq=3) < 1', "`time` needs sizes of the dimensions batch"),
    ],
)
def test_times_that_are_refused(condition: str, message: str) -> None:
    with pytest.raises(ArchError) as caught:
        archspec.search("gpt2", {"layers": "1..4"}, where=[condition])
    assert caught.value.diagnostics[0].message == message


@pytest.mark.slow  # starts processes
def test_several_processes_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["gpt2", "--vary", "hidden=12..144:12", "--vary", "layers=1..4", "--format", "json"]
    arguments += ["--where", "cache_bytes(past=10) < 6K", "--best", "layers", "--best", "hidden"]
    assert written(capsys, *arguments) == written(capsys, *arguments, "--jobs", "2")


@pytest.mark.slow  # starts processes
def test_an_error_in_a_process_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bert-base-uncased", "--vary", "layers=1..40", "--where", "cache_bytes(past=10) < 6K", "--jobs", "2"]
    assert main(["search", *arguments]) == 2
    assert "the model has no decoding step" in capsys.readouterr().err


JOBS = ["gpt2", "--vary", "hidden=12..144:12", "--vary", "layers=1..4", "--best", "layers", "--jobs", "2"]


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("bound", ["past=10", "past=-1"], ids=["an answer", "an error"])
def test_no_process_outlives_a_search(bound: str) -> None:
    """Its output would not end as long as one has it open."""
    command = [sys.executable, "-m", "archspec", "search", *JOBS, "--where", f"cache_bytes({bound}) < 6K"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == (0 if bound == "past=10" else 2), found.stderr


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("seconds", [0.5, 3])
def test_no_process_outlives_an_interrupted_search(seconds: float) -> None:
    """Neither one that is starting nor one that works."""
    arguments = ["deepseek-v3", "--vary", "layers=4..61", "--vary", "experts=8..256:8", "--best", "active"]
    command = [sys.executable, "-m", "archspec", "search", *arguments, "--jobs", "2"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Ctrl+C is ignored by what was started in the background, and by its children.
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode in (130, -signal.SIGINT)  # before Python handles signals
    assert process.returncode != 130 or "Traceback" not in errors
