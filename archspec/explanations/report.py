"""The report of `archspec explain`: a table for each reading of the number, and the document."""

from __future__ import annotations

from archspec.explanations.explain import MOST_MATCHES, Addend, Answer, Explanation, Match
from archspec.explanations.numbers import bounds, rounded
from archspec.reporting.documents import Document
from archspec.reporting.page import Block, render
from archspec.reporting.tables import Column, Row, View, csv
from archspec.reporting.text import number


def contents(found: Explanation) -> Document:
    """The document that JSON and YAML write: an entry in `answers` for each reading of the number."""
    value = found.number.value
    return {
        "format": 1,
        "model": found.model,
        "total": found.total,
        "number": {"text": found.number.text, "value": int(value) if value.denominator == 1 else float(value)},
        "tried": {"conventions": found.conventions, "deviations": found.depth},
        "answers": [
            {
                "digits": answer.reading.digits,
                **dict(zip(("low", "high"), bounds(answer.reading), strict=True)),
                "fits": bool(answer.matches),
                "matches": list(map(_match, answer.matches)),
                "more": answer.more,
                "nearest": list(map(_match, answer.nearest)),
                "cut_off": answer.cut_off,
            }
            for answer in found.answers
        ],
    }


def _match(match: Match) -> Document:
    return {
        **match._asdict(),
        "steps": [step._asdict() for step in match.steps],
        "parts": [part._asdict() for part in match.parts],
    }


def page(found: Explanation, format: str) -> str:
    """The report as a table, markdown or csv: for each reading of the number the conventions that fit."""
    if format == "csv":
        return csv(View(_COLUMNS, [row for answer in found.answers for row in _rows(answer)]))
    heading = f"{found.model}, {found.total:,} parameters: what gives {found.number.text}?"
    blocks: list[Block] = []
    for answer in found.answers:
        blocks += [_heading(found, answer), View(_COLUMNS[1:], _once(_rows(answer))), _remarks(found, answer)]
    return render(heading, blocks, format)


def _heading(found: Explanation, answer: Answer) -> str:
    published = found.number
    if answer.reading.digits is None:
        fit = number(len(answer.matches), "way") + " of counting" if answer.matches else "no way of counting tried"
        gives = "give" if len(answer.matches) > 1 else "gives"
        return f"{fit} {gives} exactly {int(published.value):,}" + ("" if answer.matches else _NEAREST)
    low, high = bounds(answer.reading)
    digits = number(answer.reading.digits, "significant digit")
    if not answer.matches:
        return f"read at {digits}, {low:,} to {high:,}: no way of counting tried{_NEAREST}"
    shown = ", ".join(dict.fromkeys(rounded(m.params, published, answer.reading.digits + 2) for m in answer.matches))
    return f"read at {digits}, {low:,} to {high:,}: {shown}"


_NEAREST = "; the nearest with at most one deviation are"


def _remarks(found: Explanation, answer: Answer) -> list[str]:
    return [*_cut_off(found, answer), *_about(found, answer)]


def _cut_off(found: Explanation, answer: Answer) -> list[str]:
    if not answer.cut_off or answer.reading.digits is None:
        return []
    digits = number(answer.reading.digits, "significant digit")
    return [f"cut off after {digits}, and not rounded, the plain count {found.total:,} is {found.number.text}"]


def _about(found: Explanation, answer: Answer) -> list[str]:
    tried = f"{found.conventions:,} conventions of up to {number(found.depth, 'deviation')} were tried"
    if not answer.matches:
        exact = answer.reading.digits is None
        return [tried + (", small omissions and single slips beside them" if exact else "")]
    lines: list[str] = []
    if len(answer.matches) > 1:
        lines.append("they are equally simple: the number alone does not tell which was meant")
    if any(match.kind != "convention" for match in answer.matches):
        lines.append("an omission or a slip is a guess that fits, not a finding")
    if len(answer.matches) == MOST_MATCHES:
        lines.append(f"there may be more: {MOST_MATCHES} are shown at most")
    elif answer.more:
        least = "at least " if answer.more == MOST_MATCHES else ""
        lines.append(f"{least}{number(answer.more, 'other')} with one deviation more")
    return lines


_COLUMNS = (
    Column("digits", "digits"),
    Column("match", ""),
    Column("kind", "kind"),
    Column("counted", "counted"),
    Column("params", "parameters"),
)


def _rows(answer: Answer) -> list[Row]:
    """A line for each step of each match, and one for the sum."""
    rows: list[Row] = []
    for position, match in enumerate(answer.matches or answer.nearest, 1):
        kind = match.kind if answer.matches else "nearest"
        steps = [(step.text, step.params) for step in match.steps]
        total = f"= {' + '.join(map(_part, match.parts))}"
        if match.kind == "slip":
            total += f" {'+' if match.steps[-1].params > 0 else '-'} {abs(match.steps[-1].params):,}"
        for text, params in [*steps, (total, match.params)]:
            rows.append(
                {"digits": answer.reading.digits, "match": position, "kind": kind, "counted": text, "params": params}
            )
    return rows


def _once(rows: list[Row]) -> list[Row]:
    """The rows with number and kind of a match on its first line only, as people read them."""
    before = [None, *(row["match"] for row in rows)]
    repeated: Row = {"match": None, "kind": None}
    return [row | repeated if row["match"] == last else row for row, last in zip(rows, before, strict=False)]


def _part(part: Addend) -> str:
    return f"{part.times} x {part.each:,} ({part.address})" if part.times > 1 else f"{part.each:,} ({part.address})"
