"""The frame of a block with its lines: from the source of each value to each of its uses."""

from __future__ import annotations

from archspec.drawing.layout.block import Block
from archspec.drawing.layout.frames import PAD, Frame, Path, Point, Stream, place_heading
from archspec.drawing.layout.taps import Rail, Tap
from archspec.drawing.plan.plan import PassThrough, Use, Value


def framed(block: Block) -> Frame:
    """Return the frame around a block that is laid out."""
    boxes = [
        (block.frames[id], x - block.frames[id].axis, block.y[id])
        for (_, id), x in block.x.items()
        if isinstance(id, int) and id in block.y
    ]
    lanes = [rail.lane for rail in block.rails if rail.lane is not None]
    passes = [x for (_, entry), x in block.x.items() if isinstance(entry, PassThrough)]
    xs = [*lanes, *passes, *block.turn_x.values(), *block.tops.values(), *block.outs.values()]
    left = min([*[x for _, x, _ in boxes], *[x - 4 for x in xs]], default=0.0)
    right = max([*[x + frame.w for frame, x, _ in boxes], *[x + 4 for x in xs]], default=0.0)
    heading: list[float] = []
    if not block.is_bare:
        heading, left, right = place_heading(block.node, [*block.tops.values()], left - PAD, right + PAD)
    frame = Frame(block.node, right - left, block.bottom, -left, True)
    frame.heading = [x - left for x in heading]
    frame.items = [(inner, x - left, y) for inner, x, y in boxes]
    frame.tops = {port: x - left for port, x in block.tops.items()}
    frame.outs = {port: x - left for port, x in block.outs.items()}
    draw_paths(block, frame, left, right)
    return frame


def draw_paths(block: Block, frame: Frame, left: float, right: float) -> None:
    """Add the lines of a block between `left` and `right` to its frame, and the ports at the frame's sides."""
    drawing = _Drawing(block, frame, left, right)
    for index, value in enumerate(block.values):
        for use in value.uses:
            drawing.use(index, value, use)
    drawing.downs = [path for path in frame.paths if path.target not in block.column_x]
    for rail in block.rails:
        drawing.rail(rail)
    frame.paths.sort(key=lambda path: path.stream == "main")  # where they begin together, the main one is on top
    for own, port in enumerate(block.node.inputs):
        ports = {"left": frame.lefts, "right": frame.rights}.get(port.side)
        if ports is not None:
            ports.setdefault(own, frame.h / 2)


class _Drawing:
    def __init__(self, block: Block, frame: Frame, left: float, right: float) -> None:
        self.block = block
        self.frame = frame
        self.left = left
        self.right = right
        self.downs: list[Path] = []

    def use(self, index: int, value: Value, use: Use) -> None:
        """Draw a value to a use below it, in a column or beside it."""
        block = self.block
        if use.way == "down":
            last = block.height if use.to is None else block.row_of[use.to]
            points, channel = self._start(index, value)
            while channel <= last:
                x = self._exit(index, channel, last, use)
                points += self._across(index, channel, points[-1][0], x)
                channel += 1
            self._end(index, value, use, points)
        elif use.way == "column" and use.to is not None:
            points, _ = self._start(index, value)
            x = block.column_x[use.to] + block.frames[use.to].tops[use.port]
            points += [*self._across(index, 0, points[-1][0], x), (x, block.y[use.to])]
            self._add(index, value, use, points, "side")
        elif use.way == "beside" and value.source is not None and use.to is not None:
            self._beside(index, value, use)

    def _start(self, index: int, value: Value) -> tuple[list[Point], int]:
        """Return the first points of a value, and the channel that they lead to."""
        block = self.block
        if value.source in block.row_of:
            row = block.row_of[value.source]
            bottom = block.y[value.source] + block.frames[value.source].h
            return [(block.exit_x(index, (row, value.source)), bottom)], row + 1
        if index in block.bordered:
            side = block.node.inputs[value.output].side
            y = block.track_y(0, index)
            (self.frame.lefts if side == "left" else self.frame.rights)[value.output] = y
            return [(self.left if side == "left" else self.right, y)], 0
        return [(block.tops[value.output], 0.0)], 0

    def _exit(self, index: int, channel: int, last: int, use: Use) -> float:
        """Return the x at which a value leaves a channel."""
        if channel < last:
            return self.block.x[channel, PassThrough(index)]
        return self.block.outs[use.port] if use.to is None else self.block.entry_x(use)

    def _across(self, index: int, channel: int, x: float, to: float) -> list[Point]:
        if abs(x - to) < 0.5:
            return []
        y = self.block.track_y(channel, index)
        return [(x, y), (to, y)]

    def _end(self, index: int, value: Value, use: Use, points: list[Point]) -> None:
        block = self.block
        if use.to is None:
            points.append((block.outs[use.port], self.frame.h))
        elif (use.to, use.port) in block.turns:
            box, x = block.frames[use.to], block.x[block.row_of[use.to], use.to]
            y = block.y[use.to] + box.h / 2
            edge = x - box.axis if block.turns[use.to, use.port] == "left" else x + box.w - box.axis
            points += [(points[-1][0], y), (edge, y)]
        else:
            points.append((block.entry_x(use), block.y[use.to] + self._dip(use)))
        self._add(index, value, use, points, self._stream(value))

    def _dip(self, use: Use) -> float:
        """Return how far below the top of a circle a line meets it, away from the axis."""
        assert use.to is not None
        frame = self.block.frames[use.to]
        if frame.node.form != "circle":
            return 0.0
        radius, offset = frame.w / 2, self.block.port_offset(use.to, use.port)
        return radius - (radius**2 - offset**2) ** 0.5

    def _stream(self, value: Value) -> Stream:
        if value.source is None and not self.block.is_bare:
            side = self.block.node.inputs[value.output].side
            return {"top": "main", "left": "cross", "right": "side"}[side]  # pyright: ignore[reportReturnType]
        return "main"

    def _beside(self, index: int, value: Value, use: Use) -> None:
        block = self.block
        assert value.source is not None and use.to is not None
        box, target = block.frames[value.source], block.frames[use.to]
        y = block.y[use.to] + block.beside_offset(target, value.source)
        x, to = block.x[-2, value.source], block.x[block.row_of[use.to], use.to]
        if x > to:
            points = [(x - box.axis, y), (to + target.w - target.axis, y)]
        else:
            points = [(x + box.w - box.axis, y), (to - target.axis, y)]
        self._add(index, value, use, points, "side")

    def rail(self, rail: Rail) -> None:
        """Draw a rail to each of its taps."""
        block, value = self.block, self.block.values[rail.value]
        x = block.rail_x(rail)
        taps = sorted(rail.taps, key=lambda tap: block.tap_y(rail, tap))
        for number, tap in enumerate(taps):
            start = self._rail_start(rail, value, taps[0], tap)
            y = block.tap_y(rail, tap)
            points = [*start]
            if not rail.is_direct(tap) and x is not None:
                points += [(x, points[-1][1]), (x, y)]
            points += self._tap(rail, tap, y)
            way = "skip" if any(use.way == "skip" and use.to == tap.child for use in value.uses) else rail.edge
            use = Use(tap.child, tap.port, way)
            stream: Stream = {"skip": "skip", "left": "cross", "right": "side"}[way]  # pyright: ignore[reportAssignmentType]
            dot = (x, y) if x is not None and number + 1 < len(taps) and tap.way == "row" else None
            branches = len(start) == 2 and self._is_passed(rail.value, start[1])
            if branches and number == 0:
                dot = start[-1]
            self._add(rail.value, value, use, points, stream, dot, branches)

    def _is_passed(self, index: int, point: Point) -> bool:
        """Whether a line of a value to a use below it goes straight from its source to a point."""
        corners = [path.points[1] for path in self.downs if path.value == index]
        return any(abs(a + self.left - point[0]) < 0.05 and b > point[1] - 0.05 for a, b in corners)

    def _rail_start(self, rail: Rail, value: Value, first: Tap, tap: Tap) -> list[Point]:
        """Return the first points of a rail to a tap."""
        block = self.block
        if value.source in block.column_x:
            return [(block.rail_x(rail) or 0.0, block.y[value.source] + block.frames[value.source].h)]
        if rail.start is not None:
            points, _ = self._start(rail.value, value)
            if rail.value in block.bordered:
                return points
            return [*points, (points[-1][0], block.start_y(rail, tap))]
        y = block.tap_y(rail, first)
        (self.frame.lefts if rail.edge == "left" else self.frame.rights)[value.output] = y
        return [(self.left if rail.edge == "left" else self.right, y)]

    def _tap(self, rail: Rail, tap: Tap, y: float) -> list[Point]:
        """Return the last points of a tap, from its height on the vertical of the rail."""
        block = self.block
        frame, x = block.frames[tap.child], block.x[tap.row, tap.child]
        if tap.way == "top":
            entry = block.tap_entry_x(tap)
            return [(entry, y), (entry, block.y[tap.child] + self._dip(Use(tap.child, tap.port, "down")))]
        edge = x - frame.axis if rail.edge == "left" else x + frame.w - frame.axis
        at = block.y[tap.child] + block.tap_offset(tap, rail.edge)
        if tap.way == "row":
            return [(edge, at)]
        gap = block.gap_x(tap, rail.edge)
        return [(gap, y), (gap, at), (edge, at)]

    def _add(
        self,
        index: int,
        value: Value,
        use: Use,
        points: list[Point],
        stream: Stream,
        dot: Point | None = None,
        branches: bool = False,
    ) -> None:
        shifted = tuple([(round(x - self.left, 2), round(y, 2)) for x, y in _simplified(points)])
        if len(shifted) < 2:
            return
        is_arrow = use.to is not None and not self.block.frames[use.to].is_open
        placed = (round(dot[0] - self.left, 2), round(dot[1], 2)) if dot is not None else None
        self.frame.paths.append(Path(shifted, stream, index, value.source, use.to, is_arrow, placed, branches))


def _simplified(points: list[Point]) -> list[Point]:
    """Return the corners of a line: no repeated points, and none on a straight line."""
    found: list[Point] = []
    for point in points:
        if found and abs(found[-1][0] - point[0]) < 0.05 and abs(found[-1][1] - point[1]) < 0.05:
            continue
        if len(found) > 1 and _is_straight(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def _is_straight(a: Point, b: Point, c: Point) -> bool:
    for axis in (0, 1):
        if abs(a[axis] - b[axis]) < 0.05 and abs(b[axis] - c[axis]) < 0.05:
            return (b[1 - axis] - a[1 - axis]) * (c[1 - axis] - b[1 - axis]) >= 0
    return False
