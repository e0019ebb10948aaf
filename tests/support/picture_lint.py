"""Checks of the geometry of a picture: what a reader would call a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from archspec.drawing.layout.frames import Frame, Path
from archspec.drawing.layout.ties import DrawnShapes, TieLine
from archspec.drawing.plan.plan import Contents, Plan

SLACK = 1.0


class Box(NamedTuple):
    """A box in the picture, and the ids of the nodes around it."""

    frame: Frame
    x: float
    y: float
    around: tuple[int, ...]


class Line(NamedTuple):
    """A line in the picture: the block and the value that it belongs to."""

    block: int
    path: Path
    points: tuple[tuple[float, float], ...]

    @property
    def value(self) -> tuple[int, int]:
        return self.block, self.path.value


def boxes_of(frame: Frame, x: float = 0.0, y: float = 0.0, around: tuple[int, ...] = ()) -> Iterator[Box]:
    for inner, dx, dy in frame.items:
        box = Box(inner, x + dx, y + dy, around)
        yield box
        if inner.is_open:
            yield from boxes_of(inner, box.x, box.y, (*around, inner.node.id))


def lines_of(frame: Frame, x: float = 0.0, y: float = 0.0) -> Iterator[Line]:
    for path in frame.paths:
        yield Line(frame.node.id, path, tuple((x + a, y + b) for a, b in path.points))
    for inner, dx, dy in frame.items:
        if inner.is_open:
            yield from lines_of(inner, x + dx, y + dy)


def faults(plan: Plan, root: Frame) -> list[str]:
    """Return the faults of a picture."""
    boxes, lines = [*boxes_of(root)], [*lines_of(root)]
    return [
        *_overlaps(root),
        *_outside(boxes),
        *_diagonals(lines),
        *_through(boxes, lines),
        *_shared(lines),
        *_off_axis(root),
        *_unordered(plan, root),
        *_unconnected(plan, root),
        *_begun_nowhere(lines),
    ]


def _overlaps(frame: Frame) -> Iterator[str]:
    items = frame.items
    for i, (one, x, y) in enumerate(items):
        for other, u, v in items[:i]:
            if x < u + other.w - SLACK and u < x + one.w - SLACK and y < v + other.h - SLACK and v < y + one.h - SLACK:
                yield f"{one.node.name} overlaps {other.node.name}"
    for inner, _, _ in items:
        if inner.is_open:
            yield from _overlaps(inner)


def _outside(boxes: list[Box]) -> Iterator[str]:
    frames = {box.frame.node.id: box for box in boxes}
    for box in boxes:
        for id in box.around[-1:]:
            outer = frames[id]
            if box.x < outer.x - 0.1 or box.y < outer.y - 0.1:
                yield f"{box.frame.node.name} leaves {outer.frame.node.name}"
            elif box.x + box.frame.w > outer.x + outer.frame.w + 0.1:
                yield f"{box.frame.node.name} leaves {outer.frame.node.name} on the right"
            elif box.y + box.frame.h > outer.y + outer.frame.h + 0.1:
                yield f"{box.frame.node.name} leaves {outer.frame.node.name} at the bottom"


def _diagonals(lines: list[Line]) -> Iterator[str]:
    for line in lines:
        for a, b in zip(line.points, line.points[1:], strict=False):
            if abs(a[0] - b[0]) > 0.6 and abs(a[1] - b[1]) > 0.6:
                yield f"a line of {line.value} is diagonal: {a} {b}"


def _segments(line: Line) -> Iterator[tuple[float, float, float, float]]:
    for a, b in zip(line.points, line.points[1:], strict=False):
        yield min(a[0], b[0]), max(a[0], b[0]), min(a[1], b[1]), max(a[1], b[1])


def _through(boxes: list[Box], lines: list[Line]) -> Iterator[str]:
    for line in lines:
        for x0, x1, y0, y1 in _segments(line):
            for box in boxes:
                w, h = box.frame.w, box.frame.h
                if not (x0 < box.x + w - 2 and x1 > box.x + 2 and y0 < box.y + h - 2 and y1 > box.y + 2):
                    continue
                if box.frame.node.id in (line.path.source, line.path.target, line.block):
                    continue
                if line.block not in _ids_inside(box) and box.frame.node.kind != "group":
                    yield f"a line of {line.value} to {line.path.target} goes through {box.frame.node.name}"


def _ids_inside(box: Box) -> set[int]:
    return {inner.frame.node.id for inner in boxes_of(box.frame)} if box.frame.is_open else set()


def _shared(lines: list[Line]) -> Iterator[str]:
    found = [(line, segment) for line in lines for segment in _segments(line)]
    levels: dict[tuple[bool, int], list[tuple[Line, tuple[float, float, float, float]]]] = {}
    for line, segment in found:
        is_level = segment[3] - segment[2] < 0.6
        at = segment[2] if is_level else segment[0]
        for cell in {int(at // 4), int((at + 2) // 4)}:
            levels.setdefault((is_level, cell), []).append((line, segment))
    seen: set[tuple[object, ...]] = set()
    for (is_level, _), group in levels.items():
        for i, (one, a) in enumerate(group):
            for other, b in group[:i]:
                if one.value == other.value:
                    continue
                at, lo, hi = (2, 0, 1) if is_level else (0, 2, 3)
                if abs(a[at] - b[at]) < 1.2 and min(a[hi], b[hi]) - max(a[lo], b[lo]) > 3.0:
                    key = tuple(sorted([one.value, other.value]))
                    if key not in seen:
                        seen.add(key)
                        yield f"lines of {one.value} and {other.value} share a segment at {a} {b}"


def _off_axis(frame: Frame) -> Iterator[str]:
    node = frame.node
    assert node.contents is not None
    if node.kind not in ("root", "group"):
        places = {inner.node.id: x + inner.axis for inner, x, _ in frame.items}
        for row in node.contents.rows:
            if len(row) == 1 and isinstance(row[0], int) and abs(places[row[0]] - frame.axis) > 0.5:
                yield f"row {row} of {node.name} is not on the axis"
        if node.main is not None and abs(frame.tops[node.main] - frame.axis) > 0.5:
            yield f"the main input of {node.name} is not on the axis"
    for inner, _, _ in frame.items:
        if inner.is_open:
            yield from _off_axis(inner)


def _unordered(plan: Plan, frame: Frame) -> Iterator[str]:
    """Layers side by side with the same input, whose results meet at different inputs, stand in program order.

    Where they meet in something else than a sum or product, they may also stand in the order of its inputs.
    """
    node = frame.node
    assert node.contents is not None
    places = {inner.node.id: x for inner, x, _ in frame.items}
    for value in node.contents.values:
        layers = {use.to for use in value.uses if use.to is not None and plan.nodes[use.to].kind == "layer"}
        for row in node.contents.rows:
            meeting: dict[int, dict[int, int]] = {}
            for id in node.contents.children:
                if id in layers and id in row:
                    for target, port in _ways_down(node.contents, id):
                        meeting.setdefault(target, {})[id] = port
            for target, ports in meeting.items():
                orders = [[*ports]]
                if plan.nodes[target].form != "circle":
                    orders.append(sorted(ports, key=lambda id: ports[id]))
                if len({*ports.values()}) > 1 and sorted(ports, key=lambda id: places[id]) not in orders:
                    yield f"{[plan.nodes[id].name for id in ports]} are not in program order"
    for inner, _, _ in frame.items:
        if inner.is_open:
            yield from _unordered(plan, inner)


def _ways_down(contents: Contents, id: int) -> Iterator[tuple[int, int]]:
    """Yield the children on the only way down from a child, with the ports at which they are entered."""
    while True:
        uses = [use for value in contents.values if value.source == id for use in value.uses]
        if len(uses) != 1 or uses[0].to is None or uses[0].way != "down":
            return
        yield uses[0].to, uses[0].port
        id = uses[0].to


def _begun_nowhere(lines: list[Line]) -> Iterator[str]:
    """The first segment of a line that branches is not drawn, because it is part of another line of its value."""
    for line in lines:
        if line.path.branches:
            x0, x1, y0, y1 = next(_segments(line))
            others = [other for other in lines if other.value == line.value and not other.path.branches]
            segments = [segment for other in others for segment in _segments(other)]
            if not any(a - 0.1 <= x0 and x1 <= b + 0.1 and c - 0.1 <= y0 and y1 <= d + 0.1 for a, b, c, d in segments):
                yield f"a line of {line.value} to {line.path.target} begins nowhere"


def _unconnected(plan: Plan, frame: Frame) -> Iterator[str]:
    """Each use of a value is drawn, and each line ends where its node is."""
    node = frame.node
    assert node.contents is not None
    drawn = {(path.value, path.target) for path in frame.paths}
    for index, value in enumerate(node.contents.values):
        for use in value.uses:
            is_border = node.kind == "group" and (value.source is None or use.to is None)  # no distance to draw
            if (index, use.to) not in drawn and not is_border:
                yield f"value {index} of {node.name} is not drawn to {use.to}"
    corners = {inner.node.id: (x, y, x + inner.w, y + inner.h) for inner, x, y in frame.items}
    for path in frame.paths:
        for id, (x, y) in ((path.source, path.points[0]), (path.target, path.points[-1])):
            x0, y0, x1, y1 = corners[id] if id is not None else (0.0, 0.0, frame.w, frame.h)
            if not (x0 - 0.6 <= x <= x1 + 0.6 and y0 - 0.6 <= y <= y1 + 0.6):
                yield f"a line of value {path.value} of {node.name} does not end at {id}"
            elif id is not None and min(abs(x - x0), abs(x - x1), abs(y - y0), abs(y - y1)) > 9.1:
                yield f"a line of value {path.value} of {node.name} ends inside {id}"
    for inner, _, _ in frame.items:
        if inner.is_open:
            yield from _unconnected(plan, inner)


def tie_faults(placed: DrawnShapes, lines: list[TieLine]) -> list[str]:
    """Return where a line between nodes with the same weights goes through a box."""
    return [*_ties_through(placed, lines)]


def _ties_through(placed: DrawnShapes, lines: list[TieLine]) -> Iterator[str]:
    for line in lines:
        for a, b in zip(line.points, line.points[1:], strict=False):
            x0, x1, y0, y1 = min(a[0], b[0]), max(a[0], b[0]), min(a[1], b[1]), max(a[1], b[1])
            for id, (x, y, w, h) in placed.boxes.items():
                if x0 < x + w - 0.5 and x1 > x + 0.5 and y0 < y + h - 0.5 and y1 > y + 0.5:
                    yield f"a tie goes through {id}"


def text_faults(root: Frame) -> list[str]:
    """Return which texts are not inside their boxes."""
    found: list[str] = []
    for box in boxes_of(root):
        frame, node = box.frame, box.frame.node
        if frame.is_open:
            for x, (text, width) in zip(frame.heading, node.heading or (), strict=True):
                if x < 4 or x + width > frame.w - 4:
                    found.append(f"the heading {text!r} leaves {node.name}")
        elif any(width > frame.w - 8 for _, width in node.lines or ()):
            found.append(f"a text leaves {node.name}")
        elif node.badge is not None and node.badge[1] + 10 > frame.w:
            found.append(f"the badge of {node.name} is wider than it")
    return found
