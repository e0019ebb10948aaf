"""Panels: what is inside an attention, a feed-forward network or experts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from archspec.core.addresses import last_segment, parent
from archspec.drawing.figure.elements import Reading
from archspec.drawing.figure.flow import Element, Flow
from archspec.drawing.figure.names import activation_of, experts_text, feed_forward_text, format_size, lower
from archspec.drawing.figure.rows import (
    GAP,
    RADIUS,
    Place,
    connect,
    draw_element,
    place_rows,
    rows_of,
    size_of,
)
from archspec.drawing.figure.shapes import DETAIL, NAME, Circle, Line, Rect, Shape, Text
from archspec.drawing.plan.metrics import width
from archspec.ir.structure.parts import AttentionFacts, ExpertsFacts, FeedForwardFacts

_CORES = ("attention", "matmul", "softmax")

MIN_BOX = 27.0
"""The least width of a box in a panel."""


class Panel:
    """A panel of an element: its shapes from (0, 0), and its size."""

    def __init__(self, element: Element, shapes: Sequence[Shape], breadth: float, height: float) -> None:
        self.element = element
        self.shapes = list(shapes)
        self.breadth = breadth
        self.height = height


def make_panel(reading: Reading, element: Element, breadth: float) -> Panel | None:
    """Return the panel of an element in a breadth; None if it has no parts to show, or they do not fit."""
    if isinstance(element.facts, ExpertsFacts):
        return _experts_panel(element, element.facts, breadth)
    inner = _inner_flow(reading, element)
    if len(inner.elements) < 3:
        return None
    rows = rows_of(inner.elements, inner.edges, late=False)
    columns = _columns(inner, rows)
    count = max(columns.values()) + 1
    room = breadth - 10
    share = min((room - 4 * (count - 1)) / count, 62.0)
    if share < MIN_BOX or any(_is_too_wide(e, share) for e in inner.elements):
        return None
    span = count * (share + 4) - 4

    def size(e: Element, _: float) -> tuple[float, float]:
        return size_of(e, room if e.kind == "core" else share)

    places, top = place_rows(rows, size, breadth / 2, GAP + 5, room)
    for e, place in places.items():
        x = breadth / 2 - span / 2 + share / 2 + columns[e] * (share + 4)
        is_alone = e.kind == "core" or not inner.users(e) or len(inner.sources(e)) > 1
        places[e] = place._replace(x=breadth / 2 if is_alone else x)
    for row in rows:
        ends = sorted((places[e].left, places[e].left + places[e].width) for e in row)
        if any(left < right for (_, right), (left, _) in pairwise(ends)):
            return None
    shapes: list[Shape] = []
    bottom = 5.0
    for a, b in inner.edges:
        target = places[b]
        spread = places[a].x - target.x if b.kind == "core" else 0.0
        if b.kind in ("multiply", "add") and abs(places[a].x - target.x) > 1:
            side = target.x - RADIUS if places[a].x < target.x else target.x + RADIUS
            points = ((places[a].x, places[a].top), (places[a].x, target.middle), (side, target.middle))
            shapes.append(Line(points))
        else:
            shapes.append(connect(places[a], target, spread))
    entries = [places[e] for e in inner.elements if not inner.sources(e)]
    shapes += [Line(((breadth / 2, 0.0), (breadth / 2, bottom)), arrow=False)]
    for place in entries:
        shapes.append(Line(((breadth / 2, bottom), (place.x, bottom), (place.x, place.y))))
    for e in inner.elements:
        if not inner.users(e):
            shapes.append(Line(((places[e].x, places[e].top), (places[e].x, top + GAP))))
        shapes += draw_element(e, places[e])
    height = top + GAP + NAME + 6
    shapes.append(Text(breadth / 2, height - NAME - 2, element.title, NAME, bold=True))
    return Panel(element, shapes, breadth, height)


def _is_too_wide(element: Element, room: float) -> bool:
    """Whether a word of an element does not fit."""
    if element.kind in ("core", "add", "multiply"):
        return False
    words = re.findall(r"[^_.]+[_.]*|[_.]+", element.title)
    return any(width(word, NAME) > room - 2 for word in words)


def _columns(inner: Flow, rows: Sequence[Sequence[Element]]) -> dict[Element, int]:
    """Return a column for each element, if possible the one below, unless another line passes there."""
    columns: dict[Element, int] = {}
    order = {e: number for number, row in enumerate(rows) for e in row}
    for number, row in enumerate(rows):
        used = {
            columns[a] for a, b in inner.edges if a in columns and order[a] < number - 1 and order[b] > number
        }  # lines that pass
        used |= {columns[a] for a, b in inner.edges if order[a] == number - 1 and order[b] > number}
        for e in row:
            wanted = [columns[a] for a in inner.sources(e) if a in columns and columns[a] not in used]
            column = wanted[0] if wanted else next(c for c in range(len(inner.elements)) if c not in used)
            columns[e] = column
            used.add(column)
    return columns


def _inner_flow(reading: Reading, element: Element) -> Flow:
    """Return the elements inside an element."""
    sources: dict[str, list[Element]] = {}
    elements: list[Element] = []
    edges: list[tuple[Element, Element]] = []
    cores: list[Element] = []
    inside = set(element.nodes)
    rotary = isinstance(element.facts, AttentionFacts) and element.facts.rotary != 0
    for node in reading.order:
        if node not in inside:
            continue
        data = reading.data[node]
        inner_sources = [s for s in reading.live_sources(node) if s in inside]
        operands = list(dict.fromkeys([e for s in inner_sources for e in sources[s]]))
        new = _inner_element(reading, node, operands, element, rotary=rotary)
        if new is None:
            sources[node] = operands
            continue
        if new.kind == "core":
            if cores:
                new = cores[0]
            cores.append(new)
        new.shape = tuple(data["shape"])
        if new not in elements:
            elements.append(new)
        edges += [(e, new) for e in operands if e is not new]
        sources[node] = [new]
    return Flow(elements, edges)


def _inner_element(
    reading: Reading, node: str, operands: Sequence[Element], element: Element, *, rotary: bool
) -> Element | None:
    data = reading.data[node]
    kind, type = data["kind"], data["type"]
    if node in reading.norms:
        return Element("norm", reading.norms[node].name, "", [node])
    if kind == "layer" and data.get("params"):
        name = last_segment(node)
        title = f"{last_segment(parent(node))}.{name}" if name in ("dense", "linear", "proj") else name
        return Element("linear", title, format_size(data["shape"][-1]), [node])
    if kind == "param":
        return None
    activation = activation_of(type)
    if activation is not None and isinstance(element.facts, FeedForwardFacts):
        return Element("function", activation, "", [node])
    if rotary and "rot" in type and operands:
        return Element("function", "RoPE", "", [node])
    if len(operands) > 1 and type in ("mul", "add") and not isinstance(element.facts, AttentionFacts):
        return Element("multiply" if type == "mul" else "add", "", "", [node])
    is_core = type in _CORES or (len(operands) > 1 and type not in ("concat", "add", "mul"))
    if isinstance(element.facts, AttentionFacts) and is_core and operands:
        facts = element.facts
        words = ["causal"] if facts.causal else []
        if facts.window is not None and "global" not in element.details:
            words.append(f"window {facts.window + facts.causal:,}")
        return Element("core", "Scaled dot-product", ", ".join(words), [node])
    return None


def _experts_panel(element: Element, facts: ExpertsFacts, breadth: float) -> Panel:
    """Draw a router, of the experts some, and their sum."""
    shapes: list[Shape] = []
    has_shared = facts.shared != 0
    left = 34.0 if has_shared else 5.0
    room = breadth - left - 5
    cell, y = (room - 12) / 4, 44.0
    shapes.append(Rect(left, 14, room, 18, "linear"))
    shapes.append(Text(left + room / 2, 24.6, "Router"))
    shapes.append(Text(left + room / 2, 17.4, f"top {format_size(facts.chosen)} of {format_size(facts.total)}", DETAIL))
    centers: list[float] = []
    for position, word in enumerate(("1", "2", "3", format_size(facts.total))):
        x = left + position * cell + (8 if position == 3 else 0) + position * 1.3
        chosen = position in (0, 3)
        shapes.append(Rect(x, y, cell, 15, "experts" if chosen else "function"))
        shapes.append(Text(x + cell / 2, y + 5, word, NAME, bold=chosen))
        if chosen:
            centers.append(x + cell / 2)
    shapes.append(Text(left + 3 * cell + 7.2, y + 5, "…"))
    middle = left + room / 2
    total = Place(middle, y + 25, 2 * RADIUS, 2 * RADIUS)
    for x in centers:
        shapes.append(Line(((middle, 32), (middle, 38), (x, 38), (x, y))))
        side = total.x - RADIUS if x < total.x else total.x + RADIUS
        shapes.append(Line(((x, y + 15), (x, total.middle), (side, total.middle))))
    if has_shared:
        shapes.append(Rect(5, y - 2, 26, 19, "feed_forward"))
        shapes += [Text(18, y + 9, "shared", DETAIL), Text(18, y + 2.4, "expert", DETAIL)]
        shapes.append(Line(((middle, 7), (18, 7), (18, y - 2))))
        shapes.append(Line(((18, y + 17), (18, total.middle), (total.x - RADIUS, total.middle))))
    shapes.append(Line(((middle, 0), (middle, 14))))
    shapes.append(Circle(total.x, total.middle, RADIUS, "+"))
    shapes.append(Line(((middle, total.top), (middle, total.top + 9))))
    name, details = feed_forward_text(FeedForwardFacts(facts.width, facts.inner, facts.activation, facts.is_gated))
    top = total.top + 11
    word = lower(name.removesuffix(" feed-forward")) if facts.is_gated else "feed-forward"
    line = f"each {word}, {details}"
    if width(line, DETAIL) > breadth - 8:
        line = details
    shapes.append(Text(breadth / 2, top, line, DETAIL))
    shapes.append(Text(breadth / 2, top + 9, experts_text(facts)[0], NAME, bold=True))
    return Panel(element, shapes, breadth, top + 20)
