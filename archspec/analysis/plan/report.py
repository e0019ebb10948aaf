"""The report of `archspec plan`: states, what is held at the peak, and the total."""

from __future__ import annotations

from archspec.analysis.plan.plan import Plan, PlanRow
from archspec.core.reports.documents import Document
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import beside, number, size


def contents(plan: Plan) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "model": plan.model,
        "device": plan.device._asdict(),
        "settings": plan.settings,
        "states": [row._asdict() for row in plan.states],
        "moments": [
            {"name": moment.name, "total": moment.total, "rows": [row._asdict() for row in moment.rows]}
            for moment in plan.moments
        ],
        "state_bytes": plan.state_bytes,
        "smallest_state_bytes": plan.smallest,
        "peak": plan.peak.name,
        "total": plan.total,
        "kind": plan.kind,
        "exact": plan.exact,
        "fits": plan.fits,
        "groups": [group._asdict() | {"total": group.total} for group in plan.groups],
        "blocks": list(plan.blocks),
        "stages": [stage._asdict() for stage in plan.stages],
        "uncounted": list(plan.uncounted),
    }


def rows(plan: Plan) -> View:
    """Return the rows of the csv output: one for each category and moment."""
    listed = [("states", row) for row in plan.states]
    listed += [(moment.name, row) for moment in plan.moments for row in moment.rows]
    return View(columns("when", *PlanRow._fields), [{"when": when, **row._asdict()} for when, row in listed])


def page(plan: Plan, format: str = "table") -> Page:
    """Return the report."""
    heading = f"{plan.model}, training on {devices(plan)}: {verdict(plan)}"
    blocks: list[Block] = [_table(plan)]
    if plan.by:
        blocks.append(_group_view(plan))
    return Page(heading, [*blocks, _summary(plan)])


def devices(plan: Plan) -> str:
    """Return the number and the name of the devices, and how the model is divided among them."""
    count = plan.settings["count"]
    parts = [f", {name} {plan.settings[name]}" for name in ("tensor", "expert", "pipeline") if plan.settings[name] != 1]
    return (plan.device.name if count == 1 else f"{count} x {plan.device.name}") + "".join(parts)


def verdict(plan: Plan) -> str:
    """Return whether the plan fits, with its figures."""
    memory = size(plan.device.memory)
    if plan.fits is False:
        return f"does not fit, {size(plan.exact)} of {memory} at least"
    if plan.fits:
        return f"fits, {_bytes(plan.total)} of {memory}, {plan.kind}"
    if plan.total > plan.device.memory:
        return f"may not fit, {_bytes(plan.total)} of {memory}, {plan.kind}"
    return f"states take {_bytes(plan.state_bytes)} of {memory}; activations are not counted"


def _bytes(count: int) -> str:
    return size(count) or f"{count} B"


def _table(plan: Plan) -> View:
    peak = plan.peak
    table_rows = [_row(row) for row in (*plan.states, *peak.rows)]
    when = f", {peak.name}" if peak.rows else ""
    table_rows.append(_row(PlanRow(f"total{when}", plan.total, plan.kind)))
    title = "bytes of each device"
    if plan.state_bytes != plan.smallest:
        title = "bytes of the device with the most"
    shown = (
        Column("what", title, fit="wrap"),
        Column("bytes", "bytes"),
        Column("size", "", style="unit"),
        Column("kind", ""),
        Column("note", "", style="note", fit="wrap", drop=1),
    )
    return View(shown, table_rows)


def _row(row: PlanRow) -> Row:
    return {"what": row.category, "bytes": row.bytes, "size": size(row.bytes), "kind": row.kind, "note": row.note}


def _group_view(plan: Plan) -> View:
    group_rows: list[Row] = [
        {
            **group._asdict(),
            "master": group.master or None,
            "total": group.total,
            "share": group.total / max(plan.state_bytes, 1),
        }
        for group in plan.groups
    ]
    for row, group in zip(group_rows, plan.groups, strict=True):
        row["times"] = f"{group.times:,} x" if group.times > 1 else ""
    shown = (
        Column("name", "states of", fit="shorten"),
        Column("times", ""),
        Column("weights", "weights", drop=1),
        Column("gradients", "gradients", drop=1),
        Column("master", "master weights", drop=1),
        Column("optimizer", "optimizer", drop=1),
        Column("total", "total"),
        Column("share", "share", style="dim"),
    )
    return View(shown, group_rows)


def _summary(plan: Plan) -> list[str]:
    lines = [
        f"{moment.name}: {plan.state_bytes + moment.total:,} bytes{beside(size(plan.state_bytes + moment.total))}"
        for moment in plan.moments
        if moment != plan.peak and moment.rows
    ]
    if plan.smallest not in (None, plan.state_bytes):
        lines.append(
            f"the device with the least holds {plan.smallest:,} bytes of states, and this one {plan.state_bytes:,}"
        )
    for i, stage in enumerate(plan.stages):
        what = f"stage {i}: {number(stage.blocks, 'block')} from {stage.first}, microbatches alive: {stage.alive}"
        lines.append(f"{what}: {stage.total:,} bytes{beside(size(stage.total))}")
    if plan.blocks:
        lines.append(f"blocks: {', '.join(plan.blocks)}")
    return [*lines, *(f"not counted: {text}" for text in plan.uncounted)]
