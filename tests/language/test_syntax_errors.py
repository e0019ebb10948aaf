"""Errors in the syntax: one in a statement leaves the others. The messages are in `tests/golden/specs/syntax.txt`."""

from pathlib import Path

import pytest
from paths import ROOT

import archspec
from archspec import Source
from archspec.core.diagnostics import Report
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse
from archspec.pipeline.overrides import parse_override

SPECS = [path.read_text(encoding="utf-8") for path in sorted(Path(str(ROOT / "specs")).rglob("*.arch"))]


def parsed(text: str) -> tuple[tree.File, Report]:
    report = Report()
    return parse(Source("test.arch", text), report), report


@pytest.mark.sampled(80)
@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=pytest.mark.slow if i else (), id=str(i)) for i, text in enumerate(SPECS)]
)
def test_a_broken_statement_leaves_the_others(text: str) -> None:
    whole, _ = parsed(text)
    for item in whole.items:
        for statement in getattr(item, "body", ()):
            if isinstance(statement, tree.If | tree.For):
                continue
            spoilt = text[: statement.start] + "?" + text[statement.start + 1 :]
            file, report = parsed(spoilt)
            assert len(report.diagnostics) == 1
            assert [(b.start, b.end) for b in file.broken] == [(statement.start, statement.end)]
            (changed,) = (a for a, b in zip(file.items, whole.items, strict=True) if a != b)
            assert set(changed.body) == set(item.body) - {statement}


def test_values_of_overrides() -> None:
    values = {
        "6": 6,
        "-0.5": -0.5,
        "true": True,
        "none": None,
        "gelu": "gelu",
        '"a=b"': "a=b",
        "[1, [2.0]]": [1, [2.0]],
    }
    for text, value in values.items():
        assert parse_override(f"name={text}") == parse_override(f" name = {text} ") == ("name", value)
    for text in ("name", "=1", "a b=1", "a.b=1"):
        with pytest.raises(archspec.ArchError, match=r"bad-override.*expected name=value"):
            parse_override(text)
