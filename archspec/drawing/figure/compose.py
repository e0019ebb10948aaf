"""A figure from its parts: columns of rows, frames around layers, lines, and panels beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from archspec.core.addresses import parent
from archspec.core.diagnostics import make_error
from archspec.drawing.figure.elements import Reading
from archspec.drawing.figure.flow import Element, Flow
from archspec.drawing.figure.names import format_shape, lower
from archspec.drawing.figure.panels import Panel, make_panel
from archspec.drawing.figure.rows import (
    GAP,
    LANE,
    Place,
    bypass,
    connect,
    draw_element,
    is_sum,
    lanes,
    place_rows,
    rows_of,
    size_of,
    wrap,
)
from archspec.drawing.figure.shapes import BADGE, DETAIL, MEMORY, Circle, Line, Rect, Shape, Text
from archspec.drawing.figure.stacks import Stack
from archspec.drawing.plan.metrics import width
from archspec.ir.structure.parts import AttentionFacts

Node: TypeAlias = "Element | Stack"

COLUMN = 104.0
"""The width of a column of boxes beside panels, in points."""

MIN_STAGE = 232.0
"""The width from which there is room for a layer beside a column."""

MIN_COLUMN = 66.0
"""The least width of a column."""

PAGE = 400.0
"""The width from which there is room for panels beside several columns."""

MIN_STAGES = 3
"""The number of stacks on one way from which they are stages: boxes, with a layer of the largest beside them."""

PADDING = 7.0
GUTTER = 10.0
"""The room for lines beside the boxes."""


class Detail(NamedTuple):
    """A level of detail: the kinds of panels, where a layer of a stack is drawn, and the `gap` between rows.

    `layers` is "open" (in the column), "beside" (beside a box for each stack) or "closed" (nowhere).
    """

    panels: tuple[str, ...]
    layers: str
    gap: float


_PANELS = ("attention", "state_space", "feed_forward", "experts")

DETAILS = (
    Detail(_PANELS, "open", GAP),
    Detail(_PANELS, "open", 5.0),
    Detail(("attention", "state_space", "experts"), "open", 5.0),
    Detail((), "open", 5.0),
    Detail(_PANELS, "beside", 5.0),
    Detail((), "closed", 5.0),
)
"""From most detail to least."""


class Composition:
    """The shapes of a figure, its size, and the `level` of its lowest layers."""

    def __init__(self, shapes: Sequence[Shape], breadth: float, height: float, level: float = 0.0) -> None:
        self.shapes = list(shapes)
        self.breadth = breadth
        self.height = height
        self.level = level


class Composer:
    """Composer of a figure of one model, with one level of detail."""

    def __init__(
        self,
        reading: Reading,
        flow: Flow,
        stacks: Sequence[Stack],
        breadth: float,
        detail: Detail,
        title: str = "",
    ) -> None:
        self.reading = reading
        self.flow = flow
        self.stacks = list(stacks)
        self.breadth = breadth
        self.detail = detail
        self.title = title
        self.marked: set[Node] = set()
        self.shapes: list[Shape] = []
        self.places: dict[Element, Place] = {}
        self.frames: dict[Stack, Place] = {}
        self.node_of: dict[Element, Node] = {e: stack for stack in stacks for e in stack.shown}
        self.nodes: list[Node] = list(dict.fromkeys(self.node_of.get(e, e) for e in flow.elements))
        self.memory = [(a, b) for a, b in flow.edges if self._is_memory(a, b)]
        pairs = [(self.node_of.get(a, a), self.node_of.get(b, b)) for a, b in flow.edges if (a, b) not in self.memory]
        self.edges = list(dict.fromkeys((a, b) for a, b in pairs if a is not b))
        self.taps = self._find_taps()
        self.streams = self._find_streams()
        for stream in self.streams:
            open_stack = self._largest(stream)
            for stack in stream:
                stack.is_open = stack is open_stack and detail.layers == "open" and len(stream) < MIN_STAGES
        self.stage = self._find_stage()

    def _largest(self, stream: set[Stack]) -> Stack:
        """Return the stack of most layers, the first of equals."""
        return max([s for s in self.stacks if s in stream], key=lambda stack: (stack.count, stack.params))

    def _is_memory(self, source: Element, target: Element) -> bool:
        facts = target.facts
        return isinstance(facts, AttentionFacts) and facts.is_cross and bool(target.unit) and source.unit != target.unit

    def _find_taps(self) -> dict[Node, list[Element]]:
        """Return the outputs that are operands on the way, by the node that they are operands from."""
        taps: dict[Node, list[Element]] = {}
        used = {a for a, b in self.edges if not (isinstance(b, Element) and b.kind == "output")}
        memories = {self.node_of.get(a, a) for a, _ in self.memory}
        used |= memories
        for a, b in self.edges:
            if isinstance(b, Element) and b.kind == "output" and a in used:
                taps.setdefault(a, []).append(b)
        self.omitted = {b for a in memories for b in taps.pop(a, [])}  # a memory needs no output of its own
        return taps

    def compose(self) -> Composition:
        """Draw the figure."""
        tapped = {output for outputs in self.taps.values() for output in outputs} | self.omitted
        nodes = [node for node in self.nodes if node not in tapped]
        columns, joined = self._columns(nodes)
        is_wide = self.breadth >= PAGE
        stage = self.stage
        opened = [stage] if stage is not None else [s for s in self.stacks if s.is_open]
        has_panels = opened and (is_wide or (len(opened) == 1 and stage is None and len(columns) == 1))
        columns_width = (COLUMN + GUTTER + 14) * (len(columns) + (stage is not None))
        panels = self._panels(opened[-1], self.breadth - columns_width - 0.5) if has_panels else []
        room = COLUMN
        if not panels and stage is None:
            room = min((self.breadth - 10.0 * (len(columns) - 1)) / len(columns) - GUTTER - 3, 170.0)
        if room < MIN_COLUMN:
            help = "use a larger width, such as `6.9in`"
            raise make_error("usage", f"the figure has no room for its {len(columns)} columns", help=help)
        step = room + GUTTER + 3 + 10
        total = step * len(columns) - 10
        beside = max([panel.breadth + 11 for panel in panels], default=0.0) + (COLUMN + GUTTER + 11) * (
            stage is not None
        )
        start = max(0.0, (self.breadth - total - beside) / 2)
        tops: list[float] = []
        for number, column in enumerate(columns):
            x = start + number * step + GUTTER + room / 2
            tops.append(self._column(column, x, 1.0, room))
        top = max(tops)
        if joined:
            top = self._joined(joined, start + total / 2, top + GAP, min(room, 150.0))
        self._memory_lines()
        right = start + total
        if stage is not None:
            self._place_stage(stage, right + 1, top)
            right += COLUMN + GUTTER + 11
        if panels:
            self._place_panels(panels, right, top)
        lowest = min([0.0, *[shape.y for shape in self.shapes if isinstance(shape, Rect)]])
        highest = max([top, *[s.y + s.height for s in self.shapes if isinstance(s, Rect)]])
        highest = max([highest, *[s.y + s.size for s in self.shapes if isinstance(s, Text)]])
        highest = max([highest, *[y for s in self.shapes if isinstance(s, Line) for _, y in s.points]])
        if self.title:
            self.shapes.append(Text(self.breadth / 2, highest + 5, self.title, BADGE, bold=True))
            highest += BADGE + 6
        shapes = [moved(shape, 0.0, 1.0 - lowest) for shape in self.shapes]
        level = min([place.y for place in self.frames.values()], default=0.0) + 1.0 - lowest
        return Composition(shapes, self.breadth, highest - lowest + 2, level)

    # Columns ------------------------------------------------------------------------------------------------------

    def _reached(self, node: Node, *, backward: bool) -> set[Node]:
        seen: set[Node] = set()
        pending = [node]
        while pending:
            current = pending.pop()
            for a, b in self.edges:
                origin, other = (b, a) if backward else (a, b)
                if origin is current and other not in seen:
                    seen.add(other)
                    pending.append(other)
        return seen

    def _find_streams(self) -> list[set[Stack]]:
        """Return the stacks between which there is a way, together."""
        streams: list[set[Stack]] = []
        for stack in self.stacks:
            linked = {stack, *self._reached(stack, backward=True), *self._reached(stack, backward=False)}
            own = [stream for stream in streams if stream & linked]
            if own:
                own[0].add(stack)
            else:
                streams.append({stack})
        return streams

    def _columns(self, nodes: Sequence[Node]) -> tuple[list[list[Node]], list[Node]]:
        """Return the nodes of each column, and those that join columns."""
        streams = self.streams
        if len(streams) < 2:
            return [list(nodes)], []
        columns: list[list[Node]] = [[] for _ in streams]
        joined: list[Node] = []
        for node in nodes:
            linked = {node, *self._reached(node, backward=True)}
            numbers = [i for i, stream in enumerate(streams) if stream & linked]
            if not numbers:
                after = self._reached(node, backward=False)
                numbers = [i for i, stream in enumerate(streams) if stream & after][:1] or [0]
            if len(numbers) == 1:
                columns[numbers[0]].append(node)
            else:
                joined.append(node)
        side = [n for n in columns[0] if not self._reached(n, backward=False) & streams[0] and n not in streams[0]]
        for node in side:  # what only joins take, such as a scale
            after = self._reached(node, backward=False)
            before = self._reached(node, backward=True)
            if after & set(joined) and not before:
                columns[0].remove(node)
                joined.insert(0, node)
        return columns, joined

    def _size(self, node: Node, room: float) -> tuple[float, float]:
        if isinstance(node, Element):
            return size_of(node, room)
        if not node.is_open:
            return room, size_of(self._closed(node), room)[1]
        inner = room - (18 if node.marks else 6)
        _, top = place_rows(self._inner_rows(node), size_of, 0.0, 0.0, inner, gap=self.detail.gap)
        return room, top + 2 * PADDING + GAP

    def _inner_rows(self, stack: Stack) -> list[list[Element]]:
        return rows_of(stack.shown, self.flow.edges)

    def _closed(self, stack: Stack) -> Element:
        """Return a stack as one box, which says what is in it."""
        main = [e for e in stack.shown if e.kind in ("attention", "state_space", "experts", "feed_forward")]
        words = " + ".join(dict.fromkeys(lower(e.title) for e in main)) or "layer"
        if self.stage is not None:
            words = "layer"  # of which one is drawn
        labels, unit = self.reading.labels, stack.shown[0].unit
        words = lower(labels[unit]) if unit in labels else words
        shape = format_shape(stack.shown[-1].shape, self.reading.batch)
        heads = next((e.details.split(" × ")[0] for e in main if e.kind == "attention"), "")
        details = ", ".join([part for part in (shape, heads) if part])
        name = labels.get(parent(unit.replace("...", "…")))
        if name:
            return Element("closed", name, f"{stack.count} layers, {details}", [])
        return Element("closed", f"{stack.count} × {words}", details, [])

    def _column(self, nodes: Sequence[Node], x: float, y: float, room: float) -> float:
        """Place a column from y and draw it; return its upper end."""
        rows = rows_of(nodes, self.edges)

        def tap_lines(node: Node) -> list[list[str]]:
            row = next(row for row in rows if node in row)
            share = (room - 4 * (len(row) - 1)) / len(row)
            space = share / 2 - 10 + (GUTTER - 1 if node is row[0] else 0)
            return [wrap(output.title, space, DETAIL) for output in self.taps.get(node, ())]

        def above(node: Node) -> float:
            badge = 2.0 if isinstance(node, Stack) and self.detail.gap < GAP else 0.0
            return sum(len(lines) * (DETAIL + 1) + 3 for lines in tap_lines(node)) + badge

        places, top = place_rows(rows, self._size, x, y, room, above, self.detail.gap)
        order = {node: number for number, row in enumerate(rows) for node in row}
        self._draw_nodes(places)
        skips = [(a, b) for a, b in self.edges if a in order and b in order and order[b] > order[a] + 1]
        spans = [(places[a].top, places[b].y) for a, b in skips]
        for (a, b), lane in zip(skips, lanes(spans), strict=True):
            left = x - room / 2 - GUTTER + 2 - LANE * (lane - 1) * 0.5
            sideways = isinstance(b, Element) and is_sum(b)
            self.shapes.append(bypass(left, (places[a].x, places[a].top + GAP / 3), places[b], sideways=sideways))
        for a, b in self.edges:
            if a in order and b in order and order[b] == order[a] + 1:
                self.shapes.append(connect(places[a], places[b]))
        for node, place in places.items():
            height = place.top + 3
            for lines in tap_lines(node):
                middle = height + len(lines) * (DETAIL + 1) / 2
                end = place.x - 8
                self.shapes.append(Line(((place.x, middle), (end, middle))))
                for number, line in enumerate(lines, start=1):
                    y = height + (len(lines) - number) * (DETAIL + 1) + 1.5
                    self.shapes.append(Text(end - 2, y, line, DETAIL, "end"))
                height += len(lines) * (DETAIL + 1) + 3
        self._entry_shapes(rows, places)
        return top

    def _entry_shapes(self, rows: Sequence[Sequence[Node]], places: dict[Node, Place]) -> None:
        """Write the shape of the values that enter the first stack."""
        for low, high in pairwise(rows):
            stacks = [node for node in high if isinstance(node, Stack)]
            if (
                self.detail.gap == GAP
                and stacks
                and len(low) == 1
                and isinstance(low[0], Element)
                and low[0].kind != "input"
            ):
                place = places[low[0]]
                shape = format_shape(low[0].shape, self.reading.batch)
                if shape and width(shape, DETAIL) < place.width / 2 - 4:
                    self.shapes.append(Text(place.x + 4, place.top + 1.4, shape, DETAIL, "start", italic=True))
                return

    def _draw_nodes(self, places: Mapping[Node, Place]) -> None:
        for node, place in places.items():
            if isinstance(node, Stack):
                self._stack(node, place)
            else:
                self.places[node] = place
                self._draw(node, place)

    def _stack(self, stack: Stack, place: Place) -> None:
        """Draw the layer of a stack in its frame, or as one box."""
        self.frames[stack] = place
        if not stack.is_open:
            closed = self._closed(stack)
            if stack in self.marked or not self.marked.isdisjoint(stack.shown):
                self.marked.add(closed)
            self._draw(closed, place)
            self.places.update(dict.fromkeys(stack.shown, place))
            return
        frame = Rect(place.left - GUTTER + 3, place.y, place.width + GUTTER, place.height, "frame", 3.0)
        self.shapes.append(frame)
        rows = self._inner_rows(stack)
        room = place.width - (18 if stack.marks else 6)
        places, _ = place_rows(rows, size_of, place.x, place.y + PADDING + GAP, room, gap=self.detail.gap)
        self.places.update(places)
        order = {element: number for number, row in enumerate(rows) for element in row}
        entry = Place(place.x, place.y, 0.0, 0.0)
        inside = [(a, b) for a, b in self.flow.edges if a in order and b in order]
        entering = dict.fromkeys(
            b for a, b in self.flow.edges if a not in order and b in order and (a, b) not in self.memory
        )
        skips: list[tuple[tuple[float, float], float, Element]] = []
        for b in entering:
            if order[b] == 0:
                self.shapes.append(connect(entry, places[b]))
            else:
                skips.append(((place.x, place.y + 4.0), place.y, b))
        for a, b in inside:
            if order[b] == order[a] + 1:
                self.shapes.append(connect(places[a], places[b]))
            else:
                skips.append(((places[a].x, places[a].top + GAP / 3), places[a].top, b))
        spans = [(low, places[b].y) for _, low, b in skips]
        for (start, _, b), lane in zip(skips, lanes(spans), strict=True):
            left = place.left - 1.5 - LANE * 0.6 * lane + 1
            self.shapes.append(bypass(left, start, places[b], sideways=is_sum(b)))
        for element, own in places.items():
            self._draw(element, own)
        for element in stack.shown:
            if not any(a is element and b in order for a, b in self.flow.edges):
                self.shapes.append(Line(((places[element].x, places[element].top), (place.x, place.top)), arrow=False))
        label = f"× {stack.count}"
        breadth = width(label, BADGE, True) + 8
        right = place.left + place.width
        if stack in self.marked:
            self.shapes.append(Rect(right - breadth - 4.4, place.top - 7.4, breadth + 2.8, 14.8, "mark", 7.4))
        self.shapes.append(Rect(right - breadth - 3, place.top - 6, breadth, 12, "function", 6.0))
        self.shapes.append(Text(right - breadth / 2 - 3, place.top - 2.6, label, BADGE, bold=True))
        if stack.marks:
            self._strip(stack, place)

    def _draw(self, element: Element, place: Place) -> None:
        """Draw an element, with a broad edge if it is marked."""
        if element in self.marked and element.kind not in ("input", "output"):
            x, y, radius = place.left - 1.4, place.y - 1.4, 3.0
            if element.kind in ("add", "multiply", "function"):
                radius = place.height / 2 + 1.4
            self.shapes.append(Rect(x, y, place.width + 2.8, place.height + 2.8, "mark", radius))
        self.shapes += draw_element(element, place)

    def _strip(self, stack: Stack, place: Place) -> None:
        """Draw a cell a layer, the first at the bottom: dark as the text of the attention says."""
        count = len(stack.marks)
        cell = min(4.0, (place.height - 20) / count)
        x = place.left + place.width - 3.2
        y = place.middle - cell * count / 2
        for number, is_global in enumerate(stack.marks):
            self.shapes.append(Rect(x, y + number * cell, 2.6, cell, "core" if is_global else "function", 0.0))

    # Joins, memory and panels -------------------------------------------------------------------------------------

    def _joined(self, nodes: Sequence[Node], x: float, y: float, room: float) -> float:
        rows = rows_of(nodes, self.edges)
        places, top = place_rows(rows, self._size, x, y, room, gap=self.detail.gap)
        order = {node: number for number, row in enumerate(rows) for node in row}
        self._draw_nodes(places)
        for a, b in self.edges:
            if b in order:
                source = self.frames.get(a) if isinstance(a, Stack) else self.places.get(a)
                assert source is not None
                run = min(places[n].y for n in rows[order[b]]) - GAP / 2
                self.shapes.append(connect(source._replace(ceiling=run - GAP / 2), places[b]))
        return top

    def _memory_lines(self) -> None:
        """Draw what layers take from another column, in a color of its own."""
        for source, target in self.memory:
            node = self.node_of.get(source, source)
            start = self.frames.get(node) if isinstance(node, Stack) else self.places.get(node)
            end = self.places.get(target)
            if start is None or end is None:
                continue
            x = end.left - GUTTER - 3
            height = start.top + GAP / 2
            points = ((start.x, start.top), (start.x, height), (x, height), (x, end.middle), (end.left, end.middle))
            self.shapes.append(Line(points, MEMORY))

    def _panels(self, stack: Stack, breadth: float) -> list[Panel]:
        """Return the panels of an open stack, from its lowest element to its highest."""
        kinds = [e for e in stack.shown if e.kind in self.detail.panels]
        unique = {(e.kind, e.title): e for e in reversed(kinds) if not self._has_memory(e)}
        panels = [make_panel(self.reading, element, min(breadth, 230.0)) for element in reversed(unique.values())]
        return [panel for panel in panels if panel is not None]

    def _has_memory(self, element: Element) -> bool:
        return any(b is element for _, b in self.memory)

    def _find_stage(self) -> Stack | None:
        """Return the stack of which a layer is drawn beside the others: the largest."""
        if len(self.streams) != 1 or self.breadth < MIN_STAGE or self.detail.layers == "closed":
            return None
        is_beside = self.detail.layers == "beside" or len(self.streams[0]) >= MIN_STAGES
        return self._largest(self.streams[0]) if is_beside else None

    def _place_stage(self, stack: Stack, x: float, top: float) -> None:
        """Draw a layer of a stage beside its box."""
        box = self.frames[stack]
        stack.is_open = True
        room, height = self._size(stack, COLUMN - 4)
        y = min(max(box.middle - height / 2, 8.0), max(top - height - 4, 8.0))
        left = x + GUTTER - 3
        self._zoom_lines(box, left - 4, y, height)
        place = Place(left + room / 2, y, room, height)
        self._stack(stack, place)
        self.shapes.append(Line(((place.x, y - 6), (place.x, y)), arrow=False))
        self.shapes.append(Line(((place.x, place.top), (place.x, place.top + 7))))

    def _zoom_lines(self, box: Place, x: float, y: float, height: float) -> None:
        """Draw lines from the corners of a box to the place, from y on, that shows what is in it."""
        right = box.x + box.width / 2
        self.shapes.append(Line(((right, box.top), (x, y + height)), "#666666", False, True))
        self.shapes.append(Line(((right, box.y), (x, y)), "#666666", False, True))

    def _place_panels(self, panels: Sequence[Panel], x: float, top: float) -> None:
        """Place panels beside their elements, without overlaps, within the height of the column if they fit."""
        x += 11.0
        total = sum(panel.height for panel in panels) + 8 * (len(panels) - 1)
        lowest = 0.5 if total <= top else top - total
        ceiling = top + 1
        bottoms: list[float] = []
        for panel in panels:
            wanted = self.places[panel.element].middle - panel.height / 2
            bottoms.append(max(wanted, bottoms[-1] + panels[len(bottoms) - 1].height + 8 if bottoms else lowest))
        for number in reversed(range(len(panels))):
            limit = ceiling if number + 1 == len(panels) else bottoms[number + 1] - 8
            bottoms[number] = min(bottoms[number], limit - panels[number].height)
        for panel, bottom in zip(panels, bottoms, strict=True):
            box = self.places[panel.element]
            others = [place for place in self.places.values() if place.y < box.top and place.top > box.y]
            if not any(place.x > box.x for place in others):
                self._zoom_lines(box, x, bottom, panel.height)
            self.shapes.append(Rect(x, bottom, panel.breadth, panel.height, f"{panel.element.kind}_panel", 3.0))
            self.shapes += [moved(shape, x, bottom) for shape in panel.shapes]


def moved(shape: Shape, x: float, y: float) -> Shape:
    match shape:
        case Line():
            return shape._replace(points=tuple((a + x, b + y) for a, b in shape.points))
        case Rect() | Text() | Circle():
            return shape._replace(x=shape.x + x, y=shape.y + y)
