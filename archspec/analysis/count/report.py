"""The report of `archspec count`: the tree or a flat table, the totals below it, and the rows of csv."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.analysis.count.count import Count
from archspec.analysis.count.groups import (
    RoleComponent,
    count_by_block,
    count_by_layer,
    count_by_role,
    find_role_components,
)
from archspec.analysis.count.select import SelectionRule, describe_shared_tensors
from archspec.analysis.count.tree import CountRow, count_tree
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, percent, shape
from archspec.core.reports.text import active, beside, number, parameters, title
from archspec.ir.table import Tensor


def rows(counted: Count) -> View:
    """Return the rows of `--by tensor|layer|block|role`; of tensors by default."""
    if counted.by in ("layer", "block", "role"):
        return _group_view(counted)
    chosen = zip(counted.table.tensors, counted.selection.chosen, counted.selection.params, strict=True)
    shown_rows = [_tensor_row(counted, tensor, params) for tensor, is_chosen, params in chosen if is_chosen]
    columns = [
        Column("name", "name", fit="shorten"),
        Column("shape", "shape", drop=5, style="dim"),
        Column("params", "params"),
        Column("share", _share_title(counted), drop=4, style="dim"),
        Column("trainable", "trainable", drop=3),
        Column("tied_to", "tied to", fit="shorten", drop=6),
        Column("role", "role", fit="shorten", drop=7, style="role"),
        Column("layer", "layer", fit="shorten", drop=1),
        Column("type", "type", fit="shorten", drop=2),
    ]
    return View(tuple(columns), shown_rows)


def _group_view(counted: Count) -> View:
    if counted.by == "role":
        groups = count_by_role(counted.table, counted.selection)
        columns = [Column("role", "role", "(none)", style="role")]
    else:
        count_by_module = count_by_layer if counted.by == "layer" else count_by_block
        groups = count_by_module(counted.table, counted.selection, counted.depth)
        columns = [
            Column("address", "address", "(the model)", fit="shorten"),
            Column("type", "type", fit="shorten", drop=1),
        ]
    group_rows = [
        {columns[0].key: group.name, **group._asdict(), "share": _share(counted, group.params)} for group in groups
    ]
    columns += [Column("tensors", "tensors", drop=3), Column("params", "params"), Column("trainable", "trainable")]
    columns.append(Column("share", _share_title(counted), drop=2, style="dim"))
    return View(tuple(columns), group_rows)


def _tensor_row(counted: Count, tensor: Tensor, params: int) -> Row:
    return tensor._asdict() | {"params": params, "share": _share(counted, params)}


def _share(counted: Count, params: int) -> float:
    """Return the fraction of the total parameters, or of the selected ones if there are rules."""
    total = counted.selection.total if counted.rules else counted.table.params.total
    return params / total if total else 0.0


def _share_title(counted: Count) -> str:
    return "of selected" if counted.rules else "share"


def page(counted: Count, format: str = "table") -> Page:
    """Return the report. At depth 0, it contains only the totals."""
    blocks: list[Block] = [summary(counted)]
    if counted.by:
        blocks.insert(0, rows(counted))
    elif counted.depth != 0:
        blocks.insert(0, _tree_view(counted, full_addresses=format == "markdown"))
    return Page(title(counted.table.model, counted.table.overrides), blocks)


def _tree_view(counted: Count, *, full_addresses: bool) -> View:
    """Return the default view: the layers by address, with repeated components shown once."""
    tree_rows = count_tree(counted.table, counted.selection, counted.depth)

    def row(line: CountRow) -> Row:
        label = line.address if full_addresses else "  " * line.level + line.label
        return {
            "address": label,
            "times": f"{line.times} x" if line.times > 1 else "",
            "type": line.type,
            "shapes": _format_shapes(line.shapes),
            "each": line.each if line.total != line.each else None,
            "params": line.total,
            "share": _share(counted, line.total),
            "notes": ", ".join(["frozen"] * line.frozen + ["tied"] * line.tied),
            "role": line.role,
        }

    columns = [
        Column("address", "address", "(the model)", fit="shorten"),
        Column("times", ""),
        Column("type", "type", fit="shorten", drop=3, style="role"),
        Column("shapes", "tensors", drop=1, style="dim"),
        Column("each", "each", drop=2),
        Column("params", "selected" if counted.rules else "parameters"),
        Column("share", _share_title(counted), drop=4, style="dim"),
        Column("notes", "", style="note"),
    ]
    return View(tuple(columns), [row(line) for line in tree_rows])


def summary(counted: Count) -> list[str]:
    """Describe the total, one fact per line."""
    model = counted.table
    params = model.params
    has_ties = any(tensor.tied_to for tensor in model.tensors.distinct)
    ties = [tensor for tensor in model.tensors if tensor.tied_to] if has_ties else []
    names = f" ({len(model.tensors):,} names)" if ties else ""
    tensors = f"{number(len(model.tensors) - len(ties), 'tensor')}{names}, each counted once"
    lines = [f"{params.total:,} parameters{beside(parameters(params.total))} in {tensors}"]
    if params.frozen:
        lines.append(f"{params.trainable:,} trainable, {params.frozen:,} frozen")
    if model.active is not None:
        lines.append(active(*model.active[:3]))
    for role in ("head", "pooler"):
        components = "; ".join(map(_format_component, find_role_components(model, role)))
        lines += [f"{role} included: {components}"] if components else []
    lines += [f"tied: {tensor.name} = {tensor.tied_to} ({tensor.size:,} counted once)" for tensor in ties[:_MAX_TIES]]
    if len(ties) > _MAX_TIES:
        lines.append(f"tied: {number(len(ties) - _MAX_TIES, 'more name')}; use --by tensor to show all")
    if model.buffers:
        lines.append(f"not counted: {number(len(model.buffers), 'buffer')} (stored, not parameters)")
    lines += model.notes
    if model.unchecked:
        lines.append("overridden: `expect` statements, which hold without overrides, were not checked")
    if counted.rules:
        total = counted.selection.total
        share = percent(total / params.total if params.total else 0.0)
        lines.append(
            f"{total:,} selected{beside(parameters(total))}, {share} of the total, by {_format_rules(counted.rules)}"
        )
        lines += describe_shared_tensors(counted.selection)
    return lines


_MAX_TIES = 8


def _format_component(part: RoleComponent) -> str:
    members = f" ({', '.join(part.members)})" if part.members else ""
    return f"{part.address}{members}, {part.params:,}"


def _format_rules(rules: Sequence[SelectionRule]) -> str:
    return " ".join(f"--{'select' if rule.include else 'exclude'} '{rule.pattern}'" for rule in rules)


def _format_shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Format shapes as the sum that equals the count: `768 x 768 + 768`."""
    return " + ".join(map(shape, shapes)) if len(shapes) <= 4 else f"{len(shapes)} tensors"
