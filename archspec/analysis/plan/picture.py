"""A picture of a plan: a bar for each moment of a step, by category, against the memory of the device."""

from __future__ import annotations

from archspec.analysis.plan.plan import Plan, PlanRow
from archspec.analysis.plan.report import devices, verdict
from archspec.core.reports.text import size
from archspec.drawing.svg.elements import Canvas, number
from archspec.drawing.svg.svg import document
from archspec.drawing.svg.theme import THEMES, Fill, Theme

WIDTH, LEFT, RIGHT = 760.0, 24.0, 24.0
TOP, BAR, PITCH, LINE = 76.0, 34.0, 66.0, 20.0
MIN_SHARE = 1 / 2000
"""The least share of the width that is drawn."""


def svg(plan: Plan, theme: str = "light") -> str:
    """Return a plan as SVG, "light" or "dark". Hovering over a part shows its bytes."""
    colors = THEMES[theme]
    moments = [moment for moment in plan.moments if moment.rows] or [plan.peak]
    rows = [*plan.states, *(row for moment in moments for row in moment.rows)]
    longest = max(plan.device.memory, plan.total)
    fills = _fills(colors, list(dict.fromkeys(row.category for row in rows if row.bytes > MIN_SHARE * longest)))
    scale = (WIDTH - LEFT - RIGHT) / longest
    title = f"{plan.model}, training on {devices(plan)}"
    parts = [_text(LEFT, 28, title, colors.ink, 15)]
    parts.append(_text(LEFT, 48, verdict(plan), colors.dim))
    y = TOP
    for moment in moments:
        parts.append(_text(LEFT, y - 6, f"{moment.name}: {size(plan.state_bytes + moment.total)}", colors.ink))
        parts += _bar((*plan.states, *moment.rows), fills, scale, y)
        y += PITCH
    limit = LEFT + plan.device.memory * scale
    bottom = y - PITCH + BAR + 8
    ends = f'x1="{number(limit)}" x2="{number(limit)}" y1="{number(TOP - 4)}" y2="{number(bottom)}"'
    parts.append(f'<line {ends} stroke="{colors.hot}" stroke-width="2" stroke-dasharray="5 3"/>')
    label = f"{plan.device.name}: {size(plan.device.memory)}"
    parts.append(_text(limit, bottom + 14, label, colors.hot, anchor="end"))
    parts += _legend(rows, fills, colors, bottom + 40)
    height = bottom + 40 + LINE * -(-len(fills) // 2) + 12
    return document(title, WIDTH, height, colors, "".join(parts))


def _fills(colors: Theme, categories: list[str]) -> dict[str, Fill]:
    palette = [*colors.roles.values(), *colors.others]
    palette += [Fill(fill.line, fill.fill) for fill in palette]
    return {category: palette[i % len(palette)] for i, category in enumerate(categories)}


def _bar(rows: tuple[PlanRow, ...], fills: dict[str, Fill], scale: float, y: float) -> list[str]:
    parts: list[str] = []
    x = LEFT
    for row in rows:
        if row.category not in fills:
            continue
        width, fill = row.bytes * scale, fills[row.category]
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(BAR)}"'
        tip = f"<title>{Canvas.clean(f'{row.category}: {row.bytes:,} bytes, {row.kind}')}</title>"
        parts.append(f'<rect {place} fill="{fill.fill}" stroke="{fill.line}">{tip}</rect>')
        x += width
    return parts


def _legend(rows: list[PlanRow], fills: dict[str, Fill], colors: Theme, top: float) -> list[str]:
    parts: list[str] = []
    most = {category: max(row.bytes for row in rows if row.category == category) for category in fills}
    for i, (category, fill) in enumerate(fills.items()):
        x, y = LEFT + (WIDTH - LEFT) / 2 * (i % 2), top + LINE * (i // 2)
        place = f'x="{number(x)}" y="{number(y - 11)}" width="14" height="14"'
        parts.append(f'<rect {place} fill="{fill.fill}" stroke="{fill.line}"/>')
        parts.append(_text(x + 22, y, f"{category}: {size(most[category]) or f'{most[category]} B'}", colors.ink))
    return parts


def _text(x: float, y: float, text: str, color: str, size: int = 12, anchor: str = "start") -> str:
    attributes = f'x="{number(x)}" y="{number(y)}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
    return f"<text {attributes}>{Canvas.clean(text)}</text>"
