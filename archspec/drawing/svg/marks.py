"""Marks of differences between models: a sign and a color for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from archspec.core.record import Record
from archspec.drawing.layout.layout import IsOpen
from archspec.drawing.plan.metrics import width
from archspec.drawing.plan.plan import Plan
from archspec.drawing.svg.elements import Canvas, number
from archspec.drawing.svg.theme import DARK, Fill, Theme

Kind: TypeAlias = Literal["added", "removed", "moved", "changed"]

RADIUS = 6.5

_SIGNS: Mapping[Kind, str] = {
    "added": "M-3.5 0h7M0 -3.5v7",
    "removed": "M-3.5 0h7",
    "moved": "M0 -4v8M-2.2 -1.8L0 -4L2.2 -1.8M-2.2 1.8L0 4L2.2 1.8",
    "changed": "M-3.5 -1.5h7M-3.5 1.5h7M2 -4L-2 4",
}
"""The signs as paths around their middle: not every font has them."""

_LIGHT: Mapping[Kind, Fill] = {
    "added": Fill("#ffffff", "#156b34"),
    "removed": Fill("#ffffff", "#b3261e"),
    "moved": Fill("#ffffff", "#6a35b0"),
    "changed": Fill("#ffffff", "#8a4b00"),
}
_DARK: Mapping[Kind, Fill] = {
    "added": Fill("#0b1a10", "#6fdc93"),
    "removed": Fill("#240806", "#ff8f85"),
    "moved": Fill("#170a2b", "#c7a4ff"),
    "changed": Fill("#231300", "#ffb454"),
}


class Mark(Record):
    """A difference at a node: its kind, and a description shown as a tooltip."""

    kind: Kind
    text: str = ""


def mark_colors(theme: Theme) -> Mapping[Kind, Fill]:
    """Return the colors of marks: `fill` of the sign, and `line` of what is around it."""
    return _DARK if theme is DARK else _LIGHT


def sign(kind: Kind, x: float, y: float, theme: Theme) -> str:
    """Return the sign of a mark around a point."""
    color = mark_colors(theme)[kind]
    return (
        f'<g transform="translate({number(x)} {number(y)})"><circle r="{number(RADIUS)}" fill="{color.line}" '
        f'stroke="{theme.background}" stroke-width="1"/><path d="{_SIGNS[kind]}" fill="none" stroke="{color.fill}" '
        'stroke-width="1.4" stroke-linecap="round"/></g>'
    )


def shown_marks(plan: Plan, is_open: IsOpen, marks: Mapping[int, Mark]) -> dict[int, Mark]:
    """Return the marks of nodes that are drawn; a closed node that contains marked ones is marked as changed."""
    found: dict[int, Mark] = {}
    for id, mark in marks.items():
        shown = outermost_closed(plan, is_open, id)
        if shown == id:
            found[id] = mark
        elif shown not in marks:
            found.setdefault(shown, Mark("changed", "something inside differs"))
    return found


def outermost_closed(plan: Plan, is_open: IsOpen, id: int) -> int:
    """Return the node that is drawn for a node: itself, or the outermost closed one around it."""
    shown, node = id, plan.nodes[id]
    while node.parent is not None:
        node = plan.nodes[node.parent]
        if node.kind not in ("root", "group") and not is_open(node):
            shown = node.id
    return shown


def draw_key(theme: Theme, entries: Sequence[tuple[Kind | None, str]], most: float) -> tuple[str, float]:
    """Return the meaning of the marks within a width, and its height; an entry without a kind is text in italics."""
    canvas, parts = Canvas(), list[str]()
    x = y = 0.0
    for kind, text in entries:
        room = width(text, 10.0)
        step = room + (40.0 if kind else 24.0)
        if x and x + step - 22.0 > most:
            x, y = 0.0, y + 19.0
        if kind:
            parts.append(sign(kind, x + 7, y + 6, theme))
        parts.append(canvas.text(x + (20 if kind else 0), y + 9.5, text, theme.dim, 10.0, italic=kind is None))
        x += step
    return "".join(parts), y + 18.0
