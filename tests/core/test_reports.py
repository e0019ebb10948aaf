"""Tables that fit the width of a terminal: cells, columns, units, colors, progress."""

import io
import os
import sys
import time
from collections.abc import Callable, Sequence

import pytest

import archspec
from archspec.app.cli import progress
from archspec.core.reports.page import render
from archspec.core.reports.results import Displayable, page_of
from archspec.core.reports.roles import ROLES
from archspec.core.reports.tables import Bar, Column, View
from archspec.core.reports.terminal import Layout, shorten, table
from archspec.core.reports.text import beside, flops, parameters, size
from archspec.core.wrapping import output_width, text_width, wrap
from archspec.testing import main


def lines(view: View, width: int | None, **layout: object) -> list[str]:
    return table(view, Layout(width, **layout)).splitlines()  # type: ignore[arg-type]


def view(*columns: Column, rows: Sequence[Sequence[object]]) -> View:
    return View(columns, [dict(zip((c.key for c in columns), row, strict=True)) for row in rows])  # type: ignore[misc]


# Cells


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("encoder.layer.0.query", 11, "encod…query"),
        ("  encoder.layer.0", 12, "  enco…yer.0"),
        ("模型模型模型", 7, "模…模型"),
    ],
)
def test_names_are_shortened_in_the_middle(text: str, width: int, expected: str) -> None:
    assert shorten(text, width) == expected and text_width(expected) <= width


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("embeddings.word_embeddings", 12, ["embeddings.", "word_", "embeddings"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("", 3, [""]),
    ],
)
def test_long_cells_are_wrapped(text: str, width: int, expected: list[str]) -> None:
    assert wrap(text, width) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (999, ""),
        (1_000, "1.00K"),
        (999_499, "999K"),
        (999_500, "1.00M"),
        (9_995_000, "10.0M"),
        (109_482_240, "109M"),
        (1_235_814_400, "1.24B"),
        (405_853_388_800, "406B"),
        (2 * 10**18, "2,000,000T"),
    ],
)
def test_units_have_three_digits(count: int, expected: str) -> None:
    assert parameters(count) == expected


def test_units_of_work_and_memory() -> None:
    assert (flops(96_635_793_408), size(437_928_960)) == ("96.6 GFLOPs", "438 MB")
    assert (flops(999_499 * 10**15), flops(10**21), size(1_000)) == ("999 EFLOPs", "1,000 EFLOPs", "1.00 kB")
    assert beside(flops("2*batch")) == beside(parameters(12)) == ""


# Columns


NAMES = view(
    Column("name", "name", fit="shorten"),
    Column("kind", "kind", drop=2),
    Column("sum", "sum"),
    Column("share", "share", drop=1),
    rows=[(f"encoder.layer.{i}.attention.output.dense.weight", "Linear", 10**9, 0.5) for i in (1, 2)],
)


def test_numbers_are_never_cut() -> None:
    for width in range(1, 80):
        assert all("1,000,000,000" in line for line in lines(NAMES, width)[1:3])


def test_the_characters_of_the_terminal_are_enough() -> None:
    bars = view(Column("name", "name", fit="shorten"), Column("bar", "", fit="bar"), rows=[("a" * 60, Bar(1, 2))])
    for line in lines(bars, 50, encoding="ascii"):
        line.encode("ascii")
    assert all(len(line) <= 50 for line in lines(bars, 50))


RESULTS: dict[str, Callable[[], Displayable]] = {
    "count": lambda: archspec.load("t5-small").count(),
    "tensors": lambda: archspec.load("bert-base-uncased").count(by="tensor"),
    "layers": lambda: archspec.load("bert-base-uncased").count(by="layer"),
    "formulas": lambda: archspec.cost("transformer-seq2seq"),
    "cost": lambda: archspec.cost("bert-base-uncased", batch=1, seq=512),
    "compare": lambda: archspec.compare("bert-base-uncased", "albert-base-v2", depth=3),
    "four": lambda: archspec.compare("bert-base-uncased", "roberta-base", "gpt2", "t5-small"),
    "diff": lambda: archspec.diff("bert-base-uncased", "albert-base-v2"),
    "explain": lambda: archspec.explain("bert-base-uncased", "110M"),
    "audit": lambda: archspec.audit("bert-base-article"),
    "formula": lambda: archspec.formula("bert-base-uncased", "hidden", "layers"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_tables_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = RESULTS[name]()
    views = [block for block in page_of(found).blocks if isinstance(block, View)]
    assert views
    for width in (60, 72, 80, 100, 140):
        shown = [line for each in views for line in lines(each, width) if not line.startswith("(not shown")]
        assert max(map(text_width, shown)) <= width
    assert "not shown" not in render(page_of(found), Layout(None))
    monkeypatch.setenv("COLUMNS", "72")
    assert str(found) == render(page_of(found), Layout(72)).rstrip("\n")
    assert "\n" not in repr(found) and len(repr(found)) < 200


@pytest.mark.parametrize("command", ["count gpt2", "list"])
def test_commands_fit_the_terminal_unless_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "(not shown at this width: " in out and max(map(len, out.split("\n\n")[0].splitlines())) <= 60
    assert main([*command.split(), "--wide"]) == 0
    assert "not shown" not in capsys.readouterr().out


# The width


def test_the_width_is_that_of_columns_or_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert output_width() == 77
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((55, 20)))
    assert output_width() == 55

    def only_for_errors(descriptor: int) -> os.terminal_size:
        if descriptor != 2:
            raise OSError
        return os.terminal_size((44, 20))

    monkeypatch.setattr(os, "get_terminal_size", only_for_errors)
    assert output_width() == 44

    def no_terminal(descriptor: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    assert output_width() == 100
    for wrong in ("0", "-3", "wide", "²"):
        monkeypatch.setenv("COLUMNS", wrong)
        assert output_width() == 100


# Colors


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_roles_have_the_colours_of_pictures(monkeypatch: pytest.MonkeyPatch, no_colour: str) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["count", "bert-base-uncased"]) == 0
    text = stream.getvalue()
    assert (f"\x1b[38;5;{ROLES['attention'].terminal}mLinear\x1b[0m" in text) == (not no_colour)
    assert ("\x1b" in text) == (not no_colour)


def test_colours_of_tables(golden: Callable[[str, str], None]) -> None:
    model = archspec.load("albert-base-v2", layers=2)
    results: list[Displayable] = [
        model.count(),
        model.count(by="tensor"),
        model.count(by="layer"),
        archspec.cost(model, batch=1, seq=8),
        archspec.compare(model, archspec.load("bert-base-uncased", layers=1)),
        archspec.formula("gpt2", "layers"),
    ]
    text = "\n\n".join(render(page_of(found), Layout(None, color=True)) for found in results)
    golden("colours.txt", text.replace("\x1b[", "<"))


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_is_legible_on_role_colours_and_letters_differ() -> None:
    assert len({style.letter for style in ROLES.values()}) == len(ROLES)
    for style in ROLES.values():
        assert contrast(style.light.line, "#ffffff") >= 3 and contrast(style.light.fill, "#1c2330") >= 4.5
        assert contrast(style.dark.line, "#12161d") >= 3 and contrast(style.dark.fill, "#e8ecf2") >= 4.5


# Progress


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_for_terminals_and_vanishes(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    line = progress.Progress()
    line.begin("archspec count")
    time.sleep(0.05)
    line.end()
    line.end()
    assert stream.getvalue() == (f"\rarchspec count, 0 s\r{' ' * 19}\r" if is_terminal else "")


def test_what_is_fast_shows_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["count", "bert-base-uncased"]) == 0
    assert stream.getvalue() == ""


# Totals


def test_the_first_words_of_a_diagnostic_have_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["count", "bert-base-uncased", "--set", "hiden=3"]) == 1
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("\x1b[1;31merror[") and lines[0].count("\x1b[0m ") == 1
    assert any(line.startswith("\x1b[1;32mhelp:\x1b[0m ") for line in lines)
