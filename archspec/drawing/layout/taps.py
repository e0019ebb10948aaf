"""Rails that bring values to their uses from the side, each with taps where it enters a child."""

from __future__ import annotations

from typing import Literal, TypeAlias

from archspec.drawing.layout.frames import Frame
from archspec.drawing.plan.plan import Contents, Use

Edge: TypeAlias = Literal["left", "right"]

LANE = 9.0
"""Distance between parallel rails."""


class Tap:
    """Where a rail enters a child in `row`.

    `way` is "row" (from the outside, at the height of the port), "gap" (from the channel next to the row, through the
    gap beside the child) or "top" (from the channel above).
    """

    __slots__ = ("child", "gap", "port", "row", "way")

    def __init__(self, child: int, port: int, row: int, way: Literal["row", "gap", "top"], gap: int = 0) -> None:
        self.child = child
        self.port = port
        self.row = row
        self.way = way
        self.gap = gap


class Rail:
    """A value on its way to taps on one side. `lane` is the x of its vertical, if it needs one.

    `start` is the channel in which it begins, or None if it comes from the border or a column.
    """

    __slots__ = ("edge", "lane", "start", "taps", "value")

    def __init__(self, value: int, edge: Edge, start: int | None) -> None:
        self.value = value
        self.edge: Edge = edge
        self.start = start
        self.taps: list[Tap] = []
        self.lane: float | None = None

    def is_direct(self, tap: Tap) -> bool:
        """Whether a tap is reached from the channel in which the rail begins, without a lane."""
        return tap.way != "row" and self.start in (tap.row, tap.row + 1)

    def levels(self) -> tuple[int, int]:
        """Return the range of its lane: channel c is level 2 c, and row r is level 2 r + 1."""
        found = [2 * tap.row + (1 if tap.way == "row" else 0) for tap in self.taps if not self.is_direct(tap)]
        if self.start is not None:
            found.append(2 * self.start)
        return min(found), max(found)


def rails_of(contents: Contents, frames: dict[int, Frame], rows: dict[int, int], from_top: set[int]) -> list[Rail]:
    """Return the rails of all values that enter children from the side or skip rows.

    `rows` is the row of each child, and `from_top` the inputs of the node that begin in channel 0.
    """
    rails: dict[tuple[int, Edge], Rail] = {}
    gaps: dict[tuple[int, Edge], int] = {}
    skipped: dict[int, list[int]] = {}
    for index, value in enumerate(contents.values):
        start = rows[value.source] + 1 if value.source in rows else 0 if index in from_top else None
        for use in value.uses:
            if use.way not in ("left", "right", "skip") or use.to is None:
                continue
            edge: Edge = "right" if use.way == "right" else "left"
            row = rows[use.to]
            way = _way(contents, frames[use.to], use, edge, row, skipped)
            gap = 0
            if way == "gap":
                gap = gaps[use.to, edge] = gaps.get((use.to, edge), 0) + 1
            rail = rails.setdefault((index, edge), Rail(index, edge, start))
            rail.taps.append(Tap(use.to, use.port, row, way, gap))
    for id, ports in skipped.items():
        frame = frames[id]
        taken = [*ports, *[port for port in frame.lefts if port not in ports]]
        step = min(8.0, frame.h / (len(taken) + 0.5))
        for i, port in enumerate(taken):
            frame.lefts[port] = frame.h / 2 + (i - (len(taken) - 1) / 2) * step
    return [*rails.values()]


def _way(
    contents: Contents, frame: Frame, use: Use, edge: Edge, row: int, skipped: dict[int, list[int]]
) -> Literal["row", "gap", "top"]:
    assert use.to is not None
    entries = contents.rows[row]
    beside = len(frame.node.beside or ())
    is_outermost = entries[0 if edge == "left" else -1] == use.to and beside < (2 if edge == "left" else 1)
    if use.way != "skip":
        return "row" if is_outermost else "gap"
    is_free = frame.node.form != "circle" or not (frame.lefts or use.to in skipped)
    if frame.is_open or not is_outermost or not is_free:
        return "top"
    skipped.setdefault(use.to, []).append(use.port)
    return "row"
