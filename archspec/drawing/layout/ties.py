"""Lines between nodes that use the same weights: dotted, in lanes on a side of the picture or between two frames."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Literal, TypeAlias

from archspec.core.record import Record
from archspec.drawing.layout.frames import Point
from archspec.drawing.plan.plan import Plan

Box: TypeAlias = tuple[float, float, float, float]
Side: TypeAlias = Literal["left", "right"]

LANE = 8.0
MIN_DISTANCE = 3.0
FAR = 1e4
"""Beyond all nodes."""


class DrawnShapes:
    """The rectangles (x, y, width, height) of closed boxes and frames by node, and the corners of all lines."""

    def __init__(self) -> None:
        self.boxes: dict[int, Box] = {}
        self.frames: dict[int, Box] = {}
        self.lines: list[list[Point]] = []


class TieRoute(Record):
    """How a line connects two nodes: the sides at which it leaves them.

    If these differ, the line is at `between` in the gap between the two; else it is in a lane on that side.
    """

    sides: tuple[Side, Side]
    between: float | None = None


class TieLine(Record):
    """A line between nodes with the same weights, and its ends at them."""

    points: tuple[Point, ...]
    ends: tuple[Point, Point]


def tie_lines(plan: Plan, placed: DrawnShapes) -> list[TieLine]:
    """Return a line for each pair of drawn nodes that use the same weights; those of one tensor share a lane.

    A line is on the left, unless it crosses fewer frames elsewhere.
    """
    again = [(node.again, node.id) for node in plan.nodes if node.again is not None and node.kind == "layer"]
    pairs: dict[tuple[int, int], None] = {}
    for first, second in [*plan.ties, *again]:
        one, other = _drawn(plan, placed, first), _drawn(plan, placed, second)
        if one is not None and other is not None and one != other:
            pairs[one, other] = None
    routes = {pair: _route(plan, placed, *pair) for pair in pairs}
    lanes: dict[Side, dict[int, int]] = {"left": _lanes(routes, "left"), "right": _lanes(routes, "right")}
    right = max([x + w for x, _, w, _ in _shapes(placed).values()], default=0.0)
    right = max([right, *[x for line in placed.lines for x, _ in line]])
    used: list[tuple[float, float]] = []
    ways: dict[tuple[int, Side, float], list[Point]] = {}
    lines: list[TieLine] = []
    for pair, route in routes.items():
        if route.between is not None:
            x = route.between
        else:
            step = LANE * (1.5 + lanes[route.sides[0]][pair[0]])
            x = -step if route.sides[0] == "left" else right + step
        keys: list[tuple[int, Side, float]] = [
            (id, side, _limit(route, side)) for id, side in zip(pair, route.sides, strict=True)
        ]
        for id, side, limit in keys:
            if (id, side, limit) not in ways:
                ways[id, side, limit] = _way_out(placed, _shapes(placed)[id], used, side, limit)
        start, end = [ways[key] for key in keys]
        points = [*start, (x, start[-1][1]), (x, end[-1][1]), *reversed(end)]
        lines.append(TieLine(tuple(points), (start[0], end[0])))
    return lines


def _shapes(placed: DrawnShapes) -> dict[int, Box]:
    return {**placed.frames, **placed.boxes}


def _lanes(routes: Mapping[tuple[int, int], TieRoute], side: Side) -> dict[int, int]:
    """Return the number of the lane on a side for each node at which a tensor is counted."""
    firsts = dict.fromkeys(first for (first, _), route in routes.items() if route.sides == (side, side))
    return {first: number for number, first in enumerate(firsts)}


def _route(plan: Plan, placed: DrawnShapes, first: int, second: int) -> TieRoute:
    """Return the way between two nodes that crosses the fewest frames of other nodes."""
    sides: tuple[Side, Side] = ("left", "right")
    routes = [TieRoute((side, side)) for side in sides]
    shapes = _shapes(placed)
    outer = [shapes[_outermost(plan, placed, id, other)] for id, other in ((first, second), (second, first))]
    (left, _, width, _), (other, _, other_width, _) = outer
    if left + width + 2 * LANE < other:
        routes.append(TieRoute(("right", "left"), (left + width + other) / 2))
    elif other + other_width + 2 * LANE < left:
        routes.append(TieRoute(("left", "right"), (other + other_width + left) / 2))
    return min(routes, key=lambda route: _count_crossed(plan, placed, route, (first, second)))


def _limit(route: TieRoute, side: Side) -> float:
    """Return the x up to which nothing may be in the way of a line from a side of a node."""
    return route.between if route.between is not None else FAR if side == "right" else -FAR


def _outermost(plan: Plan, placed: DrawnShapes, id: int, other: int) -> int:
    """Return the outermost frame around a node that is not around another one; the node itself if there is none."""
    shared = {*_path(plan, other)}
    return [node for node in _path(plan, id) if node == id or (node in placed.frames and node not in shared)][-1]


def _path(plan: Plan, id: int) -> list[int]:
    """Return a node and all nodes around it, innermost first."""
    path, node = list[int](), id
    while node:
        path.append(node)
        node = plan.nodes[node].parent or 0
    return path


def _count_crossed(plan: Plan, placed: DrawnShapes, route: TieRoute, ends: tuple[int, int]) -> int:
    """Return the number of frames that are not around a node, but in the way of a line from it."""
    count = 0
    for id, side in zip(ends, route.sides, strict=True):
        left, top, width, height = _shapes(placed)[id]
        middle, path = top + min(height / 2, 24.0), {*_path(plan, id)}
        limit = _limit(route, side)
        for other, (x, y, w, h) in placed.frames.items():
            is_beside = left + width <= x < limit if side == "right" else limit < x + w <= left
            count += other not in path and is_beside and y <= middle <= y + h
    return count


def _drawn(plan: Plan, placed: DrawnShapes, id: int) -> int | None:
    """Return the node that is drawn for a node: itself, or the closed one around it."""
    node: int | None = id
    while node is not None:
        if node in placed.boxes or (node in placed.frames and node == id):
            return node
        node = plan.nodes[node].parent
    return None


def _way_out(placed: DrawnShapes, box: Box, used: list[tuple[float, float]], side: Side, end: float) -> list[Point]:
    """Return the way from a side of a box to the x of its end: at the height nearest to its middle that is free."""
    x, y, w, h = box
    middle = y + min(h / 2, 24.0)
    x, edge = (x, x - 6.0) if side == "left" else (x + w, x + w + 6.0)
    heights = [middle]
    for _, top, _, tall in placed.boxes.values():
        heights += [top - 5.0, top + tall + 5.0]
    heights += [other + step for other in heights[:] for step in (-5.0, 5.0)]
    for height in sorted(heights, key=lambda height: (abs(height - middle), height)):
        if any(abs(height - other) < MIN_DISTANCE + 1 and x > 0 for other, x in used):
            continue
        if _is_free(placed, (end, height), (edge, height)) and _is_free(placed, (edge, middle), (edge, height)):
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
            if (
                is_level
                and abs(ay - by) < 0.05
                and abs(ay - y0) < MIN_DISTANCE
                and min(ax, bx) < x1
                and x0 < max(ax, bx)
            ):
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
