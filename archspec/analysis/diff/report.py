"""The report of `archspec diff`: its tables and notes, and the JSON document."""

from __future__ import annotations

from collections import Counter

from archspec.analysis.diff.api import Difference
from archspec.analysis.diff.operations import OperationChanges
from archspec.analysis.diff.structure import NamePrefix, Repetition, StoredTensor, TensorChanges, covered, folded
from archspec.core.addresses import format_ranges
from archspec.core.addresses.repeats import NamePattern
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns, shape
from archspec.core.reports.text import number, titles

MAX_ROWS = 1_000
"""The limit on rows of a table; csv, JSON and YAML contain all changes."""


# Documents ------------------------------------------------------------------------------------------------------------


def contents(found: Difference) -> Document:
    """Return the document of the JSON and YAML output: everything needed to convert A's tensors to B's."""
    return {
        "format": 1,
        "models": [
            {"model": model.model, "overrides": finite(model.overrides), "params": model.params.total}
            for model in (found.before, found.after)
        ],
        "equal": not found,
        "unified": found.unified,
        "stopped": found.stopped,
        "prefix": found.prefix._asdict(),
        "tensors": [_tensor_entry(change) for change in found.folded],
        "repetitions": [repetition._asdict() for repetition in found.repetitions],
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
            for change in found.operations
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


def rows(found: Difference) -> View:
    """Return the rows of the csv output: one for each change, collapsed over indices."""
    changes = [*map(_tensor_row, found.folded), *map(_operation_row, found.operations)]
    return View(columns("part", "change", "name", "numbers", "names", "what", "before", "after"), changes)


def page(found: Difference, format: str = "table") -> Page:
    """Return the report: the tables of changes, and notes on them."""
    operations = [_operation_row(change) for change in found.operations]
    heading, *notes = _sentences(found)
    views: list[Block] = []
    before, after = titles((table.model, table.overrides) for table in (found.before, found.after))
    for changes, what, where in ((_shown(found), "tensors", "tensor"), (operations, "operations", "at")):
        if changes:
            shown = [Column("change", what, fit="wrap"), Column("name", where, "(the model)", fit="shorten")]
            shown.append(Column("numbers", "*", fit="wrap"))
            shown.append(Column("names", "number", drop=1) if where == "tensor" else Column("what", "", fit="wrap"))
            shown += [Column("before", before, fit="wrap"), Column("after", after, fit="wrap")]
            views.append(View(shown, changes[:MAX_ROWS]))
            if len(changes) > MAX_ROWS:
                more = len(changes) - MAX_ROWS
                notes.append(f"{more:,} more rows of {what}; use --format csv or json to show all")
    return Page(heading, [*views, notes])


def _sentences(found: Difference) -> list[str]:
    """Return the heading, and remarks on the tables."""
    first, second = titles((table.model, table.overrides) for table in (found.before, found.after))
    if not found:
        tensors = number(len(found.after.tensors) + len(found.after.buffers), "tensor")
        return [f"no differences between {first} and {second}: the same {tensors}, the same operations", *_forms(found)]
    counts = Counter(kind for change in found.tensors for kind in change.kinds)
    changes = [_counted(count, kind) for kind, count in counts.items()] or ["the same tensors"]
    changes.append("operations differ" if found.operations else "the same operations")
    lines = [f"{first} -> {second}: {', '.join(changes)}"]
    lines += _forms(found)
    lines += _prefixed(found.prefix, first, second)
    for repetition in found.repetitions:
        lines.append(f"each additional {repetition.address} has the {repetition.tensors} tensors of {repetition.like}")
    return lines


def _forms(found: Difference) -> list[str]:
    """Return what normal forms contributed."""
    lines: list[str] = []
    if found.unified:
        where = "elsewhere, " if found.operations else ""
        lines.append(f"{where}some operations are written differently, but compute the same up to rounding")
    if found.stopped and found.operations:
        lines.append(
            "not all operations could be compared by their normal forms: some of those listed may compute the same"
        )
    return lines


def _counted(count: int, kind: str) -> str:
    words = {"param": "made a parameter", "buffer": "made a buffer"}.get(kind, kind)
    return f"{number(count, 'tensor')} {words}"


def _prefixed(prefix: NamePrefix, first: str, second: str) -> list[str]:
    if prefix.added:
        return [f"all names of {first} have the prefix `{prefix.added}` in {second}; the rows ignore it"]
    if prefix.removed:
        return [f"names have the prefix `{prefix.removed}` in {first} only; the rows ignore it"]
    return []


def _shown(found: Difference) -> list[Row]:
    """Return the rows of tensors, with one row per repetition."""
    repetitions = found.repetitions
    within = tuple(covered(repetitions))
    rest = [change for change in found.tensors if not within or not change.name.startswith(within)]
    return [*map(_repetition_row, repetitions), *map(_tensor_row, folded(rest))]


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
    return _row("tensors", ", ".join(change.kinds), change.fold, "", _stored(change.before), _stored(change.after))


def _operation_row(change: OperationChanges) -> Row:
    fallback = "the operations differ (no description available)" if change.kind == "differs" else ""
    return _row("operations", change.kind, change.fold, change.what or fallback, change.before, change.after)


def _stored(tensor: StoredTensor | None) -> str:
    if tensor is None:
        return ""
    words = [shape(tensor.shape)]
    if tensor.kind == "buffer":
        words.append("buffer")
    elif not tensor.trainable:
        words.append("frozen")
    return ", ".join(words) + (f" = {tensor.tied_to}" if tensor.tied_to else "")
