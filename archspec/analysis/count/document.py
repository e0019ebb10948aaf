"""The JSON document of `archspec count`; separate from `report`, because a document without rows needs no tables."""

from __future__ import annotations

from archspec.analysis.count.count import Count
from archspec.core.reports.documents import Document, finite
from archspec.ir.table import Tensor


def contents(counted: Count) -> Document:
    """Return the document of the JSON and YAML output: totals, and the rows of the view if one was requested."""
    table, selection = counted.table, counted.selection
    distinct = [dict(zip(Tensor._fields, tensor, strict=True)) for tensor in table.tensors.distinct]
    rows = zip(table.tensors.column(distinct), table.tensors.names(), table.tensors.layers(), strict=True)
    tensors: list[Document] = [{**row, "name": name, "layer": layer} for row, name, layer in rows]
    if counted.rules:
        for row, params in zip(tensors, selection.params, strict=True):
            row["selected"] = params
            row["counted_as"] = selection.counted_elsewhere.get(str(row["name"]))
    document: Document = {
        "format": 1,
        "model": table.model,
        "hyperparameters": finite(table.hyperparameters),
        "overrides": finite(table.overrides),
        "params": table.params._asdict(),
        "active": table.active and table.active.to_dict(),
        "selected": selection.total,
        "tensors": tensors,
        "buffers": [buffer._asdict() for buffer in table.buffers],
    }
    if counted.by:
        from archspec.analysis.count.report import rows

        view = rows(counted)
        document["by"] = counted.by
        document["rows"] = [{column.key: row[column.key] for column in view.columns} for row in view.rows]
    return document
