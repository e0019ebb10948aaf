"""`archspec explain SPEC NUMBER`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from archspec.cli.commands import DOCUMENTS, overrides_of, write_document
from archspec.explanations.api import explain_spec
from archspec.explanations.explain import MOST_MATCHES
from archspec.explanations.numbers import bounds, rounded
from archspec.reporting.tables import Column, View, csv, escape_markdown, markdown, table
from archspec.source import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from archspec.explanations.explain import Answer, Explanation, Match, Part


def run_explain(options: Namespace) -> int:
    """`archspec explain SPEC NUMBER`; the status is 1 where nothing fits."""
    found = explain_spec(options.spec, options.number, overrides_of(options.settings))
    if options.format in DOCUMENTS:
        write_document(contents(found), options.format)
    elif options.format == "csv":
        sys.stdout.write(csv(View(_COLUMNS, [row for answer in found.answers for row in _rows(answer)])))
    else:
        sys.stdout.write(page(found, options.format == "markdown"))
    return 0 if found.fits else 1


def contents(found: Explanation) -> dict[str, Any]:
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


def _match(match: Match) -> dict[str, Any]:
    return {
        **match._asdict(),
        "steps": [step._asdict() for step in match.steps],
        "parts": [part._asdict() for part in match.parts],
    }


def page(found: Explanation, is_markdown: bool) -> str:
    """The answers for people: for each reading a table of the ways of counting that fit, and what to think of them."""
    escape = escape_markdown if is_markdown else str
    title = f"{found.model}, {found.total:,} parameters: what gives {found.number.text}?"
    text = f"{'## ' * is_markdown}{escape(printable(title))}\n"
    for answer in found.answers:
        text += f"\n{escape(printable(_heading(found, answer)))}\n\n"
        view = View(_COLUMNS[1:], _once(_rows(answer)))
        text += (markdown if is_markdown else table)(view) + "\n"
        text += "".join(f"{'- ' * is_markdown}{escape(line)}\n" for line in _remarks(found, answer))
    return text


def _heading(found: Explanation, answer: Answer) -> str:
    number = found.number
    if answer.reading.digits is None:
        fit = _number(len(answer.matches), "way") + " of counting" if answer.matches else "no way of counting tried"
        gives = "give" if len(answer.matches) > 1 else "gives"
        return f"{fit} {gives} exactly {int(number.value):,}" + ("" if answer.matches else _NEAREST)
    low, high = bounds(answer.reading)
    digits = _number(answer.reading.digits, "significant digit")
    if not answer.matches:
        return f"read at {digits}, {low:,} to {high:,}: no way of counting tried{_NEAREST}"
    shown = ", ".join(dict.fromkeys(rounded(m.params, number, answer.reading.digits + 2) for m in answer.matches))
    return f"read at {digits}, {low:,} to {high:,}: {shown}"


_NEAREST = "; the nearest with at most one deviation are"


def _remarks(found: Explanation, answer: Answer) -> list[str]:
    return [*_cut_off(found, answer), *_about(found, answer)]


def _cut_off(found: Explanation, answer: Answer) -> list[str]:
    if not answer.cut_off or answer.reading.digits is None:
        return []
    digits = _number(answer.reading.digits, "significant digit")
    return [f"cut off after {digits}, and not rounded, the plain count {found.total:,} is {found.number.text}"]


def _about(found: Explanation, answer: Answer) -> list[str]:
    tried = f"{found.conventions:,} conventions of up to {_number(found.depth, 'deviation')} were tried"
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
        lines.append(f"{least}{_number(answer.more, 'other')} with one deviation more")
    return lines


_COLUMNS = (
    Column("digits", "digits"),
    Column("match", ""),
    Column("kind", "kind"),
    Column("counted", "counted"),
    Column("params", "parameters"),
)


def _rows(answer: Answer) -> list[dict[str, Any]]:
    """A line for each step of each match, and one for the sum."""
    rows: list[dict[str, Any]] = []
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


def _once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with number and kind of a match on its first line only, as people read them."""
    before = [None, *(row["match"] for row in rows)]
    repeated = {"match": None, "kind": None}
    return [row | repeated if row["match"] == last else row for row, last in zip(rows, before, strict=False)]


def _part(part: Part) -> str:
    return f"{part.times} x {part.each:,} ({part.address})" if part.times > 1 else f"{part.each:,} ({part.address})"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
