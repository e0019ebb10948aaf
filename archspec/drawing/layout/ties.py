"""Lines between nodes that use the same weights: dotted, in lanes on the left of the picture."""

from __future__ import annotations

import itertools
from typing import TypeAlias

from archspec.core.record import Record
from archspec.drawing.layout.frames import Point
from archspec.drawing.plan.plan import Plan

Box: TypeAlias = tuple[float, float, float, float]

LANE = 8.0
MIN_DISTANCE = 3.0


class DrawnShapes:
    """The rectangles (x, y, width, height) of closed boxes and frames by node, and the corners of all lines."""

    def __init__(self) -> None:
        self.boxes: dict[int, Box] = {}
        self.frames: dict[int, Box] = {}
        self.lines: list[list[Point]] = []


class TieLine(Record):
    """A line between nodes with the same weights, and its ends at them."""

    points: tuple[Point, ...]
    ends: tuple[Point, Point]


def tie_lines(plan: Plan, placed: DrawnShapes) -> list[TieLine]:
    """Return a line for each pair of drawn nodes that use the same weights; those of one tensor share a lane."""
    again = [(node.again, node.id) for node in plan.nodes if node.again is not None and node.kind == "layer"]
    pairs: dict[tuple[int, int], None] = {}
    for first, second in [*plan.ties, *again]:
        one, other = _drawn(plan, placed, first), _drawn(plan, placed, second)
        if one is not None and other is not None and one != other:
            pairs[one, other] = None
    lanes = {first: number for number, first in enumerate(dict.fromkeys(first for first, _ in pairs))}
    used: list[tuple[float, float]] = []
    ways: dict[int, list[Point]] = {}
    lines: list[TieLine] = []
    for first, second in pairs:
        for id in (first, second):
            if id not in ways:
                ways[id] = _way_out(placed, {**placed.frames, **placed.boxes}[id], used)
        x = -LANE * (1.5 + lanes[first])
        start, end = ways[first], ways[second]
        points = [*start, (x, start[-1][1]), (x, end[-1][1]), *reversed(end)]
        lines.append(TieLine(tuple(points), (start[0], end[0])))
    return lines


def _drawn(plan: Plan, placed: DrawnShapes, id: int) -> int | None:
    """Return the node that is drawn for a node: itself, or the closed one around it."""
    node: int | None = id
    while node is not None:
        if node in placed.boxes or (node in placed.frames and node == id):
            return node
        node = plan.nodes[node].parent
    return None


def _way_out(placed: DrawnShapes, box: Box, used: list[tuple[float, float]]) -> list[Point]:
    """Return the way from a box to the left of the picture: at the height nearest to its middle that is free."""
    x, y, _, h = box
    middle = y + min(h / 2, 24.0)
    edge = x - 6.0
    heights = [middle]
    for _, top, _, tall in placed.boxes.values():
        heights += [top - 5.0, top + tall + 5.0]
    heights += [other + step for other in heights[:] for step in (-5.0, 5.0)]
    for height in sorted(heights, key=lambda height: (abs(height - middle), height)):
        if any(abs(height - other) < MIN_DISTANCE + 1 and x > 0 for other, x in used):
            continue
        if _is_free(placed, (-1e4, height), (edge, height)) and _is_free(placed, (edge, middle), (edge, height)):
            used.append((height, edge))
            return [(x, middle), (edge, middle), (edge, height)]
    return [(x, middle), (edge, middle), (edge, y - 5.0)]


def _is_free(placed: DrawnShapes, start: Point, end: Point) -> bool:
    """Whether a straight line meets no box, and no line of the same direction."""
    (x0, x1), (y0, y1) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    for x, y, w, h in placed.boxes.values():
        if x0 < x + w + 3 and x - 3 < x1 and y0 < y + h + 3 and y - 3 < y1:
            return False
    is_level = start[1] == end[1]
    for line in placed.lines:
        for (ax, ay), (bx, by) in itertools.pairwise(line):
            if is_level and abs(ay - by) < 0.05 and abs(ay - y0) < MIN_DISTANCE and min(ax, bx) < x1:
                return False
            if (
                not is_level
                and abs(ax - bx) < 0.05
                and abs(ax - x0) < MIN_DISTANCE
                and min(ay, by) < y1
                and y0 < max(ay, by)
            ):
                return False
    return True
