"""The report of `archspec count`: the tree or a flat table, and the totals below it."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.counts.count import Count
from archspec.counts.groups import RoleComponent, by_block, by_layer, by_role, components_of_role
from archspec.counts.select import Rule
from archspec.counts.tree import CountRow, tree
from archspec.reporting.page import render
from archspec.reporting.tables import Column, Row, View, csv, percent, shape
from archspec.reporting.text import number, title
from archspec.table import Tensor


def page(counted: Count, format: str) -> str:
    """Render the report as a table, markdown or csv; csv contains only the rows."""
    if format == "csv":
        return csv(view(counted))
    rows = view(counted) if counted.by else tree_view(counted, whole_addresses=format == "markdown")
    return render(title(counted.table.model, counted.table.overrides), [rows, summary(counted)], format)


def view(counted: Count) -> View:
    """Return the rows of `--by tensor|layer|block|role`; of tensors by default."""
    if counted.by in ("layer", "block", "role"):
        return _groups(counted)
    chosen = zip(counted.table.tensors, counted.selection.chosen, counted.selection.params, strict=True)
    rows = [_tensor_row(counted, tensor, params) for tensor, is_chosen, params in chosen if is_chosen]
    columns = [Column(key, key) for key in ("name", "shape", "params")]
    columns += [Column("share", _share_title(counted)), Column("trainable", "trainable"), Column("tied_to", "tied to")]
    columns += [Column(key, key) for key in ("role", "layer", "type")]
    return View(tuple(columns), rows)


def tree_view(counted: Count, *, whole_addresses: bool) -> View:
    """Return the default view: the layers by address, with repeated components shown once."""
    found = tree(counted.table, counted.selection, counted.depth)

    def row(line: CountRow) -> Row:
        label = line.address if whole_addresses else "  " * line.level + line.label
        return {
            "address": label,
            "times": f"{line.times} x" if line.times > 1 else "",
            "type": line.type,
            "shapes": _shapes(line.shapes),
            "each": line.each if line.total != line.each else None,
            "params": line.total,
            "share": _share(counted, line.total),
            "notes": ", ".join(["frozen"] * line.frozen + ["tied"] * line.tied),
        }

    rows = [row(line) for line in found]
    columns = [
        Column("address", "address", "(the model)"),
        Column("times", ""),
        Column("type", "type"),
        Column("shapes", "tensors"),
        Column("each", "each"),
        Column("params", "selected" if counted.rules else "parameters"),
        Column("share", _share_title(counted)),
        Column("notes", ""),
    ]
    return View(tuple(columns), rows)


def summary(counted: Count) -> list[str]:
    """Describe the total, one fact per line."""
    model = counted.table
    params = model.params
    ties = [tensor for tensor in model.tensors if tensor.tied_to]
    names = f" ({len(model.tensors):,} names)" if ties else ""
    lines = [
        f"{params.total:,} parameters in {number(len(model.tensors) - len(ties), 'tensor')}{names}, each counted once",
        f"{params.trainable:,} trainable, {params.frozen:,} frozen",
    ]
    for role in ("head", "pooler"):
        found = "; ".join(map(_part, components_of_role(model, role)))
        lines.append(f"{role} included: {found}" if found else f"no tensor has the role `{role}`")
    lines += [f"tied: {tensor.name} = {tensor.tied_to} ({tensor.size:,} counted once)" for tensor in ties[:_MOST_TIES]]
    if len(ties) > _MOST_TIES:
        lines.append(f"tied: {len(ties) - _MOST_TIES:,} more names; use --by tensor to show all")
    if model.buffers:
        lines.append(f"not counted: {number(len(model.buffers), 'buffer')} (stored, not parameters)")
    if model.unchecked:
        lines.append("overridden: `expect` statements, which hold without overrides, were not checked")
    if counted.rules:
        total = counted.selection.total
        share = percent(total / params.total if params.total else 0.0)
        lines.append(f"{total:,} selected, {share} of the total, by {_rules(counted.rules)}")
    return lines


_MOST_TIES = 8


def _part(part: RoleComponent) -> str:
    inside = f" ({', '.join(part.members)})" if part.members else ""
    return f"{part.address}{inside}, {part.params:,}"


def _rules(rules: Sequence[Rule]) -> str:
    return " ".join(f"--{'select' if rule.include else 'exclude'} '{rule.pattern}'" for rule in rules)


def _groups(counted: Count) -> View:
    if counted.by == "role":
        groups = by_role(counted.table, counted.selection)
        columns = [Column("role", "role", "(none)")]
    else:
        by = by_layer if counted.by == "layer" else by_block
        groups = by(counted.table, counted.selection, counted.depth)
        columns = [Column("address", "address", "(the model)"), Column("type", "type")]
    rows = [{columns[0].key: group.name, **group._asdict(), "share": _share(counted, group.params)} for group in groups]
    columns += [Column(key, key) for key in ("tensors", "params", "trainable")]
    columns.append(Column("share", _share_title(counted)))
    return View(tuple(columns), rows)


def _tensor_row(counted: Count, tensor: Tensor, params: int) -> Row:
    return tensor._asdict() | {"params": params, "share": _share(counted, params)}


def _share(counted: Count, params: int) -> float:
    """Return the fraction of the total, or of the selected parameters."""
    whole = counted.selection.total if counted.rules else counted.table.params.total
    return params / whole if whole else 0.0


def _share_title(counted: Count) -> str:
    return "of selected" if counted.rules else "share"


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Format shapes as the sum that gives the count: `768 x 768 + 768`."""
    return " + ".join(map(shape, shapes)) if len(shapes) <= 4 else f"{len(shapes)} tensors"
