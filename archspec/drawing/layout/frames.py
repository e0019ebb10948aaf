"""The boxes of a picture with their ports and lines.

Coordinates are in pixels, from the top left corner of the enclosing frame.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from archspec.core.record import Record
from archspec.drawing.plan.plan import Node

HEAD = 26.0
"""Height of the heading of a frame."""

PAD = 14.0
"""Distance of the contents from the sides of a frame."""

HEADING_SIDE, HEADING_GAP = 13.0, 7.0
"""Distance of a heading from the side of its frame, and of its texts from each other and from lines."""

MAX_HEADING_EXTENSION = 190.0
"""A frame is widened on the left for a heading up to this width."""

FOOT = 12.0
"""Distance of the contents from the bottom of a frame."""

Point: TypeAlias = tuple[float, float]
Stream: TypeAlias = Literal["main", "skip", "side", "cross"]


class Path(Record):
    """A line of a value, from its source to one of its uses: corners, a dot where it branches off, an arrow at the end.

    `value` is the position of the value in the contents of the node. If it `branches`, its first segment is part of the
    main line of the value.
    """

    points: tuple[Point, ...]
    stream: Stream
    value: int
    source: int | None
    target: int | None
    arrow: bool
    dot: Point | None = None
    branches: bool = False


class Frame:
    """The box of a node: `w` by `h`, with the axis at `axis`; open or closed.

    `tops` and `outs` are the x of the ports at the top and at the bottom by number, `lefts` and `rights` the y of those
    at the sides. `heading` are the x of the texts of the heading. `items` are the frames inside with their corners, and
    `paths` the lines between them.
    """

    __slots__ = ("axis", "h", "heading", "is_open", "items", "lefts", "node", "outs", "paths", "rights", "tops", "w")

    def __init__(self, node: Node, w: float, h: float, axis: float, is_open: bool) -> None:
        self.node = node
        self.w = w
        self.h = h
        self.axis = axis
        self.is_open = is_open
        self.tops: dict[int, float] = {}
        self.outs: dict[int, float] = {}
        self.lefts: dict[int, float] = {}
        self.rights: dict[int, float] = {}
        self.heading: list[float] = []
        self.items: list[tuple[Frame, float, float]] = []
        self.paths: list[Path] = []


def closed_frame(node: Node) -> Frame:
    """Return the box of a closed node; the ports at the top are spread in the order of the inputs."""
    w, h = node.size
    frame = Frame(node, w, h, w / 2, False)
    spread_tops(frame, [own for own, port in enumerate(node.inputs) if port.side == "top"])
    outs = range(node.outputs)
    frame.outs = dict(zip(outs, spread_evenly(w / 2, len(outs), min(26.0, (w - 16) / max(1, len(outs)))), strict=True))
    for side, ports in (("left", frame.lefts), ("right", frame.rights)):
        own = [number for number, port in enumerate(node.inputs) if port.side == side]
        ports.update(zip(own, spread_evenly(h / 2, len(own), min(8.0, h / (len(own) + 0.5))), strict=True))
    return frame


def spread_tops(frame: Frame, order: list[int]) -> None:
    """Spread the ports at the top of a closed box, in an order from left to right."""
    room = 5.0 if frame.node.form == "circle" else min(26.0, (frame.w - 16) / max(1, len(order)))
    frame.tops = dict(zip(order, spread_evenly(frame.axis, len(order), room), strict=True))


def spread_evenly(middle: float, count: int, step: float) -> list[float]:
    """Return places around a middle, with equal steps."""
    return [middle + (i - (count - 1) / 2) * step for i in range(count)]


def place_heading(node: Node, tops: list[float], start: float, end: float) -> tuple[list[float], float, float]:
    """Place the texts of a heading between the lines that enter at `tops`, in a frame from `start` to `end`.

    Return the x of each text, and the sides of the frame, which is widened if necessary.
    """
    texts = node.heading or []
    badge = node.badge[1] + 24.0 if node.badge is not None else 0.0
    if texts and tops:
        room = texts[0][1] + HEADING_SIDE + HEADING_GAP
        if min(tops) - start < room <= MAX_HEADING_EXTENSION:
            start = min(tops) - room
    places: list[float] = []
    x = start + HEADING_SIDE
    for _, width in texts:
        for top in sorted(tops):
            if x - HEADING_GAP < top < x + width + HEADING_GAP:
                x = top + HEADING_GAP
        places.append(x)
        x += width + HEADING_GAP
    return places, start, max(end, x + badge + (0.0 if badge else HEADING_SIDE - HEADING_GAP))
