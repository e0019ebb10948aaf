"""The report of `verify --module` and `build --prove`."""

from __future__ import annotations

from archspec.equivalence.api import Equivalence
from archspec.equivalence.places import Place
from archspec.reporting.documents import Document
from archspec.reporting.page import Block, render


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


def _place(place: Place | None) -> Document | None:
    return None if place is None else {"address": place.address, "source": place.source}


def page(found: Equivalence, format: str) -> str:
    """Return the report as text or markdown."""
    blocks: list[Block] = [verdict(found)]
    if found.unequal is not None:
        lines = [f"first output that differs: `{found.unequal.output}`"]
        for name, place in ((found.a, found.unequal.a), (found.b, found.unequal.b)):
            lines.append(f"first value that only {name} computes: {place or 'none'}")
        blocks.append(lines)
    return render(f"{found.a} and {found.b}", blocks, format)


def verdict(found: Equivalence) -> str:
    """Return the verdict as a sentence."""
    because = f" ({found.reason})" if found.reason else ""
    match found.verdict:
        case "equal":
            return "Equal: proven for all inputs, sizes and values of the tensors, up to rounding."
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
