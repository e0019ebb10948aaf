"""The document of `archspec count`."""

from __future__ import annotations

from archspec.counts.count import Count
from archspec.reporting.documents import Document, finite


def contents(counted: Count) -> Document:
    """The document that JSON and YAML write: the model's facts, and the rows of the view if one was asked for."""
    table, selection = counted.table, counted.selection
    tensors: list[Document] = [tensor._asdict() for tensor in table.tensors]
    if counted.rules:
        for row, params in zip(tensors, selection.params, strict=True):
            row["selected"] = params
    whole: Document = {
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
        from archspec.counts.report import view  # imported only here: a document without rows is written without tables

        shown = view(counted)
        whole["by"] = counted.by
        whole["rows"] = [{column.key: row[column.key] for column in shown.columns} for row in shown.rows]
    return whole
