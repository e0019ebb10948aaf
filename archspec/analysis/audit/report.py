"""The report of `archspec audit`: its table and verdicts, and the JSON document."""

from __future__ import annotations

from archspec.analysis.audit.api import Audit
from archspec.analysis.audit.judge import VERDICTS, JudgedLine
from archspec.analysis.explain.numbers import as_exact_number, as_plain_number, format_value
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import number


def contents(audit: Audit) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "title": audit.title,
        "where": audit.where,
        "note": audit.note,
        "clean": audit.clean,
        "verdicts": {verdict: sum(judged.verdict == verdict for judged in audit.lines) for verdict in VERDICTS},
        "lines": [{**_entry(judged), "why": list(judged.why)} for judged in audit.lines],
    }


def _entry(judged: JudgedLine) -> Row:
    """Return the machine-readable entry of a line, without its reasons."""
    line = judged.line
    return {
        "line": line.name,
        "says": line.says,
        "where": line.where,
        "spec": line.spec,
        "claimed": _format_claimed(judged),
        "arithmetic": line.arithmetic.text if line.arithmetic is not None else None,
        "value": as_plain_number(judged.value),
        "own": as_plain_number(judged.own),
        "model": as_plain_number(judged.counted),
        "verdict": judged.verdict,
        "off": as_plain_number(judged.off),
    }


def rows(audit: Audit) -> View:
    """Return the rows of the csv output: the lines of the document."""
    lines = [_entry(judged) | {"why": "; ".join(judged.why)} for judged in audit.lines]
    return View(columns(*lines[0]), lines)


def page(audit: Audit, format: str = "table") -> Page:
    """Return the report: the lines with their verdicts."""
    heading = f"{audit.title}, {audit.where}" if audit.where else audit.title
    view = View(_COLUMNS, [_row(judged) for judged in audit.lines])
    counts = [(sum(j.verdict == verdict for j in audit.lines), words) for verdict, words in VERDICTS.items()]
    verdicts = f"{number(len(audit.lines), 'line')}: {', '.join(f'{n} {words}' for n, words in counts if n)}"
    blocks: list[Block] = [audit.note, view, verdicts]
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
    reference = judged.line.claimed[0] if judged.line.claimed else as_exact_number(judged.value)
    return {
        "line": judged.line.name,
        "claimed": _format_claimed(judged),
        "model": format_value(judged.counted, reference) if judged.counted is not None else "",
        "off": f"{'+' if judged.off > 0 else '-'}{format_value(abs(judged.off), reference)}"
        if judged.off is not None
        else "",
        "verdict": VERDICTS[judged.verdict],
        "why": "; ".join(judged.why),
    }


def _format_claimed(judged: JudgedLine) -> str:
    """Return the claimed numbers verbatim, or the result of the arithmetic if there are none."""
    if not judged.line.claimed:
        return f"= {as_exact_number(judged.value).text}"
    return ", ".join(number.text for number in judged.line.claimed)
