"""Steps of the code that the tests of format cannot reach through public names."""

import random
import re
from collections.abc import Callable

import paths
import pytest
from hypothesis import given, settings
from mutations import EXAMPLES, SMALL, SPECS, mutate, noise
from test_format import in_another_layout

import archspec
from archspec import Source
from archspec.core.diagnostics import Report
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse
from archspec.language.syntax.tree import relocate

GOLDEN = paths.GOLDEN / "format"


def parsed(text: str) -> tuple[object, tuple[str, ...], list[str]]:
    """The tree of a text without locations, its comments, and the codes of its errors."""
    report = Report()
    file = parse(Source("text.arch", text), report)
    items = relocate(file.items, tree.Name(0, 0, ""))
    return items, tuple(comment.text for comment in file.comments), sorted(d.code for d in report.diagnostics)


def with_comments(text: str, chance: random.Random) -> str:
    """The text with comments in some of its spaces, inside of brackets and outside."""
    parts = re.split(r"( +|\n)", text)
    for i in range(1, len(parts), 2):
        if chance.random() < 0.05:
            parts[i] = f"{parts[i]}# comment {i}\n" if parts[i] != "\n" else f" # comment {i}\n"
    return "".join(parts)


def with_comments_in_brackets(text: str, chance: random.Random) -> str:
    """The text with comments in some of the spaces in its brackets."""
    depth = 0
    parts = re.findall(r'#[^\n]*|"[^"\n]*"| +|[^\s"#]|\n', text)
    for i, part in enumerate(parts):
        depth += (part in ("(", "[")) - (part in (")", "]"))
        if depth > 0 and part.isspace() and chance.random() < 0.1:
            parts[i] = chance.choice(" \n") + f"# comment {i}\n"
    return "".join(parts)


def holds(text: str) -> None:
    """What must hold of a text, with or without errors."""
    text = re.sub(r"\r\n?", "\n", text)
    formatted = archspec.format(text)
    assert archspec.format(formatted) == formatted
    before = parsed(text)
    if not before[2]:
        assert parsed(formatted) == before


@pytest.mark.parametrize("name", ["", "comments-"])
def test_the_layout(name: str, golden: Callable[[str, str], None]) -> None:
    text = (GOLDEN / f"{name}before.arch").read_text(encoding="utf-8")
    formatted = archspec.format(text)
    golden(f"format/{name}after.arch", formatted)
    assert archspec.format(formatted) == formatted
    assert parsed(formatted) == parsed(text)
    assert parsed(text)[2] == (["syntax"] * 2 if name else [])


def test_line_starts_that_would_end_a_list() -> None:
    names = ", ".join(f"a_rather_long_name_{i}" for i in range(4))
    text = f"fn f({names})(one [...], two [...], a_name_of_some_length [...], dim int [...], x [...]) -> [...] {{\n"
    text += "  return x\n}\n"
    formatted = archspec.format(text)
    assert "\n       dim" not in formatted
    assert parsed(formatted) == parsed(text)


def test_comments_anywhere() -> None:
    for seed in range(6):
        holds(with_comments(SPECS[("attention.arch", "norm.arch")[seed % 2]], random.Random(seed)))


def test_comments_in_brackets_keep_nothing_from_being_formatted() -> None:
    for seed in range(6):
        text = with_comments_in_brackets(SPECS[("attention.arch", "norm.arch")[seed % 2]], random.Random(seed))
        assert parsed(text)[2] == []
        formatted = archspec.format(text)
        assert archspec.format(in_another_layout(formatted, random.Random(seed))) == formatted
        assert parsed(formatted) == parsed(text)


def test_mutated_specs() -> None:
    for seed in range(15):
        holds(mutate(SMALL, random.Random(seed)))


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_many_mutated_specs(name: str) -> None:
    for seed in range(160):  # over 10,000 for all
        holds(mutate(SPECS[name], random.Random(f"format {name} {seed}")))


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_comments_in_brackets_of_all_specs(name: str) -> None:
    for seed in range(20):
        text = with_comments_in_brackets(SPECS[name], random.Random(seed))
        formatted = archspec.format(text)
        assert archspec.format(in_another_layout(formatted, random.Random(seed))) == formatted
        assert parsed(formatted) == parsed(text)


@given(noise)
@settings(EXAMPLES, max_examples=30)
def test_noise(data: str | bytes) -> None:
    holds(data.decode(errors="replace") if isinstance(data, bytes) else data)


def test_large_files() -> None:
    for text in (
        "fn f(n) {\n  return [" + "1,2," * 1_000 + "3]\n}\n",
        "fn f(n) {\n  return n" + " + n" * 1_000 + "\n}\n",
        "dim a\n" * 1_000,
        "fn f(n) {\n" + "  a = n\n" * 1_000 + "}\n",
        "fn f(x [n]) -> [n] {\n  return x\n" + "    |> a: f\n" * 1_000 + "}\n",
    ):
        holds(text)
