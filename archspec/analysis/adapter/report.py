"""The report of `archspec count` for an adapter: a table of the trained modules, and the totals below it."""

from __future__ import annotations

from archspec.analysis.adapter.adapter import Adapter, TargetRow
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View, columns, shape
from archspec.core.reports.text import beside, number, parameters


def contents(adapter: Adapter) -> Document:
    """Return the document of the JSON and YAML output."""
    lora = adapter.lora
    return {
        "format": 1,
        "adapter": adapter.name,
        "base": adapter.base,
        "task": lora.task,
        "params": adapter.params._asdict(),
        "trainable_percent": 100 * adapter.share,
        "targets": [row._asdict() for row in adapter.targets],
        "tensors": [{"name": t.name, "shape": t.shape, "params": t.params} for t in adapter.stored.tensors],
        "notes": adapter.notes,
    }


def rows(adapter: Adapter) -> View:
    """Return the rows of the csv output."""
    return View(columns(*TargetRow._fields), [row._asdict() for row in adapter.targets])


def page(adapter: Adapter, format: str = "table") -> Page:
    """Return the report."""
    return Page(f"{adapter.name}, an adapter of {adapter.base}", [_target_view(adapter), _summary(adapter)])


def _target_view(adapter: Adapter) -> View:
    trainable = adapter.params.trainable
    shown_rows: list[Row] = [
        {
            "target": row.target,
            "type": row.type,
            "what": _WHAT[row.what],
            "modules": f"{row.modules:,} x",
            "shape": shape(row.shape) if row.shape else "",
            "rank": row.rank or None,
            "each": row.each or None,
            "params": row.params,
            "share": row.params / trainable,
        }
        for row in adapter.targets
    ]
    shown_columns = (
        Column("target", "module", fit="shorten"),
        Column("modules", ""),
        Column("type", "type", fit="shorten", drop=4),
        Column("what", "trained"),
        Column("shape", "matrix", drop=3, style="dim"),
        Column("rank", "rank"),
        Column("each", "each", drop=2),
        Column("params", "trainable"),
        Column("share", "share", drop=1, style="dim"),
    )
    return View(shown_columns, shown_rows)


_WHAT = {"lora": "LoRA", "bias": "biases", "copy": "a copy"}


def _summary(adapter: Adapter) -> list[str]:
    params = adapter.params
    return [
        f"{params.trainable:,} trainable{beside(parameters(params.trainable))} of {params.total:,} parameters"
        f"{beside(parameters(params.total))}, {100 * adapter.share:.4f} %",
        f"{number(len(adapter.stored.tensors), 'tensor')} in the checkpoint of the adapter",
        *adapter.notes,
    ]
