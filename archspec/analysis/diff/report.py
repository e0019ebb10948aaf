"""The report of `archspec diff`: its tables and notes, and the JSON document."""

from __future__ import annotations

from collections import Counter

from archspec.analysis.diff.api import Difference
from archspec.analysis.diff.operations import OperationChanges
from archspec.analysis.diff.structure import (
    NamePrefix,
    Repetition,
    StoredTensor,
    TensorChanges,
    collapse_changes,
    repetition_prefixes,
)
from archspec.core.addresses import format_ranges
from archspec.core.addresses.repeats import NamePattern
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns, shape
from archspec.core.reports.text import number, titles

MAX_ROWS = 1_000
"""Maximum number of rows of a table; csv, JSON and YAML contain all changes."""


# Documents ------------------------------------------------------------------------------------------------------------


def contents(difference: Difference) -> Document:
    """Return the document of the JSON and YAML output, which suffices to convert A's tensors to B's tensors."""
    return {
        "format": 1,
        "models": [
            {"model": model.model, "overrides": finite(model.overrides), "params": model.params.total}
            for model in (difference.before, difference.after)
        ],
        "equal": not difference,
        "unified": difference.unified,
        "stopped": difference.stopped,
        "prefix": difference.prefix._asdict(),
        "tensors": [_tensor_entry(change) for change in difference.folded],
        "repetitions": [repetition._asdict() for repetition in difference.repetitions],
        "operations": [
            {
                "change": change.kind,
                "address": change.fold.pattern,
                "numbers": [*map(list, change.fold.numbers)],
                "addresses": list(change.fold.names),
                "what": change.what,
                "before": change.before,
                "after": change.after,
            }
            for change in difference.operations
        ],
    }


def _tensor_entry(change: TensorChanges) -> Document:
    return {
        "change": list(change.kinds),
        "name": change.fold.pattern,
        "numbers": [*map(list, change.fold.numbers)],
        "names": list(change.fold.names),
        "before": change.before._asdict() if change.before else None,
        "after": change.after._asdict() if change.after else None,
    }


# Pages ----------------------------------------------------------------------------------------------------------------


def rows(difference: Difference) -> View:
    """Return the rows of the csv output: one for each change, collapsed over indices."""
    changes = [*map(_tensor_row, difference.folded), *map(_operation_row, difference.operations)]
    return View(columns("part", "change", "name", "numbers", "names", "what", "before", "after"), changes)


def page(difference: Difference, format: str = "table") -> Page:
    """Return the report: the tables of changes, and notes on them."""
    operations = [_operation_row(change) for change in difference.operations]
    heading, *notes = _sentences(difference)
    views: list[Block] = []
    before, after = titles((table.model, table.overrides) for table in (difference.before, difference.after))
    for changes, heading_text, label in (
        (_tensor_rows(difference), "tensors", "tensor"),
        (operations, "operations", "at"),
    ):
        if changes:
            table_columns = [
                Column("change", heading_text, fit="wrap"),
                Column("name", label, "(the model)", fit="shorten"),
            ]
            table_columns.append(Column("numbers", "*", fit="wrap"))
            table_columns.append(
                Column("names", "number", drop=1) if label == "tensor" else Column("what", "", fit="wrap")
            )
            table_columns += [Column("before", before, fit="wrap"), Column("after", after, fit="wrap")]
            views.append(View(table_columns, changes[:MAX_ROWS]))
            if len(changes) > MAX_ROWS:
                hidden = len(changes) - MAX_ROWS
                notes.append(f"{hidden:,} more rows of {heading_text}; use --format csv or json to show all")
    return Page(heading, [*views, notes])


def _sentences(difference: Difference) -> list[str]:
    """Return the heading, followed by remarks on the tables."""
    first, second = titles((table.model, table.overrides) for table in (difference.before, difference.after))
    if not difference:
        tensors = number(len(difference.after.tensors) + len(difference.after.buffers), "tensor")
        return [
            f"no differences between {first} and {second}: the same {tensors}, the same operations",
            *_normal_form_remarks(difference),
        ]
    counts = Counter(kind for change in difference.tensors for kind in change.kinds)
    changes = [_format_count(count, kind) for kind, count in counts.items()] or ["the same tensors"]
    changes.append("operations differ" if difference.operations else "the same operations")
    lines = [f"{first} -> {second}: {', '.join(changes)}"]
    lines += _normal_form_remarks(difference)
    lines += _prefix_remarks(difference.prefix, first, second)
    for repetition in difference.repetitions:
        lines.append(f"each additional {repetition.address} has the {repetition.tensors} tensors of {repetition.like}")
    return lines


def _normal_form_remarks(difference: Difference) -> list[str]:
    """Return remarks on the comparison of normal forms."""
    lines: list[str] = []
    if difference.unified:
        prefix = "elsewhere, " if difference.operations else ""
        lines.append(f"{prefix}some operations are written differently, but are equal up to rounding")
    if difference.stopped and difference.operations:
        lines.append("not all operations could be compared by their normal forms: some listed operations may be equal")
    return lines


def _format_count(count: int, kind: str) -> str:
    words = {"param": "made a parameter", "buffer": "made a buffer"}.get(kind, kind)
    return f"{number(count, 'tensor')} {words}"


def _prefix_remarks(prefix: NamePrefix, first: str, second: str) -> list[str]:
    if prefix.added:
        return [f"all names of {first} have the prefix `{prefix.added}` in {second}; the rows ignore it"]
    if prefix.removed:
        return [f"names have the prefix `{prefix.removed}` in {first} only; the rows ignore it"]
    return []


def _tensor_rows(difference: Difference) -> list[Row]:
    """Return the rows of tensors, with one row for each repetition."""
    repetitions = difference.repetitions
    prefixes = tuple(repetition_prefixes(repetitions))
    remaining = [change for change in difference.tensors if not prefixes or not change.name.startswith(prefixes)]
    return [*map(_repetition_row, repetitions), *map(_tensor_row, collapse_changes(remaining))]


def _repetition_row(repetition: Repetition) -> Row:
    return {
        "change": "added" if repetition.after > repetition.before else "removed",
        "name": repetition.address,
        "numbers": format_ranges(repetition.numbers),
        "names": repetition.tensors * len(repetition.numbers),
        "before": f"{repetition.before:,} in total",
        "after": f"{repetition.after:,} in total",
    }


def _row(part: str, change: str, fold: NamePattern, what: str, before: str, after: str) -> Row:
    return {
        "part": part,
        "change": change,
        "name": fold.pattern,
        "numbers": fold.ranges,
        "names": len(fold.names),
        "what": what,
        "before": before,
        "after": after,
    }


def _tensor_row(change: TensorChanges) -> Row:
    return _row(
        "tensors",
        ", ".join(change.kinds),
        change.fold,
        "",
        _describe_tensor(change.before),
        _describe_tensor(change.after),
    )


def _operation_row(change: OperationChanges) -> Row:
    fallback = "the operations differ (no description available)" if change.kind == "differs" else ""
    return _row("operations", change.kind, change.fold, change.what or fallback, change.before, change.after)


def _describe_tensor(tensor: StoredTensor | None) -> str:
    if tensor is None:
        return ""
    words = [shape(tensor.shape)]
    if tensor.kind == "buffer":
        words.append("buffer")
    elif not tensor.trainable:
        words.append("frozen")
    return ", ".join(words) + (f" = {tensor.tied_to}" if tensor.tied_to else "")
