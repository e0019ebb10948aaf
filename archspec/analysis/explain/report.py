"""The report of `archspec explain`: a table for each interpretation of the number, and the JSON document."""

from __future__ import annotations

from archspec.analysis.explain.explain import MAX_MATCHES, Addend, Explanation, Match, ReadingMatches
from archspec.analysis.explain.numbers import as_plain_number, describe_reading, format_rounded, integer_bounds
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View
from archspec.core.reports.text import beside, number, parameters


def contents(explanation: Explanation) -> Document:
    """Return the document of the JSON and YAML output: an entry in `answers` for each interpretation of the number."""
    return {
        "format": 1,
        "model": explanation.model,
        "total": explanation.total,
        "active": explanation.active,
        "active_without_tables": explanation.active_without_tables,
        "number": {"text": explanation.number.text, "value": as_plain_number(explanation.number.value)},
        "tried": {"conventions": explanation.conventions, "deviations": explanation.depth},
        "answers": [
            {
                "digits": answer.reading.digits,
                **dict(zip(("low", "high"), integer_bounds(answer.reading), strict=True)),
                "fits": bool(answer.matches),
                "matches": list(map(_match_entry, answer.matches)),
                "more": answer.more,
                "nearest": list(map(_match_entry, answer.nearest)),
                "cut_off": answer.cut_off,
                "active_cut_off": answer.active_cut_off,
                "active_without_tables_cut_off": answer.active_without_tables_cut_off,
            }
            for answer in explanation.answers
        ],
    }


def _match_entry(match: Match) -> Document:
    return {
        **match._asdict(),
        "steps": [step._asdict() for step in match.steps],
        "parts": [part._asdict() for part in match.parts],
    }


def rows(explanation: Explanation) -> View:
    """Return the rows of the csv output: the steps of all matches."""
    return View(_COLUMNS, [row for answer in explanation.answers for row in _rows(answer)])


def page(explanation: Explanation, format: str = "table") -> Page:
    """Return the report: the matches for each interpretation of the number."""
    total = f"{explanation.total:,} parameters{beside(parameters(explanation.total))}"
    if explanation.active is not None:
        total += f", {explanation.active:,} active{beside(parameters(explanation.active))}"
    heading = f"{explanation.model}, {total}: conventions for {explanation.number.text}"
    blocks: list[Block] = []
    for answer in explanation.answers:
        views = [View(_COLUMNS[1:], _clear_repeated_cells(_rows(answer)))] if answer.matches or answer.nearest else []
        blocks += [_heading(explanation, answer), *views, _remarks(explanation, answer)]
    return Page(heading, blocks)


def _heading(explanation: Explanation, answer: ReadingMatches) -> str:
    reading, digits = describe_reading(answer.reading), answer.reading.digits
    if digits is None:
        if not answer.matches:
            return f"no match for {reading}{_nearest(answer)}"
        return f"{len(answer.matches)} match{'es' if len(answer.matches) > 1 else ''} for {reading}"
    if not answer.matches:
        return f"{reading}: no match{_nearest(answer)}"
    counts = dict.fromkeys(format_rounded(m.params, explanation.number, digits + 2) for m in answer.matches)
    return f"{reading}: {', '.join(counts)}"


def _nearest(answer: ReadingMatches) -> str:
    if not answer.nearest:
        return "; no count with at most one adjustment is within 2 %"
    return "; the nearest counts with at most one adjustment are"


def _remarks(explanation: Explanation, answer: ReadingMatches) -> list[str]:
    lines: list[str] = []
    counts = [("plain count", explanation.total)] * answer.cut_off
    if answer.active_cut_off and explanation.active is not None:
        counts.append(("count of active parameters", explanation.active))
    if answer.active_without_tables_cut_off and explanation.active_without_tables is not None:
        noun = "count of active parameters without the tables that are only read"
        counts.append((noun, explanation.active_without_tables))
    for noun, count in counts:  # none for an exact number
        digits = number(answer.reading.digits or 0, "significant digit")
        lines.append(f"truncated rather than rounded to {digits}, the {noun} {count:,} is {explanation.number.text}")
    if not answer.matches:
        tried = f"searched {explanation.conventions:,} conventions with up to {number(explanation.depth, 'adjustment')}"
        lines.append(
            tried + (", small omissions and single arithmetic errors" if answer.reading.digits is None else "")
        )
    if len(answer.matches) > 1:
        lines.append("the matches are equally simple: the number alone does not determine which was meant")
    if any(match.kind in ("omission", "arithmetic error") for match in answer.matches):
        lines.append("an omission or an arithmetic error is a guess, not evidence")
    if any(match.kind == "coincidence" for match in answer.matches):
        lines.append("a coincidence is a guess, too: an error is as simple, or many totals are near the number")
    if len(answer.matches) == MAX_MATCHES:
        lines.append(f"there may be more: at most {MAX_MATCHES} are shown")
    elif answer.more:
        at_least = "at least " if answer.more == MAX_MATCHES else ""
        lines.append(f"{at_least}{number(answer.more, 'other')} with one more adjustment")
    return lines


_COLUMNS = (
    Column("digits", "digits"),
    Column("match", ""),
    Column("kind", "kind", drop=1),
    Column("counted", "counted", fit="wrap"),
    Column("params", "parameters"),
)


def _rows(answer: ReadingMatches) -> list[Row]:
    """Return a row for each step of each match, and a row for its sum."""
    rows: list[Row] = []
    for position, match in enumerate(answer.matches or answer.nearest, 1):
        total = f"= {' + '.join(map(_format_addend, match.parts))}"
        if match.kind == "arithmetic error":
            total += f" {'+' if match.steps[-1].params > 0 else '-'} {abs(match.steps[-1].params):,}"
        kind = match.kind if answer.matches else "nearest"
        common: Row = {"digits": answer.reading.digits, "match": position, "kind": kind}
        rows += [common | {"counted": text, "params": params} for text, params in (*match.steps, (total, match.params))]
    return rows


def _clear_repeated_cells(rows: list[Row]) -> list[Row]:
    """Clear the number and the kind of a match in all rows but its first."""
    preceding = [None, *(row["match"] for row in rows)]
    repeated: Row = {"match": None, "kind": None}
    return [row | repeated if row["match"] == last else row for row, last in zip(rows, preceding, strict=False)]


def _format_addend(part: Addend) -> str:
    location = f" ({part.address})" if part.address else ""
    return f"{part.times} x {part.each:,}{location}" if part.times > 1 else f"{part.each:,}{location}"
