"""The report of `archspec explain`: a table for each interpretation of the number, and the JSON document."""

from __future__ import annotations

from math import ceil, floor

from archspec.analysis.explain.explain import MAX_MATCHES, Addend, Explanation, Match, ReadingMatches
from archspec.analysis.explain.numbers import rounded
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View
from archspec.core.reports.text import beside, number, parameters


def contents(found: Explanation) -> Document:
    """Return the document of the JSON and YAML output: an entry in `answers` for each interpretation of the number."""
    value = found.number.value
    return {
        "format": 1,
        "model": found.model,
        "total": found.total,
        "active": found.active,
        "number": {"text": found.number.text, "value": int(value) if value.denominator == 1 else float(value)},
        "tried": {"conventions": found.conventions, "deviations": found.depth},
        "answers": [
            {
                "digits": answer.reading.digits,
                **dict(zip(("low", "high"), _bounds(answer), strict=True)),
                "fits": bool(answer.matches),
                "matches": list(map(_match, answer.matches)),
                "more": answer.more,
                "nearest": list(map(_match, answer.nearest)),
                "cut_off": answer.cut_off,
                "active_cut_off": answer.active_cut_off,
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


def rows(found: Explanation) -> View:
    """Return the rows of the csv output: the steps of all matches."""
    return View(_COLUMNS, [row for answer in found.answers for row in _rows(answer)])


def page(found: Explanation, format: str = "table") -> Page:
    """Return the report: the matches for each interpretation of the number."""
    total = f"{found.total:,} parameters{beside(parameters(found.total))}"
    if found.active is not None:
        total += f", {found.active:,} active{beside(parameters(found.active))}"
    heading = f"{found.model}, {total}: conventions for {found.number.text}"
    blocks: list[Block] = []
    for answer in found.answers:
        shown = [View(_COLUMNS[1:], _once(_rows(answer)))] if answer.matches or answer.nearest else []
        blocks += [_heading(found, answer), *shown, _remarks(found, answer)]
    return Page(heading, blocks)


def _heading(found: Explanation, answer: ReadingMatches) -> str:
    published = found.number
    if answer.reading.digits is None:
        exactly = f"for exactly {int(published.value):,}"
        if not answer.matches:
            return f"no match {exactly}{_nearest(answer)}"
        return f"{len(answer.matches)} match{'es' if len(answer.matches) > 1 else ''} {exactly}"
    low, high = _bounds(answer)
    digits = number(answer.reading.digits, "significant digit")
    if not answer.matches:
        return f"at {digits}, {low:,} to {high:,}: no match{_nearest(answer)}"
    shown = ", ".join(dict.fromkeys(rounded(m.params, published, answer.reading.digits + 2) for m in answer.matches))
    return f"at {digits}, {low:,} to {high:,}: {shown}"


def _bounds(answer: ReadingMatches) -> tuple[int, int]:
    """Return the smallest and the largest integer that match."""
    return ceil(answer.reading.low), floor(answer.reading.high)


def _nearest(answer: ReadingMatches) -> str:
    if not answer.nearest:
        return "; no count with at most one adjustment is within 2 %"
    return "; the nearest counts with at most one adjustment are"


def _remarks(found: Explanation, answer: ReadingMatches) -> list[str]:
    lines: list[str] = []
    counts = [("plain count", found.total)] * answer.cut_off
    if answer.active_cut_off and found.active is not None:
        counts.append(("count of active parameters", found.active))
    for what, count in counts:  # none for an exact number
        digits = number(answer.reading.digits or 0, "significant digit")
        lines.append(f"truncated rather than rounded to {digits}, the {what} {count:,} is {found.number.text}")
    if not answer.matches:
        tried = f"searched {found.conventions:,} conventions with up to {number(found.depth, 'adjustment')}"
        lines.append(
            tried + (", small omissions and single arithmetic errors" if answer.reading.digits is None else "")
        )
    if len(answer.matches) > 1:
        lines.append("the matches are equally simple: the number alone does not determine which was meant")
    if any(match.kind in ("omission", "arithmetic error") for match in answer.matches):
        lines.append("an omission or an arithmetic error is a guess, not evidence")
    if len(answer.matches) == MAX_MATCHES:
        lines.append(f"there may be more: at most {MAX_MATCHES} are shown")
    elif answer.more:
        least = "at least " if answer.more == MAX_MATCHES else ""
        lines.append(f"{least}{number(answer.more, 'other')} with one more adjustment")
    return lines


_COLUMNS = (
    Column("digits", "digits"),
    Column("match", ""),
    Column("kind", "kind", drop=1),
    Column("counted", "counted", fit="wrap"),
    Column("params", "parameters"),
)


def _rows(answer: ReadingMatches) -> list[Row]:
    """Return a row for each step of each match, and one for its sum."""
    rows: list[Row] = []
    for position, match in enumerate(answer.matches or answer.nearest, 1):
        total = f"= {' + '.join(map(_part, match.parts))}"
        if match.kind == "arithmetic error":
            total += f" {'+' if match.steps[-1].params > 0 else '-'} {abs(match.steps[-1].params):,}"
        kind = match.kind if answer.matches else "nearest"
        of_match: Row = {"digits": answer.reading.digits, "match": position, "kind": kind}
        rows += [
            of_match | {"counted": text, "params": params} for text, params in (*match.steps, (total, match.params))
        ]
    return rows


def _once(rows: list[Row]) -> list[Row]:
    """Return the rows with the number and kind of a match in its first row only."""
    before = [None, *(row["match"] for row in rows)]
    repeated: Row = {"match": None, "kind": None}
    return [row | repeated if row["match"] == last else row for row, last in zip(rows, before, strict=False)]


def _part(part: Addend) -> str:
    where = f" ({part.address})" if part.address else ""
    return f"{part.times} x {part.each:,}{where}" if part.times > 1 else f"{part.each:,}{where}"
