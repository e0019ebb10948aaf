"""Elements in rows, from inputs at the bottom to outputs at the top, and the lines between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from archspec.drawing.figure.flow import Element
from archspec.drawing.figure.shapes import DETAIL, GREY, NAME, Circle, Line, Rect, Shape, Text
from archspec.drawing.plan.metrics import shorten_text, width

GAP = 7.0
"""The distance between rows."""

LANE = 4.0
"""The distance between lines beside each other."""

RADIUS = 4.0
MARGIN = 4.0
"""The room beside the text in a box."""

N = TypeVar("N", bound=Hashable)


class Place(NamedTuple):
    """The place of something: the middle of its width, its lower end, its size, and the upper end of its row."""

    x: float
    y: float
    width: float
    height: float
    ceiling: float = 0.0

    @property
    def top(self) -> float:
        return self.y + self.height

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def rows_of(nodes: Sequence[N], edges: Iterable[tuple[N, N]], *, late: bool = True) -> list[list[N]]:
    """Return nodes in rows, each above all that it takes; if `late`, what takes nothing is just below its users."""
    rank: dict[N, int] = {}
    own = set(nodes)
    pairs = [(a, b) for a, b in edges if a in own and b in own]
    for node in nodes:  # in program order
        rank[node] = max([rank[a] + 1 for a, b in pairs if b == node and a in rank], default=0)
    for node in reversed(nodes) if late else ():
        if not any(b == node for _, b in pairs):
            rank[node] = min([rank[b] - 1 for a, b in pairs if a == node], default=rank[node])
    lowest = min(rank.values(), default=0)
    rows: list[list[N]] = [[] for _ in range(max(rank.values(), default=-1) - lowest + 1)]
    for node in nodes:
        rows[rank[node] - lowest].append(node)
    centers: dict[N, float] = {}
    for row in rows:  # each above what it takes
        own_centers = {node: (position + 0.5) / len(row) for position, node in enumerate(row)}

        def center(node: N, own_centers: dict[N, float] = own_centers) -> float:
            below = [centers[a] for a, b in pairs if b == node and a in centers]
            return sum(below) / len(below) if below else own_centers[node]

        row.sort(key=center)
        centers.update({node: (position + 0.5) / len(row) for position, node in enumerate(row)})
    return [row for row in rows if row]


def wrap(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines that fit a room, at spaces, `_` and `.`."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(f"{lines[-1]} {word}", size, bold) <= room:
            lines[-1] += f" {word}"
            continue
        pieces = re.findall(r"[^_.]+[_.]*|[_.]+", word) if width(word, size, bold) > room else [word]
        lines.append("")
        for piece in pieces:
            if lines[-1] and width(lines[-1] + piece, size, bold) > room:
                lines.append("")
            lines[-1] += piece
    return lines


def is_sum(element: Element) -> bool:
    """Whether an element is drawn as a sum or product, which lines enter from the side."""
    return element.kind in ("add", "multiply") or element.title.startswith("Add &")


def text_of(element: Element, room: float) -> tuple[list[str], list[str]]:
    """Return the lines of the title and of the details of an element."""
    if element.kind in ("input", "output"):
        return wrap(element.title, room, NAME), []
    details = element.details
    if details.count(" → ") == 2 and width(details, DETAIL) > room:  # 768 → 3,072 → 768
        details = details.rsplit(" → ", 1)[0]
    return wrap(element.title, room, NAME), wrap(details, room, DETAIL) if details else []


def size_of(element: Element, room: float) -> tuple[float, float]:
    """Return the width and height that an element needs in a room."""
    match element.kind:
        case "add" | "multiply":
            return 2 * RADIUS, 2 * RADIUS
        case "input" | "output":
            return room, len(text_of(element, room)[0]) * (NAME + 1) + 1
        case "function":
            return min(room, width(element.title, NAME) + 14), NAME + 5
        case _:
            title, details = text_of(element, room - 2 * MARGIN)
            return room, len(title) * (NAME + 1) + len(details) * (DETAIL + 1) + 5


def draw_element(element: Element, place: Place) -> list[Shape]:
    """Return the shapes of an element."""
    if element.kind in ("add", "multiply"):
        return [Circle(place.x, place.middle, RADIUS, "+" if element.kind == "add" else "×")]
    if element.kind in ("input", "output"):
        title = element.title
        shape = f"[{element.details}]" if element.details else ""
        length = width(title, NAME) + 3 + width(shape, DETAIL)
        if not shape or length > place.width:
            lines = enumerate(text_of(element, place.width)[0], start=1)
            return [Text(place.x, place.top + 1 - n * (NAME + 1), line) for n, line in lines]
        left = place.x - length / 2
        return [
            Text(left, place.y + 2, title, NAME, "start"),
            Text(left + width(title, NAME) + 3, place.y + 2, shape, DETAIL, "start", italic=True),
        ]
    kind = element.kind
    radius = place.height / 2 if kind == "function" else 1.8
    shapes: list[Shape] = [Rect(place.left, place.y, place.width, place.height, kind, radius)]
    if kind == "function":
        return [*shapes, Text(place.x, place.y + 3.6, element.title)]
    title, details = text_of(element, place.width - 2 * MARGIN)
    y = place.top - 2.5
    for line in title:
        y -= NAME + 1
        shapes.append(Text(place.x, y + 1.8, shorten_text(line, NAME, place.width - 2)))
    for line in details:
        y -= DETAIL + 1
        line = shorten_text(line, DETAIL, place.width - 2)
        shapes.append(Text(place.x, y + 1.6, line, DETAIL, color=GREY))
    return shapes


def connect(source: Place, target: Place, share: float = 0.0) -> Line:
    """Return a line from the top of a place to the bottom of one in a row above; `share` moves where it enters."""
    x = target.x + share
    if abs(source.x - x) < 0.1:
        return Line(((x, source.top), (x, target.y)))
    y = max(source.top, source.ceiling) + GAP / 2
    return Line(((source.x, source.top), (source.x, y), (x, y), (x, target.y)))


def bypass(x: float, start: tuple[float, float], target: Place, *, sideways: bool) -> Line:
    """Return a line from a point along a lane at x to a place, entered from the side, or from below."""
    sx, sy = start
    if sideways:
        side = target.left if x < target.x else target.x + target.width / 2
        return Line(((sx, sy), (x, sy), (x, target.middle), (side, target.middle)))
    y = target.y - GAP / 2
    return Line(((sx, sy), (x, sy), (x, y), (target.x, y), (target.x, target.y)))


def lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a lane for each span of heights, such that spans of one lane do not overlap."""
    result: list[int] = []
    for low, high in spans:
        operands = {lane for lane, (a, b) in zip(result, spans, strict=False) if a < high and low < b}
        result.append(next(lane for lane in range(len(spans)) if lane not in operands))
    return result


Sizes = Callable[[N, float], tuple[float, float]]


def place_rows(
    rows: Sequence[Sequence[N]],
    size: Sizes[N],
    x: float,
    y: float,
    room: float,
    above: Callable[[N], float] = lambda _: 0.0,
    gap: float = GAP,
) -> tuple[dict[N, Place], float]:
    """Place rows on top of each other from y, in a room around x; return the places and the upper end.

    `above` is the additional room above a node.
    """
    places: dict[N, Place] = {}
    for row in rows:
        share = (room - 4 * (len(row) - 1)) / len(row)
        sizes = [size(node, share) for node in row]
        height = max(h for _, h in sizes)
        room_above = max(above(node) for node in row)
        for position, (node, (w, h)) in enumerate(zip(row, sizes, strict=True)):
            center = x - room / 2 + share / 2 + position * (share + 4)
            places[node] = Place(center, y + (height - h) / 2, w, h, y + height + room_above)
        y += height + gap + room_above
    return places, y - gap
