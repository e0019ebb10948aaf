"""`archspec audit FILE`."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from archspec.audits import Audit, audit
from archspec.audits.judge import VERDICTS, Judged, exact, shown
from archspec.cli.commands import DOCUMENTS, write_document
from archspec.counts.report import number
from archspec.reporting.tables import Column, View, csv, escape_markdown, markdown, table
from archspec.source import printable

if TYPE_CHECKING:
    from argparse import Namespace


def run_audit(options: Namespace) -> int:
    """`archspec audit FILE`; the status is 1 where a line is wrong."""
    found = audit(options.file)
    if options.format in DOCUMENTS:
        write_document(contents(found), options.format)
    elif options.format == "csv":
        columns = [Column(key, key) for key in contents(found)["lines"][0]]
        rows = [{**row, "why": "; ".join(row["why"])} for row in contents(found)["lines"]]
        sys.stdout.write(csv(View(tuple(columns), rows)))
    else:
        sys.stdout.write(page(found, options.format == "markdown"))
    return 0 if found.clean else 1


def contents(found: Audit) -> dict[str, Any]:
    """The document that JSON and YAML write."""
    return {
        "format": 1,
        "title": found.title,
        "where": found.where,
        "note": found.note,
        "clean": found.clean,
        "verdicts": {verdict: sum(judged.verdict == verdict for judged in found.lines) for verdict in VERDICTS},
        "lines": [
            {
                "line": judged.line.name,
                "says": judged.line.says,
                "where": judged.line.where,
                "spec": judged.line.spec,
                "claimed": _claimed(judged),
                "arithmetic": judged.line.arithmetic.text if judged.line.arithmetic is not None else None,
                "value": _plain(judged.value),
                "own": _plain(judged.own),
                "model": _plain(judged.counted),
                "verdict": judged.verdict,
                "off": _plain(judged.off),
                "why": list(judged.why),
            }
            for judged in found.lines
        ],
    }


def page(found: Audit, is_markdown: bool) -> str:
    """The report for people: a table of the lines, then how many are what."""
    escape = escape_markdown if is_markdown else str
    heading = f"{found.title}, {found.where}" if found.where else found.title
    text = f"{'## ' * is_markdown}{escape(printable(heading))}\n\n"
    text += f"{escape(printable(found.note))}\n\n" if found.note else ""
    text += (markdown if is_markdown else table)(View(_COLUMNS, [_row(judged) for judged in found.lines])) + "\n"
    counts = [(sum(j.verdict == verdict for j in found.lines), words) for verdict, words in VERDICTS.items()]
    return text + f"{number(len(found.lines), 'line')}: {', '.join(f'{n} {words}' for n, words in counts if n)}\n"


_COLUMNS = (
    Column("line", "line"),
    Column("claimed", "claimed"),
    Column("model", "the model has"),
    Column("off", "off by"),
    Column("verdict", "verdict"),
    Column("why", "why"),
)


def _row(judged: Judged) -> dict[str, Any]:
    beside = judged.line.claimed[0] if judged.line.claimed else exact(judged.value)
    return {
        "line": judged.line.name,
        "claimed": _claimed(judged),
        "model": shown(judged.counted, beside) if judged.counted is not None else "",
        "off": f"{'+' if judged.off > 0 else '-'}{shown(abs(judged.off), beside)}" if judged.off is not None else "",
        "verdict": VERDICTS[judged.verdict],
        "why": "; ".join(judged.why),
    }


def _claimed(judged: Judged) -> str:
    """The numbers as they are written, or what the arithmetic that stands for them gives."""
    if not judged.line.claimed:
        return f"= {exact(judged.value).text}"
    return ", ".join(number.text for number in judged.line.claimed)


def _plain(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)
