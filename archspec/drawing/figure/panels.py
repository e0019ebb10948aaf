"""Panels: what is inside an attention, a feed-forward network or experts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from archspec.core.addresses import last_segment, parent
from archspec.drawing.figure.elements import Reading
from archspec.drawing.figure.flow import Element, Flow
from archspec.drawing.figure.names import (
    activation_of,
    feed_forward_text,
    format_size,
    lower,
    window_text,
)
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
from archspec.ir.ops import OPS
from archspec.ir.structure.parts import AttentionFacts, ExpertsFacts, FeedForwardFacts, StateSpaceFacts

_SCANS = ("selective_scan",)
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
    rows[0].sort(key=lambda e: _order_at_core(inner, e))
    roots = [e for e in inner.elements if not inner.sources(e)]
    bar = roots[0] if len(roots) == 1 and len(rows[0]) == 1 and _is_bar(inner, roots[0]) else None
    columns, beside = _passing_last(inner, rows, _columns(inner, rows if bar is None else rows[1:]))
    ways = _ways(inner, bar, columns)
    count = max([*columns.values(), *[column for _, column in ways]]) + 1
    room = breadth - 10
    share = min((room - 4 * (count - 1)) / count, 62.0)
    single = [row[0] for row in rows if len(row) == 1 and (count == 1 or not inner.users(row[0]))]

    def size(e: Element, _: float) -> tuple[float, float]:
        if e.kind == "core":
            return size_of(e, room if not beside else span - beside * (share + 4))
        return size_of(e, span if e is bar else min(room, 72.0) if e in single else share)

    span = count * (share + 4) - 4
    for e in inner.elements:
        if e.kind == "norm" and width(e.title, NAME) > share - 2:
            e.title = "Norm"
    if share < MIN_BOX or any(_is_too_wide(e, size(e, 0.0)[0]) for e in inner.elements):
        return None
    places, top = place_rows(rows, size, breadth / 2, GAP + 5, room)

    def middle(column: int) -> float:
        return breadth / 2 - span / 2 + share / 2 + column * (share + 4)

    for e, place in places.items():
        is_alone = e is bar or e.kind == "core" or not inner.users(e) or len(inner.sources(e)) > 1
        x = breadth / 2 - (beside * (share + 4) / 2 if e.kind == "core" else 0)
        places[e] = place._replace(x=x if is_alone else middle(columns[e]))
    for row in rows:
        ends = sorted((places[e].left, places[e].left + places[e].width) for e in row)
        if any(left < right for (_, right), (left, _) in pairwise(ends)):
            return None
    shapes: list[Shape] = []
    bottom = 5.0
    lines = [(places[a], b) for a, b in inner.edges if a is not bar]
    if bar is not None:
        lines += [(places[bar]._replace(x=middle(column)), b) for b, column in ways]
    for source, b in lines:
        target = places[b]
        if b.kind in ("multiply", "add") and abs(source.x - target.x) > 1:
            side = target.x - RADIUS if source.x < target.x else target.x + RADIUS
            shapes.append(Line(((source.x, source.top), (source.x, target.middle), (side, target.middle))))
        else:
            shapes.append(connect(source, target, source.x - target.x if b.kind == "core" else 0.0))
    shapes += [Line(((breadth / 2, 0.0), (breadth / 2, bottom)), arrow=False)]
    for place in [places[e] for e in roots]:
        shapes.append(Line(((breadth / 2, bottom), (place.x, bottom), (place.x, place.y))))
    for e in inner.elements:
        if not inner.users(e):
            shapes.append(Line(((places[e].x, places[e].top), (places[e].x, top + GAP))))
        shapes += draw_element(e, places[e])
    height = top + GAP + NAME + 6
    shapes.append(Text(breadth / 2, height - NAME - 2, element.title, NAME, bold=True))
    return Panel(element, shapes, breadth, height)


def _is_bar(inner: Flow, root: Element) -> bool:
    """Whether an element is drawn as wide as all columns: a map whose result is split."""
    users = inner.users(root)
    return root.kind == "linear" and (len(users) > 1 or users[0].kind == "core")


def _ways(inner: Flow, bar: Element | None, columns: Mapping[Element, int]) -> list[tuple[Element, int]]:
    """Return the lines from a bar: what each goes to, and its column. A core takes queries, keys and values."""
    if bar is None:
        return []
    direct = [b for b in inner.users(bar) if b.kind in ("core", "multiply", "add")]
    others = [b for b in inner.users(bar) if b not in direct]
    free = max([columns[b] for b in others], default=-1) + 1
    number = max(1, 3 - len(others)) if direct and direct[0].kind == "core" and _is_attention(direct[0]) else 1
    return [(b, columns[b]) for b in others] + [(b, free + i) for b in direct for i in range(number)]


def _is_attention(core: Element) -> bool:
    return core.title == "Scaled dot-product"


def _order_at_core(inner: Flow, element: Element) -> int:
    """Return the place of an element, or of what is computed from it, among the operands of the core."""
    operands = [a for a, b in inner.edges if b.kind == "core"]
    while element not in operands and inner.users(element):
        element = inner.users(element)[0]
    return operands.index(element) if element in operands else 0


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
    for number, row in enumerate(rows):  # beside the lines that pass it
        used = {columns[a] for a, b in inner.edges if a in columns and order[a] < number < order[b]}
        for e in row:
            wanted = [columns[a] for a in inner.sources(e) if a in columns and columns[a] not in used]
            column = wanted[0] if wanted else next(c for c in range(len(inner.elements)) if c not in used)
            columns[e] = column
            used.add(column)
    return columns


def _passing_last(
    inner: Flow, rows: Sequence[Sequence[Element]], columns: Mapping[Element, int]
) -> tuple[Mapping[Element, int], int]:
    """Put the columns of lines that pass the core at the right; return the columns and the number of these."""
    order = {e: number for number, row in enumerate(rows) for e in row}
    cores = [e for e in inner.elements if e.kind == "core"]
    passing = {columns[a] for a, b in inner.edges for c in cores if order[a] < order[c] < order[b] if a in columns}
    others = [column for column in sorted(set(columns.values())) if column not in passing]
    numbers = {column: number for number, column in enumerate([*others, *sorted(passing)])}
    return {e: numbers[column] for e, column in columns.items()}, len(passing)


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
    inner = Flow(elements, edges)
    if cores and isinstance(element.facts, StateSpaceFacts):
        _join_steps(inner, cores[0])
    return inner


def _join_steps(inner: Flow, core: Element) -> None:
    """Draw maps in a row, each of which a scan takes its step sizes or matrices from, as one box."""
    for a, b in list(inner.edges):
        if a.kind == b.kind == "linear" and inner.users(b) == [core] and inner.users(a) in ([b, core], [core, b]):
            joined = Element("linear", f"{a.title}, {b.title}", f"{a.details}, {b.details}", [*a.nodes, *b.nodes])
            inner.merge([a, b], joined)


def _inner_element(
    reading: Reading, node: str, operands: Sequence[Element], element: Element, *, rotary: bool
) -> Element | None:
    data = reading.data[node]
    kind, type = data["kind"], data["type"]
    if node in reading.norms:
        return Element("norm", reading.norms[node].name, "", [node])
    if kind == "layer" and data.get("params"):
        name = data.get("label") or last_segment(node)
        title = f"{last_segment(parent(node))}.{name}" if name in ("dense", "linear", "proj") else name
        matrix = max([reading.shapes.get(name, ()) for name in data["tensors"]], key=len)
        return Element("linear", title, format_size(data["shape"][1 if len(matrix) > 2 else -1]), [node])
    if kind == "param":
        return None
    activation = _activation(element.facts, type, operands)
    if activation is not None:
        return Element("function", activation, "", [node])
    if isinstance(element.facts, StateSpaceFacts) and operands:
        core = next((e for e in operands if e.kind == "core"), None)
        if type in _SCANS or (type == "add" and core is not None):
            return core or Element("core", "Selective scan", f"state {format_size(element.facts.states)}", [node])
    if rotary and "rot" in type and operands:
        return Element("function", "RoPE", "", [node])
    if len(operands) > 1 and type in ("mul", "add") and not isinstance(element.facts, AttentionFacts):
        return Element("multiply" if type == "mul" else "add", "", "", [node])
    is_core = type in _CORES or (len(operands) > 1 and type not in ("concat", "add", "mul"))
    if isinstance(element.facts, AttentionFacts) and is_core and operands:
        facts = element.facts
        words = ["causal"] if facts.causal else []
        if facts.window is not None and "global" not in element.details:
            words.append(f"window {window_text(facts)}")
        return Element("core", "Scaled dot-product", ", ".join(words), [node])
    return None


def _activation(facts: object, type: str, operands: Sequence[Element]) -> str | None:
    """Return the name of the activation that an operation is."""
    if not isinstance(facts, FeedForwardFacts | StateSpaceFacts) or len(operands) != 1:
        return None
    name = activation_of(type)
    if isinstance(facts, StateSpaceFacts):
        return name if name != "softplus" else None
    is_custom = type not in OPS and operands[0].kind == "linear"
    return name or (facts.activation if is_custom else None)


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
    shapes.append(Text(breadth / 2, top + 9, element.title, NAME, bold=True))
    return Panel(element, shapes, breadth, top + 20)
