"""The report of `archspec formula`: its terms, sums and assumptions, and the JSON document."""

from __future__ import annotations

from archspec.algebra import Expression, evaluate, to_latex
from archspec.formulas.api import Formula
from archspec.formulas.totals import Term
from archspec.reporting.documents import Document
from archspec.reporting.text import listed


def contents(derived: Formula) -> Document:
    """Return the document of the JSON and YAML output."""

    def written(number: Expression) -> Document:
        return {
            "text": derived.text(number, collect=False),
            "latex": to_latex(number, tuple(derived.open)),
            "value": evaluate(number, derived.open),
        }

    def row(term: Term) -> Document:
        described: Document = {"address": term.address, "type": term.type or None}
        for part, number in (("rounds", term.rounds), ("each", term.each), ("total", term.total)):
            described[part] = derived.text(number, collect=False)
        if term.variable:
            described |= {"index": term.variable, "first": derived.text(term.first), "step": str(term.stride)}
        return described

    return {
        "format": 1,
        "model": derived.model,
        "open": derived.open,
        "hyperparameters": derived.hyperparameters,
        "overrides": {name: derived.hyperparameters[name] for name in derived.overrides},
        "params": {
            "total": written(derived.total),
            "trainable": written(derived.trainable),
            "frozen": written(derived.frozen),
        },
        "terms": [row(term) for term in derived.terms],
        "assumptions": [
            {"text": derived.assumed(a), "written": a.written, "source": a.span.place} for a in derived.assumptions
        ],
    }


def page(derived: Formula, format: str) -> str:
    """Render the report as LaTeX or text: the terms, the sums, and the assumptions."""
    if format == "latex":
        return derived.latex()
    rows = [(term.address, term.type, _expression(derived, term)) for term in derived.terms]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    lines = [f"{derived.model} with {listed(list(derived.open))} open", ""]
    lines += [f"{address:{widths[0]}}  {type:{widths[1]}}  {expression}" for address, type, expression in rows]
    lines.append("")
    for what, number in derived.numbers():
        collected, expanded = derived.text(number), derived.text(number, collect=False)
        lines.append(f"{what} = {collected}")
        if expanded != collected:
            lines.append(f"{' ' * len(what)} = {expanded}")
    every = "every positive integer" if len(derived.open) == 1 else "all positive integers"
    lines += ["", f"for {every} {listed(list(derived.open))}"]
    lines += [f"assuming {derived.assumed(a)}, by `{a.written}` ({a.span.place})" for a in derived.assumptions]
    point = ", ".join(f"{name} = {value}" for name, value in derived.open.items())
    lines.append(f"at {point}: {derived.at():,}")
    return "\n".join(lines) + "\n"


def _expression(derived: Formula, term: Term) -> str:
    """Format the total of a term over all its iterations."""
    each = derived.text(term.each)
    if term.variable:
        first = derived.text(term.first)
        last = derived.text(term.first + (term.rounds - 1) * term.stride)
        following = "" if term.stride == 1 else f"{derived.text(term.first + term.stride)}, "
        total = derived.text(term.total, collect=False)
        return f"sum of {each} over {term.variable} = {first}, {following}..., {last}: {total}"
    if term.rounds == 1:
        return each
    rounds = derived.text(term.rounds)
    rounds = rounds if rounds.isalnum() else f"({rounds})"
    return f"{rounds}*{each if each.isalnum() else f'({each})'}"
