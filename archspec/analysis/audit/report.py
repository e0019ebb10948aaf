"""The report of `archspec audit`: its table and verdicts, and the JSON document."""

from __future__ import annotations

from fractions import Fraction

from archspec.analysis.audit.api import Audit
from archspec.analysis.audit.judge import VERDICTS, JudgedLine, exact, shown
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import number


def contents(found: Audit) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "title": found.title,
        "where": found.where,
        "note": found.note,
        "clean": found.clean,
        "verdicts": {verdict: sum(judged.verdict == verdict for judged in found.lines) for verdict in VERDICTS},
        "lines": [{**_entry(judged), "why": list(judged.why)} for judged in found.lines],
    }


def _entry(judged: JudgedLine) -> Row:
    """Return a line for machines, without its reasons."""
    line = judged.line
    return {
        "line": line.name,
        "says": line.says,
        "where": line.where,
        "spec": line.spec,
        "claimed": _claimed(judged),
        "arithmetic": line.arithmetic.text if line.arithmetic is not None else None,
        "value": _plain(judged.value),
        "own": _plain(judged.own),
        "model": _plain(judged.counted),
        "verdict": judged.verdict,
        "off": _plain(judged.off),
    }


def rows(found: Audit) -> View:
    """Return the rows of the csv output: the lines of the document."""
    lines = [_entry(judged) | {"why": "; ".join(judged.why)} for judged in found.lines]
    return View(columns(*lines[0]), lines)


def page(found: Audit, format: str = "table") -> Page:
    """Return the report: the lines with their verdicts."""
    heading = f"{found.title}, {found.where}" if found.where else found.title
    view = View(_COLUMNS, [_row(judged) for judged in found.lines])
    counts = [(sum(j.verdict == verdict for j in found.lines), words) for verdict, words in VERDICTS.items()]
    verdicts = f"{number(len(found.lines), 'line')}: {', '.join(f'{n} {words}' for n, words in counts if n)}"
    blocks: list[Block] = [found.note, view, verdicts]
    return Page(heading, blocks)


_COLUMNS = (
    Column("line", "line", fit="wrap"),
    Column("claimed", "claimed", fit="wrap"),
    Column("model", "the model has"),
    Column("off", "off by", drop=1),
    Column("verdict", "verdict", fit="wrap"),
    Column("why", "why", fit="wrap"),
)


def _row(judged: JudgedLine) -> Row:
    reference = judged.line.claimed[0] if judged.line.claimed else exact(judged.value)
    return {
        "line": judged.line.name,
        "claimed": _claimed(judged),
        "model": shown(judged.counted, reference) if judged.counted is not None else "",
        "off": f"{'+' if judged.off > 0 else '-'}{shown(abs(judged.off), reference)}" if judged.off is not None else "",
        "verdict": VERDICTS[judged.verdict],
        "why": "; ".join(judged.why),
    }


def _claimed(judged: JudgedLine) -> str:
    """Return the claimed numbers verbatim, or the result of the arithmetic if there are none."""
    if not judged.line.claimed:
        return f"= {exact(judged.value).text}"
    return ", ".join(number.text for number in judged.line.claimed)


def _plain(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)
