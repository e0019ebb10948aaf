"""The report of `archspec formula`: its terms, sums and assumptions, and the JSON document."""

from __future__ import annotations

from archspec.analysis.formula.api import Formula
from archspec.analysis.formula.totals import FormulaTerm
from archspec.core.algebra import Expression, evaluate, to_latex
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View
from archspec.core.reports.text import listed


def contents(derived: Formula) -> Document:
    """Return the document of the JSON and YAML output."""

    def number_entry(number: Expression) -> Document:
        return {
            "text": derived.text(number, collect=False),
            "latex": to_latex(number, tuple(derived.open)),
            "value": evaluate(number, derived.open),
        }

    def row(term: FormulaTerm) -> Document:
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
            "total": number_entry(derived.total),
            "trainable": number_entry(derived.trainable),
            "frozen": number_entry(derived.frozen),
        },
        "terms": [row(term) for term in derived.terms],
        "assumptions": [
            {"text": derived.format_assumption(a), "written": a.written, "source": a.span.location}
            for a in derived.assumptions
        ],
    }


def rows(derived: Formula) -> View:
    """Return the terms of the total as rows."""
    term_rows: list[Row] = [
        {"address": term.address, "type": term.type, "params": _expression(derived, term)} for term in derived.terms
    ]
    shown_columns = [Column("address", "term", fit="shorten"), Column("type", "type", fit="shorten", drop=1)]
    return View([*shown_columns, Column("params", "parameters", fit="wrap")], term_rows)


def page(derived: Formula, format: str = "text") -> Page:
    """Return the report: the terms, the sums, and the assumptions."""
    sums: list[str] = []
    for what, number in derived.numbers():
        collected, expanded = derived.text(number), derived.text(number, collect=False)
        sums.append(f"{what} = {collected}")
        if expanded != collected:
            sums.append(f"{' ' * len(what)} = {expanded}")
    every = "every positive integer" if len(derived.open) == 1 else "all positive integers"
    facts = [f"for {every} {listed(list(derived.open))}"]
    facts += [
        f"assuming {derived.format_assumption(a)}, by `{a.written}` ({a.span.location})" for a in derived.assumptions
    ]
    point = ", ".join(f"{name} = {value}" for name, value in derived.open.items())
    facts.append(f"at {point}: {derived.at():,}")
    return Page(f"{derived.model} with {listed(list(derived.open))} open", [rows(derived), sums, facts])


def _expression(derived: Formula, term: FormulaTerm) -> str:
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
