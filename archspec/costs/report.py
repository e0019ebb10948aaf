"""The report of `archspec cost`: the tree, the totals, the memory, and the JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from archspec.costs.cost import Cost, Figures
from archspec.costs.memory import BYTES, Activations
from archspec.costs.tree import CostRow, tree
from archspec.reporting.documents import Document, finite
from archspec.reporting.page import render
from archspec.reporting.tables import Column, Row, View, csv
from archspec.reporting.text import title
from archspec.table import Table
from archspec.work import Quantity

# Documents ------------------------------------------------------------------------------------------------------------


class CostReport(NamedTuple):
    """A cost to show: the model's table, its cost, and the `depth` of the tree."""

    table: Table
    cost: Cost
    depth: int | None = None


def contents(report: CostReport) -> Document:
    """Return the document of the JSON and YAML output; values in symbolic dimensions are formulas, as text."""
    table, cost, depth = report
    memory, kept = cost.memory, cost.activations
    return {
        "format": 1,
        "model": cost.model,
        "hyperparameters": finite(table.hyperparameters),
        "overrides": finite(table.overrides),
        "dims": cost.dims,
        "dtype": memory.dtype,
        "flops_per_mac": 2,
        "work": _amounts(cost.work, ("macs", "flops", "score_flops", "mix_flops", "elementwise")),
        "memory": {
            "weights": memory.weights,
            "buffers": memory.buffers,
            "activations": kept and kept._asdict() | {"bytes": _plain(kept.bytes)},
            "training": [scheme._asdict() | {"total": scheme.total} for scheme in memory.schemes],
        },
        "rows": _rows(cost, depth),
    }


def _rows(cost: Cost, depth: int | None) -> list[Row]:
    size = BYTES[cost.memory.dtype]
    return [
        {
            "address": line.address,
            "type": line.type,
            "applied": line.applied,
            **_amounts(line.work, ("macs", "flops", "elementwise")),
            "weights": line.parameters * size,
            "gradients": line.trainable * size,
        }
        for line in tree(cost, depth, fold=False)
    ]


def _amounts(work: Figures, names: Iterable[str], digits: str = "") -> dict[str, int | str]:
    return {name: _plain(getattr(work, name), digits) for name in names}


def _plain(amount: Quantity, digits: str = "") -> int | str:
    return amount if isinstance(amount, int) else f"{amount:{digits}}"


# Pages ----------------------------------------------------------------------------------------------------------------


def page(report: CostReport, format: str) -> str:
    """Render the report as a table, markdown or csv; csv contains only the rows of the tree."""
    table, cost, depth = report
    if format == "csv":
        rows = _rows(cost, depth)
        return csv(View(tuple([Column(key, key) for key in rows[0]]), rows))
    lines = tree(cost, depth)
    heading = f"{title(table.model, table.overrides)}, {_sizes(cost)}"
    blocks = [_tree(cost, lines, whole_addresses=format == "markdown"), _summary(cost), _memory(cost)]
    return render(heading, blocks, format)


def _sizes(cost: Cost) -> str:
    set_ = [f"{name} = {size}" for name, size in cost.dims.items() if size is not None]
    left = [name for name, size in cost.dims.items() if size is None]
    words = [f"at {', '.join(set_)}"] * bool(set_) + [f"{', '.join(left)} symbolic"] * bool(left)
    return "; ".join(words) or "all sizes fixed"


def _tree(cost: Cost, lines: list[CostRow], *, whole_addresses: bool) -> View:
    """Return the human-readable tree."""
    macs = cost.work.macs

    def row(line: CostRow) -> Row:
        work = line.work
        return {
            "address": line.address if whole_addresses else "  " * line.level + line.label,
            "times": f"{line.times} x" if line.times > 1 else "",
            "type": line.type,
            **_amounts(work, ("macs", "flops", "elementwise"), ","),
            "share": work.macs / macs if isinstance(work.macs, int) and isinstance(macs, int) and macs else None,
            "weights": line.parameters * BYTES[cost.memory.dtype],
            "notes": "" if line.applied == line.around else f"applied {line.applied} x",
        }

    columns = [
        Column("address", "address", "(the model)"),
        Column("times", ""),
        Column("type", "type"),
        Column("macs", "MACs"),
        Column("flops", "FLOPs"),
        Column("share", "share"),
        Column("elementwise", "elementwise"),
        Column("weights", "weight bytes"),
        Column("notes", ""),
    ]
    if not isinstance(macs, int):  # formulas are long, and MACs are half the FLOPs
        columns = [column for column in columns if column.key not in ("macs", "share")]
    return View(tuple(columns), [row(line) for line in lines])


def _summary(cost: Cost) -> list[str]:
    """Describe the figures, one fact per line."""
    work = cost.work

    lines = [
        f"{work.flops:,} FLOPs in matrix products, 2 per multiply-accumulate (MAC)",
        f"attention: {work.score_flops:,} FLOPs in score products (queries by keys), "
        f"{work.mix_flops:,} in mix products (probabilities by values)",
        f"{work.elementwise:,} elementwise operations, counted per element, not included in the FLOPs",
        "each row includes the modules inside it; all optional inputs are given",
    ]
    if not work.score_macs and not work.mix_macs:
        del lines[1]
    kept = cost.activations
    if kept is not None and not isinstance(kept.bytes, int):
        where = ", ".join(f"{name} >= {size}" for name, size in kept.least.items())
        lines.append(f"{kept.bytes:,} bytes of {_kept(kept)}, where {where}")
    return lines


def _kept(activations: Activations) -> str:
    return f"activations saved for training, {activations.attention} attention"


def _memory(cost: Cost) -> View:
    """Return the table of memory: weights, gradients and optimizer state."""
    memory = cost.memory
    blank = {"weights": None, "gradients": None, "optimizer": None, "holds": ""}
    rows = [blank | {"to": f"weights, {memory.dtype}", "weights": memory.weights, "total": memory.weights}]
    if memory.buffers:
        rows.append(blank | {"to": "buffers", "total": memory.buffers})
    for scheme in memory.schemes:
        rows.append(scheme._asdict() | {"to": f"training, {scheme.name}", "total": scheme.total})
    if cost.activations is not None and isinstance(cost.activations.bytes, int):
        rows.append(blank | {"to": _kept(cost.activations), "total": cost.activations.bytes})
    columns = [Column("to", "bytes"), *(Column(key, key) for key in ("weights", "gradients", "optimizer", "total"))]
    return View((*columns, Column("holds", "optimizer state")), rows)
