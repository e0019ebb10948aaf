"""The rows of `archspec count`: its tensors, or their sums by layer, block or role."""

from __future__ import annotations

from archspec.analysis.count.count import Count
from archspec.analysis.count.groups import count_by_block, count_by_layer, count_by_role
from archspec.core.reports.tables import Column, Row, View
from archspec.ir.table import Tensor


def rows(counted: Count) -> View:
    """Return the rows of `--by tensor|layer|block|role`; of tensors by default."""
    if counted.by in ("layer", "block", "role"):
        return _groups(counted)
    chosen = zip(counted.table.tensors, counted.selection.chosen, counted.selection.params, strict=True)
    found = [_tensor_row(counted, tensor, params) for tensor, is_chosen, params in chosen if is_chosen]
    columns = [
        Column("name", "name", fit="shorten"),
        Column("shape", "shape", drop=5, style="dim"),
        Column("params", "params"),
        Column("share", share_title(counted), drop=4, style="dim"),
        Column("trainable", "trainable", drop=3),
        Column("tied_to", "tied to", fit="shorten", drop=6),
        Column("role", "role", fit="shorten", drop=7, style="role"),
        Column("layer", "layer", fit="shorten", drop=1),
        Column("type", "type", fit="shorten", drop=2),
    ]
    return View(tuple(columns), found)


def _groups(counted: Count) -> View:
    if counted.by == "role":
        groups = count_by_role(counted.table, counted.selection)
        columns = [Column("role", "role", "(none)", style="role")]
    else:
        by = count_by_layer if counted.by == "layer" else count_by_block
        groups = by(counted.table, counted.selection, counted.depth)
        columns = [
            Column("address", "address", "(the model)", fit="shorten"),
            Column("type", "type", fit="shorten", drop=1),
        ]
    found = [
        {columns[0].key: group.name, **group._asdict(), "share": share_of(counted, group.params)} for group in groups
    ]
    columns += [Column("tensors", "tensors", drop=3), Column("params", "params"), Column("trainable", "trainable")]
    columns.append(Column("share", share_title(counted), drop=2, style="dim"))
    return View(tuple(columns), found)


def _tensor_row(counted: Count, tensor: Tensor, params: int) -> Row:
    return tensor._asdict() | {"params": params, "share": share_of(counted, params)}


def share_of(counted: Count, params: int) -> float:
    """Return the fraction of the total, or of the selected parameters."""
    whole = counted.selection.total if counted.rules else counted.table.params.total
    return params / whole if whole else 0.0


def share_title(counted: Count) -> str:
    return "of selected" if counted.rules else "share"
