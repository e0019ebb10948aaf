"""The report of `archspec search`: the chosen designs, their model statements, and the numbers of designs."""

from __future__ import annotations

from archspec.analysis.search.result import Design, SearchResult
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Cell, Column, Row, View
from archspec.core.reports.text import listed, literal, number, title
from archspec.ir.table import PlainValue

LINE = "arch"

MAX_REASONS = 5
"""Maximum number of reasons for refusals that are listed."""


def page(result: SearchResult, format: str = "table") -> Page:
    """Return the report."""
    heading = f"{title(result.model, result.overrides)}: {_what(result)}"
    width = len(str(len(result.designs)))
    lines = [f"{number:>{width}}  {design.line}" for number, design in enumerate(result.designs, 1)]
    if result.imports:
        lines.insert(0, f"import std {{ {', '.join(result.imports)} }}")
    blocks: list[Block] = [_table(result)] if result.designs else []
    return Page(heading, [*blocks, lines, _facts(result)])


def rows(result: SearchResult) -> View:
    """Return all designs if the search collected them, otherwise the chosen designs."""
    columns = [Column(name, name) for name in (*result.varied, *result.figures)]
    if result.every is None:
        table_rows: list[Row] = [_row(design) for design in result.designs]
        return View([*columns, Column("equal", "equal"), Column(LINE, LINE)], table_rows)
    columns_of_values = [map(_cell, values.tolist()) for values in result.every.values()]
    return View(columns, [dict(zip(result.every, row, strict=True)) for row in zip(*columns_of_values, strict=True)])


def contents(result: SearchResult) -> Document:
    """Return the document of the JSON and YAML output."""
    tally = result.tally
    document: Document = {
        "format": 1,
        "model": result.model,
        "overrides": finite(result.overrides),
        "vary": list(result.varied),
        "where": list(result.where),
        "best": list(result.best),
        "near": result.near or None,
        "space": {
            "designs": tally.designs,
            "examined": tally.examined,
            "refused": tally.refused,
            "refusals": dict(tally.refusals),
            "satisfying": tally.answers,
            "compiled": tally.compiled,
            "interrupted": tally.is_interrupted,
        },
        "imports": list(result.imports),
        "designs": [
            {
                "hyperparameters": finite(design.values),
                "figures": design.figures,
                "equal": design.equal,
                LINE: design.line,
            }
            for design in result.designs
        ],
    }
    if result.every is not None:
        view = rows(result)
        document["all"] = [dict(row) for row in view.rows]
    return document


def _what(result: SearchResult) -> str:
    if result.near:
        return f"the nearest to {result.near}"
    return f"the best by {listed([f'`{name}`' for name in result.best])}" if result.best else "all designs"


def _table(result: SearchResult) -> View:
    has_equal = any(design.equal > 1 for design in result.designs)
    columns = [Column("#", "#"), *[Column(name, name, fit="shorten") for name in result.varied]]
    columns += [Column(name, name) for name in result.figures if _is_new(result, name)]
    columns += [Column("equal", "equal", drop=1)] if has_equal else []
    table_rows: list[Row] = [{"#": number, **_row(design)} for number, design in enumerate(result.designs, 1)]
    return View(columns, table_rows)


def _is_new(result: SearchResult, name: str) -> bool:
    """Whether no other column shows a figure with the opposite sign."""
    return name.removeprefix("-").strip() not in {*result.varied, *result.figures} - {name}


def _row(design: Design) -> Row:
    values = {name: _cell(value) for name, value in design.values.items()}
    return {**values, **design.figures, "equal": design.equal, LINE: design.line}


def _cell(value: PlainValue) -> Cell:
    return value if isinstance(value, bool | int) else literal(value)


def _facts(result: SearchResult) -> list[str]:
    tally, shown = result.tally, len(result.designs)
    examined = (
        f"{tally.examined:,} of {number(tally.designs, 'design')}"
        if tally.is_interrupted
        else number(tally.designs, "design")
    )
    facts = [f"{examined}: {tally.refused:,} refused by the spec, {tally.answers:,} satisfying the conditions"]
    reasons = [f"{number(count, 'design')}: {reason}" for reason, count in tally.refusals.items()]
    hidden = sum([*tally.refusals.values()][MAX_REASONS:])
    reasons[MAX_REASONS:] = [f"{hidden:,} for other reasons"] if hidden else []
    facts += [f"refused: {reason}" for reason in reasons]
    if result.helpers:
        names = listed([f"`{name}`" for name in result.helpers])
        facts.append(f"not hyperparameters, but used in the values of hyperparameters: {names}")
    if tally.is_interrupted:
        facts.insert(0, "interrupted: the designs found so far are listed")
    if tally.compiled:
        reason = f": {tally.reason}" if tally.reason else ""
        facts.append(f"{number(tally.compiled, 'design')} compiled one by one{reason}")
    if any(design.equal > 1 for design in result.designs):
        facts.append("equal: the designs with the same values of --best, of which the first is listed")
    if shown < result.found:
        help = "use another --where for fewer" if result.best else "use --format csv for all"
        facts.append(f"the first {shown:,} of {result.found:,} are listed; {help}")
    if shown:
        facts.append(f"{'the listed design was' if shown == 1 else 'all listed designs were'} compiled once more")
    return facts
