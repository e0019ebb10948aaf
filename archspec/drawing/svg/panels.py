"""Pictures of several models side by side: corresponding nodes at the same height, differences marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from archspec.core.record import Record
from archspec.drawing.layout.frames import Frame
from archspec.drawing.layout.layout import IsOpen, layout
from archspec.drawing.plan.correspondence import Correspondence
from archspec.drawing.plan.plan import Plan
from archspec.drawing.svg.elements import number
from archspec.drawing.svg.marks import Kind, Mark, draw_key, shown_marks
from archspec.drawing.svg.paint import Paint
from archspec.drawing.svg.svg import MARGIN, TITLE_ROOM, document, draw_model
from archspec.drawing.svg.theme import Theme, role_styles

MODEL_GAP = 40.0
"""Distance between two models."""

MIN_PANEL_WIDTH = 260.0
MAX_LEVEL_DISTANCE = 240.0
"""Nodes that are farther apart than this are not made level."""

MAX_ROUNDS = 40
"""Rows are moved down until corresponding ones are level; after this number of rounds they stay where they are."""


class Panel(Record):
    """A model in a picture of several: its name, plan, which nodes are open, and the marks of nodes by id."""

    name: str
    plan: Plan
    is_open: IsOpen
    marks: Mapping[int, Mark]


def side_by_side(
    panels: Sequence[Panel], found: Correspondence, key: Sequence[tuple[Kind | None, str]], theme: Theme
) -> str:
    """Return the picture of several models, with a key to the marks at its foot."""
    roots = align_rows(panels, found)
    names = list(dict.fromkeys(share.role for panel in panels for share in panel.plan.roles if share.role is not None))
    styles = role_styles(theme, names)
    tallest = max(root.h for root in roots)
    parts: list[str] = []
    kinds: set[Kind | None] = {None}
    x, foot = MARGIN, 0.0
    for panel, root in zip(panels, roots, strict=True):
        plan = panel.plan
        paint = Paint(plan, theme)
        paint.styles = {role: style for role, style in styles.items() if role in paint.styles}
        marks = shown_marks(plan, panel.is_open, panel.marks)
        kinds.update(mark.kind for mark in marks.values())
        width, height, model = draw_model(
            plan, paint, root, x, tallest, name=panel.name, marks=marks, min_width=MIN_PANEL_WIDTH
        )
        parts.append(model)
        x += width + MODEL_GAP
        foot = max(foot, height)
    w = x - MODEL_GAP + MARGIN
    y = TITLE_ROOM + tallest + 28.0 + foot + 14.0
    used = [entry for entry in key if entry[0] in kinds] if len(kinds) > 1 else [(None, "no differences")]
    meaning, height = draw_key(theme, used, w - 2 * MARGIN)
    parts.append(f'<g transform="translate({number(MARGIN)} {number(y)})">{meaning}</g>')
    title = ", ".join(panel.name for panel in panels)
    return document(title, w, y + height + 12.0, theme, "".join(parts))


def align_rows(panels: Sequence[Panel], found: Correspondence) -> list[Frame]:
    """Lay out models so that corresponding nodes are vertically aligned.

    Nodes in a different order are not moved past each other: those with the most parameters are level.
    """
    floors: list[dict[int, float]] = [{} for _ in panels]
    roots: list[Frame] = []
    for _ in range(MAX_ROUNDS):
        roots = [layout(panel.plan, panel.is_open, own) for panel, own in zip(panels, floors, strict=True)]
        if not _lower_rows(found, roots, floors):
            break
    return roots


def _lower_rows(found: Correspondence, roots: Sequence[Frame], floors: Sequence[dict[int, float]]) -> bool:
    """Move the rows down that are above corresponding ones; return whether there are any."""
    waiting: list[dict[int, Frame]] = [dict(enumerate(roots))]
    changed = False
    while waiting:
        groups = _groups(found, waiting.pop())
        for group in _in_order(groups):
            lowest = max(item.y for item in group.values())
            for own, item in group.items():
                if lowest - MAX_LEVEL_DISTANCE < item.y < lowest - 0.5:
                    floors[own][item.frame.node.id] = lowest - item.outer
                    changed = True
        opened = [{own: item.frame for own, item in group.items() if item.frame.is_open} for group in groups]
        waiting += [frames for frames in opened if len(frames) > 1]
    return changed


class _Item(Record):
    """A box in a frame, or in frames inside it that only group: its y, theirs (`outer`), and its row in each."""

    frame: Frame
    y: float
    outer: float
    rows: tuple[int, ...]


_Group: TypeAlias = dict[int, _Item]
"""Corresponding boxes by model."""


def _groups(found: Correspondence, frames: Mapping[int, Frame]) -> list[_Group]:
    """Return the corresponding boxes in the rows of corresponding frames, those with the most parameters first."""
    groups: dict[Hashable, _Group] = {}
    for own, frame in frames.items():
        times: Counter[Hashable] = Counter()
        for key, item in _items(found, own, frame, 0.0, ()):
            groups.setdefault((key, times[key]), {})[own] = item
            times[key] += 1
    return sorted(groups.values(), key=lambda group: -max(item.frame.node.params for item in group.values()))


def _items(
    found: Correspondence, own: int, frame: Frame, outer: float, above: tuple[int, ...]
) -> Iterator[tuple[Hashable, _Item]]:
    """Yield the boxes in the rows of a frame with their keys; those in frames without a key as if they were in it."""
    assert frame.node.contents is not None
    rows = {id: row for row, entries in enumerate(frame.node.contents.rows) for id in entries}
    for inner, _, y in frame.items:
        row = rows.get(inner.node.id)
        if row is None:
            continue
        key = found.key(own, inner.node.id)
        if key is not None:
            yield key, _Item(inner, outer + y, outer, (*above, row))
        elif inner.is_open:
            yield from _items(found, own, inner, outer + y, (*above, row))


def _in_order(groups: Sequence[_Group]) -> list[_Group]:
    """Return the first groups as far as they are in different rows, in the same order in all models."""
    taken: list[_Group] = []
    for group in groups:
        if all(_is_ordered(group, other) for other in taken):
            taken.append(group)
    return taken


def _is_ordered(one: _Group, other: _Group) -> bool:
    rows = [(one[own].rows, other[own].rows) for own in one.keys() & other.keys()]
    return all(ours < theirs for ours, theirs in rows) or all(ours > theirs for ours, theirs in rows)
