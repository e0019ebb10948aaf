"""The title and the legend of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.reports.tables import percent
from archspec.drawing.plan.metrics import shorten_text, width
from archspec.drawing.plan.plan import Plan
from archspec.drawing.svg.elements import Canvas, number
from archspec.drawing.svg.paint import TITLES, Paint
from archspec.drawing.svg.theme import Fill, Theme, heat_color

STREAMS = {"skip": "residual", "side": "mask, positions", "cross": "other stream"}
"""The names of lines that are not the main ones."""

_ROW = 18.0
_STEPS = 24


def draw_title(plan: Plan, theme: Theme, name: str = "") -> tuple[str, float]:
    """Return the title with the parameter counts, and its width. It is the model's name, unless there is another."""
    canvas = Canvas()
    name = name or shorten_text(plan.model, 17.0, 600.0, True)
    counts = f"{plan.total:,} parameters" + (f", {plan.frozen:,} frozen" if plan.frozen else "")
    texts = canvas.text(0, 28, name, theme.ink, 17.0, "700") + canvas.text(0, 46, counts, theme.dim, 11.0)
    return texts, max(width(name, 17.0, True), width(counts, 11.0))


def draw_legend(plan: Plan, paint: Paint, streams: Sequence[str], has_ties: bool, most: float) -> tuple[str, float]:
    """Return the legend within a width, and its height."""
    parts: list[str] = []
    y = 0.0
    y = _roles(plan, paint, most, parts) if paint.is_by_role else _scale(paint, parts)
    entries = [(stream, STREAMS[stream]) for stream in STREAMS if stream in streams]
    entries += [("tie", "same weights")] if has_ties else []
    entries += [("frozen", "frozen")] if plan.frozen else []
    return "".join(parts) + _lines(paint.theme, entries, y), y + (_ROW if entries else 0.0)


def _roles(plan: Plan, paint: Paint, most: float, parts: list[str]) -> float:
    theme, canvas = paint.theme, Canvas()
    counts = {share.role: share.params for share in plan.roles}
    cells: list[tuple[str | None, Fill, str]] = [
        (role, style.fill, style.letter) for role, style in paint.styles.items()
    ]
    if None in counts:
        cells.append((None, theme.plain, ""))
    texts: list[tuple[str, str, float]] = []
    for role, _, _ in cells:
        name = shorten_text("no role" if role is None else role.replace("_", "-"), 10.0, 160.0)
        share = role_share(counts[role], plan.total)
        texts.append((name, share, width(name, 10.0)))
    column = max([room + width(share, 10.0, True) for _, share, room in texts], default=0.0) + 42.0
    per_row = max(1, min(len(cells), int((most + 12.0) // column)))
    for i, ((_, fill, letter), (name, share, room)) in enumerate(zip(cells, texts, strict=True)):
        x, y = i % per_row * column, i // per_row * _ROW
        parts.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="13" height="13" rx="3" fill="{fill.fill}" '
            f'stroke="{fill.line}"/>'
        )
        if letter:
            parts.append(canvas.text(x + 6.5, y + 9.6, letter, theme.dim, 8.0, "700", anchor="middle"))
        parts.append(canvas.text(x + 19, y + 10, name, theme.ink, 10.0))
        parts.append(canvas.text(x + 19 + room + 6, y + 10, share, theme.dim, 10.0, "600"))
    return _ROW * -(-len(cells) // per_row) + 4.0


def _scale(paint: Paint, parts: list[str]) -> float:
    """Draw the scale of a share from nothing to the most of one box."""
    theme, canvas = paint.theme, Canvas()
    title = TITLES[paint.coloring]
    if paint.coloring != "params" and paint.sizes:
        title += f" at {', '.join(f'{name} = {size}' for name, size in paint.sizes.items())}"
    end = f"{100 * paint.most:.1f} %"
    parts.append(canvas.text(0, 10, title, theme.ink, 10.0))
    for i in range(_STEPS):
        fill = heat_color(theme, i / (_STEPS - 1))
        parts.append(f'<rect x="{number(16 + i * 6)}" y="16" width="6.4" height="11" fill="{fill}"/>')
    parts.append(canvas.text(0, 25, "0", theme.dim, 10.0))
    parts.append(canvas.text(16 + _STEPS * 6 + 7, 25, end, theme.dim, 10.0))
    return 2 * _ROW + 4.0


def _lines(theme: Theme, entries: Sequence[tuple[str, str]], y: float) -> str:
    canvas, parts, x = Canvas(), list[str](), 0.0
    for key, name in entries:
        room = width(name, 10.0)
        if key == "frozen":
            parts.append(Canvas.flake(x + 8, y + 6, theme.dim))
        else:
            color = {"skip": theme.skip, "side": theme.side, "cross": theme.cross, "tie": theme.tie}[key]
            dash = ' stroke-dasharray="2 3.5" stroke-linecap="round"' if key == "tie" else ""
            stroke = 1.0 if key == "side" else 1.5
            parts.append(
                f'<path d="M{number(x)} {number(y + 6)}h16" stroke="{color}" stroke-width="{stroke}" '
                f'fill="none"{dash}/>'
            )
        parts.append(canvas.text(x + 22, y + 9.5, name, theme.dim, 10.0))
        x += room + 40.0
    return "".join(parts)


def role_share(part: int, whole: int) -> str:
    """Return a share as `count` shows it; that of parameters that are all counted elsewhere is `tied`."""
    return percent(part / whole) if part else "tied"
