"""The report of `archspec explain --flops`: a table for each interpretation of the number, and the JSON document."""

from __future__ import annotations

from archspec.analysis.explain.flops.api import FlopExplanation, FlopReadingMatches
from archspec.analysis.explain.numbers import describe_reading
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View
from archspec.core.reports.text import beside, flops, number, title


def contents(explanation: FlopExplanation) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "model": explanation.cost.model,
        "dims": explanation.cost.dims,
        "flops": explanation.cost.work.flops,
        "number": explanation.number.text,
        "answers": [
            {
                "digits": answer.reading.digits,
                "matches": [match._asdict() for match in answer.matches],
                "nearest": [match._asdict() for match in answer.nearest],
            }
            for answer in explanation.answers
        ],
    }


def rows(explanation: FlopExplanation) -> View:
    """Return the rows of the csv output."""
    return View(_COLUMNS, [row for answer in explanation.answers for row in _rows(answer)])


def page(explanation: FlopExplanation, format: str = "table") -> Page:
    """Return the report."""
    sizes = ", ".join(f"{name} = {size}" for name, size in explanation.cost.dims.items())
    total = explanation.cost.work.flops
    model = title(explanation.cost.model, explanation.cost.table.overrides)
    heading = f"{model}, at {sizes}, {total:,} FLOPs{beside(flops(total))}"
    blocks: list[Block] = []
    for answer in explanation.answers:
        blocks.append(_heading(answer))
        if answer.matches or answer.nearest:
            blocks.append(View(_COLUMNS, _rows(answer)))
    return Page(f"{heading}: conventions for {explanation.number.text}", blocks)


def _heading(answer: FlopReadingMatches) -> str:
    reading = describe_reading(answer.reading)
    if answer.matches:
        return f"{reading}: {number(len(answer.matches), 'convention')}"
    return f"{reading}: no match; " + ("the nearest are" if answer.nearest else "nothing is within 2 %")


def _rows(answer: FlopReadingMatches) -> list[Row]:
    kind = "match" if answer.matches else "nearest"
    return [{"kind": kind, "counted": c.text, "flops": c.flops} for c in answer.matches or answer.nearest]


_COLUMNS = (Column("kind", "kind"), Column("counted", "counted", fit="wrap"), Column("flops", "operations"))
