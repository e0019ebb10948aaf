"""The report of `verify --module` and `build --prove`."""

from __future__ import annotations

from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import View, columns
from archspec.ir.normal.origins import ModuleLocation
from archspec.pytorch.prove.api import Equivalence

EQUAL = (
    "Equal: proven for all finite inputs, values of the tensors, and sizes from 2 on that both accept, up to rounding, "
    "except in rows that a mask hides completely. The tensors have the same names, shapes, types, kinds and ties, the "
    "outputs the same names."
)
"""What is established for the verdict `equal`."""


def contents(found: Equivalence) -> Document:
    """Return the content of JSON and YAML output."""
    unequal = found.unequal
    return {
        "a": found.a,
        "b": found.b,
        "verdict": found.verdict,
        "reason": found.reason or None,
        "output": unequal.output if unequal else None,
        "a_differs_at": _place(unequal.a) if unequal else None,
        "b_differs_at": _place(unequal.b) if unequal else None,
        "error": found.error,
    }


def _place(place: ModuleLocation | None) -> Document | None:
    return None if place is None else {"address": place.address, "source": place.source}


def rows(found: Equivalence) -> View:
    """Return the row of the csv output."""
    output = found.unequal.output if found.unequal else None
    row = {"a": found.a, "b": found.b, "verdict": found.verdict, "reason": found.reason, "output": output}
    return View(columns(*row, "error"), [row | {"error": found.error}])


def page(found: Equivalence, format: str = "table") -> Page:
    """Return the report: the verdict, and the place of the first difference."""
    blocks: list[Block] = [verdict(found)]
    if found.unequal is not None:
        lines = [f"first output that differs: {found.unequal.output}"]
        for name, place in ((found.a, found.unequal.a), (found.b, found.unequal.b)):
            lines.append(f"first value that only {name} computes: {place or 'none'}")
        blocks.append(lines)
    return Page(f"{found.a} and {found.b}", blocks)


def verdict(found: Equivalence) -> str:
    """Return the verdict as a sentence."""
    because = f" ({found.reason})" if found.reason else ""
    match found.verdict:
        case "equal":
            return EQUAL
        case "outputs equal":
            return (
                f"Not proven{because}, but the outputs are equal: they differ by at most {found.error:.1g} in float64."
            )
        case "different" if found.error is not None:
            return f"Different: the outputs differ by {found.error:.1g} in float64{because}."
        case "different":
            return f"Different: {found.reason}."
        case _:
            return f"Not proven{because}."
