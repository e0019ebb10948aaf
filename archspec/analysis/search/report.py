"""The report of `archspec search`: the chosen designs, their model statements, and the numbers of designs."""

from __future__ import annotations

from archspec.analysis.search.result import Design, SearchResult
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Cell, Column, Row, View
from archspec.core.reports.text import listed, literal, number, title
from archspec.ir.table import PlainValue

LINE = "arch"


def page(found: SearchResult, format: str = "table") -> Page:
    """Return the report."""
    heading = f"{title(found.model, found.overrides)}: {_what(found)}"
    width = len(str(len(found.designs)))
    lines = [f"{place:>{width}}  {design.line}" for place, design in enumerate(found.designs, 1)]
    if found.imports:
        lines.insert(0, f"import std {{ {', '.join(found.imports)} }}")
    blocks: list[Block] = [_table(found)] if found.designs else []
    return Page(heading, [*blocks, lines, _facts(found)])


def rows(found: SearchResult) -> View:
    """Return all designs if the search has kept them, otherwise the chosen ones."""
    columns = [Column(name, name) for name in (*found.varied, *found.figures)]
    if found.every is None:
        made: list[Row] = [_row(design) for design in found.designs]
        return View([*columns, Column("equal", "equal"), Column(LINE, LINE)], made)
    every = [map(_cell, values.tolist()) for values in found.every.values()]
    return View(columns, [dict(zip(found.every, row, strict=True)) for row in zip(*every, strict=True)])


def contents(found: SearchResult) -> Document:
    """Return the document of the JSON and YAML output."""
    tally = found.tally
    document: Document = {
        "format": 1,
        "model": found.model,
        "overrides": finite(found.overrides),
        "vary": list(found.varied),
        "where": list(found.where),
        "best": list(found.best),
        "near": found.near or None,
        "space": {
            "designs": tally.designs,
            "examined": tally.examined,
            "refused": tally.refused,
            "satisfying": tally.answers,
            "compiled": tally.compiled,
            "interrupted": tally.is_interrupted,
        },
        "imports": list(found.imports),
        "designs": [
            {
                "hyperparameters": finite(design.values),
                "figures": design.figures,
                "equal": design.equal,
                LINE: design.line,
            }
            for design in found.designs
        ],
    }
    if found.every is not None:
        view = rows(found)
        document["all"] = [dict(row) for row in view.rows]
    return document


def _what(found: SearchResult) -> str:
    if found.near:
        return f"the nearest to {found.near}"
    return f"the best by {listed([f'`{name}`' for name in found.best])}" if found.best else "all designs"


def _table(found: SearchResult) -> View:
    has_equal = any(design.equal > 1 for design in found.designs)
    columns = [Column("#", "#"), *[Column(name, name, fit="shorten") for name in found.varied]]
    columns += [Column(name, name) for name in found.figures if _is_new(found, name)]
    columns += [Column("equal", "equal", drop=1)] if has_equal else []
    made: list[Row] = [{"#": place, **_row(design)} for place, design in enumerate(found.designs, 1)]
    return View(columns, made)


def _is_new(found: SearchResult, name: str) -> bool:
    """Whether a figure is not that of another column with the sign changed."""
    return name.removeprefix("-").strip() not in {*found.varied, *found.figures} - {name}


def _row(design: Design) -> Row:
    values = {name: _cell(value) for name, value in design.values.items()}
    return {**values, **design.figures, "equal": design.equal, LINE: design.line}


def _cell(value: PlainValue) -> Cell:
    return value if isinstance(value, bool | int) else literal(value)


def _facts(found: SearchResult) -> list[str]:
    tally, shown = found.tally, len(found.designs)
    examined = (
        f"{tally.examined:,} of {number(tally.designs, 'design')}"
        if tally.is_interrupted
        else number(tally.designs, "design")
    )
    facts = [f"{examined}: {tally.refused:,} refused by the spec, {tally.answers:,} satisfying the conditions"]
    if tally.is_interrupted:
        facts.insert(0, "interrupted: these are the designs that had been found")
    if tally.compiled:
        why = f": {tally.reason}" if tally.reason else ""
        facts.append(f"{number(tally.compiled, 'design')} compiled one by one{why}")
    if any(design.equal > 1 for design in found.designs):
        facts.append("equal: the designs with the same values of --best, of which the first is listed")
    if shown < found.found:
        help = "use another --where for fewer" if found.best else "use --format csv for all"
        facts.append(f"the first {shown:,} of {found.found:,} are listed; {help}")
    if shown:
        facts.append(f"{'the listed design was' if shown == 1 else 'all listed designs were'} compiled once more")
    return facts
