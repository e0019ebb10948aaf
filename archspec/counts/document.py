"""`archspec count`: the document that programs read, and what it has in common with the views that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from archspec.counts.select import Rule, Selection, select
from archspec.table import Table


class Count(NamedTuple):
    """A model's table, what was selected of it, and how it is to be shown."""

    table: Table
    rules: Sequence[Rule]
    selection: Selection
    by: str | None
    depth: int | None


def count(table: Table, rules: Sequence[Rule], by: str | None, depth: int | None) -> Count:
    """Applies the rules."""
    return Count(table, rules, select(table, rules), by, depth)


def contents(counted: Count) -> dict[str, Any]:
    """The document that JSON and YAML write: the model's facts, and the rows of the view if one was asked for."""
    table, selection = counted.table, counted.selection
    tensors: list[dict[str, Any]] = [tensor._asdict() for tensor in table.tensors]
    if counted.rules:
        for row, params in zip(tensors, selection.params, strict=True):
            row["selected"] = params
    whole: dict[str, Any] = {
        "format": 1,
        "model": table.model,
        "hyperparameters": finite(table.hyperparameters),
        "overrides": finite(table.overrides),
        "params": table.params._asdict(),
        "selected": selection.total,
        "tensors": tensors,
        "buffers": [buffer._asdict() for buffer in table.buffers],
    }
    if counted.by:
        from archspec.counts.report import view

        shown = view(counted)
        whole["by"] = counted.by
        whole["rows"] = [{column.key: row[column.key] for column in shown.columns} for row in shown.rows]
    return whole


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Infinity, which JSON has no word for, as the language writes it."""
    return {
        name: ("inf" if value > 0 else "-inf") if isinstance(value, float) and abs(value) == float("inf") else value
        for name, value in values.items()
    }
