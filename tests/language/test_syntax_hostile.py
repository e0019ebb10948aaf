"""Budgets, hostile files, and any text at all: told quickly and without a traceback."""

import random
import re
import time
from pathlib import Path

import pytest

from archspec import Source
from archspec.core.diagnostics import Report
from archspec.core.resources import specs_root
from archspec.language.syntax import store, tree
from archspec.language.syntax.parse import parse

SPECS = [path.read_text(encoding="utf-8") for path in sorted(Path(specs_root()).rglob("*.arch"))]
BODY = "block A(h)(x [n, h]) -> [n, h] {\n%s\n}\n"


def parsed(text: str) -> tuple[tree.File, Report]:
    report = Report()
    return parse(Source("test.arch", text), report), report


def messages(text: str) -> list[str]:
    return [d.message for d in parsed(text)[1].diagnostics]


# Budgets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("+".join(["a"] * 99), None),
        ("+".join(["a"] * 200), "expression is nested too deeply: the limit is 100 levels"),
        ("**".join(["a"] * 200), "expression is nested too deeply: the limit is 100 levels"),
        ("-" * 200 + "a", "expression is nested too deeply: the limit is 100 levels"),
        ("not " * 200 + "a", "expression is nested too deeply: the limit is 100 levels"),
        ("a if b else " * 200 + "a", "expression is nested too deeply: the limit is 100 levels"),
        ("a" + "[0]" * 200, "expression is nested too deeply: the limit is 100 levels"),
        ("[" * 60 + "]" * 60, None),
        ("[" * 64 + "]" * 64, "brackets are nested too deeply: the limit is 64 levels"),
        ("f" + "(f" * 70 + ")" * 70, "brackets are nested too deeply: the limit is 64 levels"),
        ("9" * 18, None),
        ("9" * 19, "integer too long: the limit is 18 digits"),
        ("1e400", "number too large to represent"),
        ("1e-400", "number too small to represent"),
        ("0e-400", None),
    ],
)
def test_budgets(value: str, message: str | None) -> None:
    for text in (BODY % f"  y = {value}\n  return y", f"fn f(a = {value}) -> [n] {{ return 1 }}"):
        _, report = parsed(text)
        assert [(d.code, d.message) for d in report.diagnostics] == ([("budget", message)] if message else [])


def test_nested_statements_have_a_budget() -> None:
    deep = "if a {\n" * 100 + "}\n" * 100
    assert messages(BODY % deep) == ["brackets are nested too deeply: the limit is 64 levels"]
    assert messages(BODY % ("if a { } " + "else if a { } " * 200)) == ["too many `else if` branches: the limit is 100"]
    text = BODY % ("if a { } " + "else if a { } " * 100)
    assert messages(text) == []
    _, report = parsed(text.replace("if a", "if a { } else if a", 1))
    assert [text[d.span.start : d.span.end] for d in report.diagnostics if d.span] == ["if"]


HOSTILE = [
    *("(", "[(", "{", "(\n", "{\n", ")", ")\n", "}\n", '"', '"a\n', "'", "#", "## x\n", "\n", "\n ", "//\n", "/*\n"),
    *("import a {\n ", "(\nreturn\n", "fn f(x [n]) -> [n] {\n", "\0", "x = 1\r", "x = 1\n", "x = = 1\n", "1.", "a."),
    *(
        "x = f({\n",
        "if a {\n",
        "} else {\n",
        "x }\n",
        "a[",
        "a+",
        "not ",
        "a if ",
        "x |> f f\n",
        "\\",
        "\u00e9",
        "{x}",
        "{ x } ",
    ),
]


@pytest.mark.parametrize("size", [15_000, pytest.param(60_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_hostile_files_are_refused_quickly(piece: str, size: int) -> None:
    repeated = piece * (size // len(piece))
    start = time.process_time()
    for text in (repeated, BODY % repeated, BODY % f"  x = {repeated}a"):
        file, report = parsed(text)
        assert len(report.diagnostics) <= 20
        assert report.failed or not file.broken
        assert all(len(line) < 500 for d in report.diagnostics for line in d.render().split("\n"))
    most = 8 * size / 60_000  # seconds for all three, on a slow machine; an eighth of it as a rule
    assert time.process_time() - start < most


# Any text -------------------------------------------------------------------------------------------------------------

PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    ".",
    "..",
    "...",
    "->",
    "|>",
    "+",
    "-",
    "**",
    "/",
    "//",
    "==",
    "<",
]
PIECES += ["if", "else", "for", "in", "return", "param", "tie", "role", "layer", "fn", "model", "import", "dim", "none"]
PIECES += ["x", "1", "1.5", '"', '"a"', "#", "\n", "\n\n", "  ", "~", "?", "\u00e9"]


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        spans = [m.span() for m in re.finditer(r"\w+|\S|\n", text)] or [(0, 0)]
        (start, end), piece = chance.choice(spans), chance.choice(PIECES)
        swap = text[slice(*chance.choice(spans))]
        text = text[:start] + chance.choice(("", piece, f" {piece} {text[start:end]}", swap)) + text[end:]
    return text


def check_any(text: str) -> None:
    file, report = parsed(text)
    assert report.failed or not file.broken
    for found in report.diagnostics:
        assert "expected  " not in found.message
        assert found.span is not None
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.render()
    assert store.load(store.dump(file)) == file


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_mutated_specs(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        check_any(mutated(chance.choice(SPECS), chance))


@pytest.mark.parametrize("seed", range(4))
def test_random_words(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        check_any(" ".join(chance.choices(PIECES, k=chance.randrange(80))))


def test_random_characters() -> None:
    chance = random.Random(0)
    for limit in (0x80, 0x100, 0x110000):
        for _ in range(40):
            check_any("".join(chr(chance.randrange(limit)) for _ in range(200)))


@pytest.mark.parametrize("step", [997, pytest.param(43, marks=pytest.mark.slow)])
def test_files_cut_off_anywhere(step: int) -> None:
    text = max(SPECS, key=len)
    for end in range(0, len(text), step):
        check_any(text[:end])
        check_any(text[end:])
