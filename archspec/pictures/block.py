"""The layout of a block: its rows of boxes and the lines between them, in coordinates around its axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from archspec.pictures.columns import FIXED, GAP, Slot, fitted
from archspec.pictures.frames import FOOT, HEAD, Frame, spread_tops
from archspec.pictures.plan import Node, Passing, Use
from archspec.pictures.taps import LANE, Edge, Rail, Tap, rails_of
from archspec.pictures.tracks import Net, assign_tracks

Place: TypeAlias = tuple[int, int]
"""An entry of a row: the row, and the id of a child or -1 - v for the value v that passes."""

BESIDE = 16.0
"""Distance of what stands beside an operation."""

TRACK = 7.0
TRACK_TOP, TRACK_BOTTOM = 9.0, 13.0
"""Distance between tracks, above the first and below the last."""

FAR = 1e5
"""Beyond all children, on the right; with a minus, on the left."""


class Block:
    """The layout of an open node around its axis, x = 0; y = 0 is its top.

    `x` are the axes of the entries of rows, `y` the tops of children. `turns` are inputs of circles that enter at the
    side, with the side. `tops` and `outs` are the x of the node's own ports. Channel c is above row c; `nets` are by
    channel and value.
    """

    def __init__(self, node: Node, frames: dict[int, Frame]) -> None:
        assert node.contents is not None
        self.node = node
        self.frames = frames
        self.contents = node.contents
        self.values = node.contents.values
        self.is_bare = node.kind in ("root", "group")
        self.rows: list[list[Place]] = [
            [(row, -1 - entry.value if isinstance(entry, Passing) else entry) for entry in entries]
            for row, entries in enumerate(node.contents.rows)
        ]
        self.height = len(self.rows)
        self.row_of = {key: row for row, entries in enumerate(self.rows) for _, key in entries if key >= 0}
        self.passing: dict[int, set[int]] = {}
        for row, entries in enumerate(self.rows):
            for _, key in entries:
                if key < 0:
                    self.passing.setdefault(-1 - key, set()).add(row)
        self.x: dict[Place, float] = {}
        self.y: dict[int, float] = {}
        self.tops: dict[int, float] = {}
        self.outs: dict[int, float] = {}
        self.turns: dict[tuple[int, int], Edge] = {}
        self.nets: dict[tuple[int, int], Net] = {}
        self.column_x: dict[int, float] = {}
        self.bordered = self._bordered()
        self._make_equally_wide()
        own = {index for index, value in enumerate(self.values) if value.source is None}
        sides = {index for index in own if node.inputs[self.values[index].output].side != "top"}
        self.rails = rails_of(node.contents, frames, self.row_of, self.bordered | (own - sides))
        self.slots = {place: self._slot(place[1]) for entries in self.rows for place in entries}

    def run(self) -> None:
        """Place everything."""
        self._place_rows()
        self._place_ports()
        self._order_entries()
        self._measure_rows()
        self._place_lanes()
        self._place_columns()
        self._find_nets()
        self._place_vertically()
        self._place_beside()

    # Facts

    def _bordered(self) -> set[int]:
        """Return the values that enter at a side of the node and continue in channel 0."""
        found: set[int] = set()
        for index, value in enumerate(self.values):
            if value.source is None and self.node.inputs[value.output].side != "top":
                is_right = self.node.inputs[value.output].side == "right"
                if (is_right and self.contents.columns) or any(use.way in ("down", "column") for use in value.uses):
                    found.add(index)
        return found

    def _make_equally_wide(self) -> None:
        """Give closed layers of one type that stand side by side the same width."""
        for entries in self.rows:
            row = [self.frames[key] for _, key in entries if key >= 0]
            kinds = {(frame.node.kind, frame.node.type, frame.is_open) for frame in row}
            if len(row) > 1 and len(kinds) == 1 and row[0].node.kind == "layer" and not row[0].is_open:
                widest = max(frame.w for frame in row)
                for frame in row:
                    frame.outs = {port: x + (widest - frame.w) / 2 for port, x in frame.outs.items()}
                    frame.w, frame.axis = widest, widest / 2
                    spread_tops(frame, [*frame.tops])

    def _slot(self, key: int) -> Slot:
        if key < 0:
            return Slot(4.0, 4.0)
        frame = self.frames[key]
        around = [self.frames[id].w + BESIDE for id in frame.node.beside or ()]
        right, left = (*around, 0.0, 0.0)[:2]
        lanes = {"left": 0.0, "right": 0.0}
        for rail in self.rails:
            for tap in rail.taps:
                if tap.child == key and tap.way == "gap":
                    lanes[rail.edge] = max(lanes[rail.edge], LANE * tap.gap)
        return Slot(frame.axis + left + lanes["left"], frame.w - frame.axis + right + lanes["right"])

    def port_offset(self, id: int, port: int) -> float:
        """Return the x of a port at the top of a child, from the child's axis."""
        frame = self.frames[id]
        return frame.tops.get(port, frame.axis) - frame.axis

    def out_offset(self, id: int, output: int) -> float:
        """Return the x of an output of a child, from the child's axis."""
        return self.frames[id].outs.get(output, self.frames[id].axis) - self.frames[id].axis

    def chain(self, value: int) -> dict[int, Place]:
        """Return the entries from which a value goes on downwards, by their rows: its source, and where it passes."""
        found = {row: (row, -1 - value) for row in self.passing.get(value, ())}
        source = self.values[value].source
        if source in self.row_of:
            found[self.row_of[source]] = (self.row_of[source], source)
        return found

    def exit_x(self, value: int, place: Place) -> float:
        """Return the x at which a value leaves an entry at the bottom."""
        return self.x[place] + (self.out_offset(place[1], self.values[value].output) if place[1] >= 0 else 0.0)

    def entry_x(self, use: Use) -> float:
        """Return the x at which a value enters a child at the top, or from which it turns to it."""
        assert use.to is not None
        if (use.to, use.port) in self.turns:
            return self.turn_x[use.to, use.port]
        return self.x[self.row_of[use.to], use.to] + self.port_offset(use.to, use.port)

    def upper_x(self, value: int, channel: int) -> float | None:
        """Return the x at which a value comes into a channel from above, if it does."""
        place = self.chain(value).get(channel - 1)
        if place is not None:
            return self.exit_x(value, place)
        source = self.values[value]
        if channel == 0 and source.source is None and value not in self.bordered:
            return self.tops.get(source.output)
        return None

    # Horizontal positions

    def _place_rows(self) -> None:
        above: dict[Place, list[tuple[Place, float]]] = {}
        below: dict[Place, list[tuple[Place, float]]] = {}
        entered: set[Place] = set()

        def link(upper: Place, lower: Place, offset: float) -> None:
            above.setdefault(lower, []).append((upper, offset))
            below.setdefault(upper, []).append((lower, -offset))

        for index, value in enumerate(self.values):
            chain = self.chain(index)
            for row, place in chain.items():
                if place[1] < 0 and row - 1 in chain:
                    upper = chain[row - 1]
                    link(upper, place, self.out_offset(upper[1], value.output) if upper[1] >= 0 else 0.0)
            for use in value.uses:
                if use.way == "down" and use.to in self.row_of:
                    lower = (self.row_of[use.to], use.to)
                    upper = chain.get(lower[0] - 1)
                    if upper is not None:
                        leaving = self.out_offset(upper[1], value.output) if upper[1] >= 0 else 0.0
                        entering = self.port_offset(*lower[1:], use.port) if self.frames[use.to].is_open else 0.0
                        link(upper, lower, leaving - entering)
                    if value.source is None and self._is_main(value.output):
                        entered.add(lower)
        for entries in self.rows:
            entered.update(place for place in entries if any(up in entered for up, _ in above.get(place, ())))
            passing = [place for place in entries if place[1] < 0]
            own = [(place, self.values[-1 - place[1]]) for place in passing]
            entered.update(place for place, value in own if value.source is None and self._is_main(value.output))
            main = [place for place in entries if place in entered and place[1] >= 0]
            only = main[0] if len(main) == 1 and self.node.kind != "root" else None
            self._fit(entries, [0.0] * len(entries), [FIXED if place == only else 1.0 for place in entries])
        wide = max(range(self.height), key=lambda row: self._width(self.rows[row]), default=0)
        for row in range(wide + 1, self.height):
            self._pull(self.rows[row], above, entered, above)
        for row in range(wide - 1, -1, -1):
            self._pull(self.rows[row], below, entered, above)

    def _is_main(self, own: int) -> bool:
        """Whether an input is the main one, or one at the top if there is none."""
        return own == self.node.main or (self.node.main is None and self.node.inputs[own].side == "top")

    def _width(self, entries: list[Place]) -> float:
        several = sum(1 for _, key in entries if key >= 0) > 1
        return several * FAR + sum([sum(self.slots[place]) + GAP for place in entries])

    def _pull(
        self,
        entries: list[Place],
        links: dict[Place, list[tuple[Place, float]]],
        entered: set[Place],
        above: dict[Place, list[tuple[Place, float]]],
    ) -> None:
        """Move the entries of a row towards those that they are connected to."""

        def wanted(place: Place, around: dict[Place, list[tuple[Place, float]]]) -> float:
            found = [self.x[other] + offset for other, offset in around.get(place, ())]
            return sum(found) / len(found) if found else self.x[place]

        is_root = self.node.kind == "root"
        if len(entries) == 1 and entries[0][1] >= 0:
            self.x[entries[0]] = wanted(entries[0], above if above.get(entries[0]) else links) if is_root else 0.0
            return
        wants = [wanted(place, links) for place in entries]
        weights = [4.0 if key < 0 else 1.0 for _, key in entries]
        going = [i for i, (_, key) in enumerate(entries) if key < 0 or self.frames[key].node.kind != "output"]
        main = [i for i, place in enumerate(entries) if place in entered] if not is_root else going
        if len(main) == 1 and entries[main[0]][1] >= 0:
            weights[main[0]] = FIXED
            if not is_root:
                wants[main[0]] = 0.0
        self._fit(entries, wants, weights)

    def _fit(self, entries: list[Place], wants: list[float], weights: list[float]) -> None:
        self.x.update(zip(entries, fitted([self.slots[place] for place in entries], wants, weights), strict=True))

    def _place_ports(self) -> None:
        """Place the node's own ports at the top and at the bottom: the main ones on the axis."""
        wants: dict[int, list[float]] = {own: [] for own, port in enumerate(self.node.inputs) if port.side == "top"}
        leaving: dict[int, list[float]] = {}
        for index, value in enumerate(self.values):
            chain = self.chain(index)
            if value.source is None and value.output in wants:
                if 0 in chain:
                    wants[value.output].append(self.x[chain[0]])
                for use in value.uses:
                    if use.way == "down" and use.to in self.row_of and self.row_of[use.to] == 0:
                        wants[value.output].append(self.x[0, use.to] + self.port_offset(use.to, use.port))
            for use in value.uses:
                if use.to is None:
                    place = chain.get(self.height - 1)
                    leaving[use.port] = [self.exit_x(index, place)] if place else []
        if self.node.main in wants:
            wants[self.node.main] = [0.0]
        self.tops = self._spaced(wants, self.node.main)
        self.outs = self._spaced(leaving, self.contents.out)

    def _spaced(self, wants: dict[int, list[float]], main: int | None) -> dict[int, float]:
        middles = {port: sum(xs) / len(xs) if xs else 0.0 for port, xs in wants.items()}
        order = sorted(middles, key=lambda port: (round(middles[port], 3), port))
        weights = [FIXED if port == main else 1.0 for port in order]
        slots = [Slot(0.0, 0.0)] * len(order)
        return dict(zip(order, fitted(slots, [middles[port] for port in order], weights, 16.0), strict=True))

    def _order_entries(self) -> None:
        """Order the ports at the top of closed children by where their values come from."""
        self.turn_x: dict[tuple[int, int], float] = {}
        entering: dict[int, list[tuple[float, int]]] = {}
        aside: dict[int, set[Edge]] = {}
        for index, value in enumerate(self.values):
            for use in value.uses:
                if use.way == "down" and use.to in self.row_of:
                    x = self.upper_x(index, self.row_of[use.to])
                    entering.setdefault(use.to, []).append((-FAR if x is None else x, use.port))
        for rail in self.rails:
            for tap in rail.taps:
                if tap.way == "top":
                    entering.setdefault(tap.child, []).append((-FAR, tap.port))
                aside.setdefault(tap.child, set()).add(rail.edge)
        for id, found in entering.items():
            frame, found = self.frames[id], sorted(found)
            if not frame.is_open:
                if frame.node.form == "circle" and len(found) == 2:
                    found = self._turned(id, found, aside.get(id, set()))
                spread_tops(frame, [port for _, port in found])

    def _turned(self, id: int, found: list[tuple[float, int]], taken: set[Edge]) -> list[tuple[float, int]]:
        """Let values that come from the sides of a circle turn into its side; return those that enter at the top."""
        place = (self.row_of[id], id)
        entries, x = self.rows[place[0]], self.x[place]
        at = entries.index(place)
        (first, one), (last, other) = found
        start = self.x[entries[at - 1]] + self.slots[entries[at - 1]].right if at else -FAR
        end = self.x[entries[at + 1]] - self.slots[entries[at + 1]].left if at + 1 < len(entries) else FAR
        is_left = "left" not in taken and start + LANE < first < x - 20
        is_right = "right" not in taken and x + 20 < last < end - LANE
        if is_left and (is_right or abs(last - x) < 0.5):
            self.turns[id, one], self.turn_x[id, one] = "left", first
            found = found[1:]
        if is_right and (is_left or abs(first - x) < 0.5):
            self.turns[id, other], self.turn_x[id, other] = "right", last
            found = found[:-1]
        return found

    def _measure_rows(self) -> None:
        """Set how far each row reaches to the left and to the right."""
        self.left: list[float] = []
        self.right: list[float] = []
        for entries in self.rows:
            turned = [x for (id, _), x in self.turn_x.items() if id in [key for _, key in entries]]
            self.left.append(min([self.x[place] - self.slots[place].left for place in entries] + turned))
            self.right.append(max([self.x[place] + self.slots[place].right for place in entries] + turned))

    # Rails

    def _place_lanes(self) -> None:
        """Place the verticals of rails outside of the rows that they pass, the shorter ones inside."""
        self.ends: dict[int, list[float]] = {}
        for index in range(len(self.values)):
            for row, place in self.chain(index).items():
                self.ends.setdefault(row + 1, []).append(self.exit_x(index, place))
                if place[1] < 0:
                    self.ends.setdefault(row, []).append(self.x[place])
            for use in self.values[index].uses:
                if use.way == "down" and use.to in self.row_of:
                    self.ends.setdefault(self.row_of[use.to], []).append(self.entry_x(use))
        for x in self.tops.values():
            self.ends.setdefault(0, []).append(x)
        taken: list[tuple[float, int, int]] = []
        needing = [rail for rail in self.rails if self._needs_lane(rail)]
        for rail in sorted(needing, key=lambda rail: (rail.levels()[1] - rail.levels()[0], rail.levels()[0])):
            first, last = rail.levels()
            rows = range((first + 1) // 2 if first % 2 == 0 else first // 2, (last + 1) // 2)
            x = self._beyond(rail.edge, rows, 12.0)
            step = -LANE if rail.edge == "left" else LANE
            while self._is_taken(x, first, last, taken):
                x += step
            taken.append((x, first, last))
            rail.lane = x

    def _beyond(self, edge: Edge, rows: Iterable[int], distance: float) -> float:
        if edge == "left":
            return min([self.left[row] for row in rows], default=0.0) - distance
        return max([self.right[row] for row in rows], default=0.0) + distance

    def _is_taken(self, x: float, first: int, last: int, taken: list[tuple[float, int, int]]) -> bool:
        channels = {level // 2 for level in (first, last) if level % 2 == 0}
        return any(abs(x - end) < 5 for channel in channels for end in self.ends.get(channel, ())) or any(
            abs(x - other) < 7 and first <= end and start <= last for other, start, end in taken
        )

    def _needs_lane(self, rail: Rail) -> bool:
        if self.is_from_column(rail):
            return False
        if rail.start is None:
            return len(rail.taps) > 1
        return not all(rail.is_direct(tap) for tap in rail.taps)

    def is_from_column(self, rail: Rail) -> bool:
        """Whether a rail comes from a column beside the rows."""
        return self.values[rail.value].source in self.contents.columns

    def _place_columns(self) -> None:
        """Place the columns from left to right, in the order of their first uses."""
        lanes = [rail.lane for rail in self.rails if rail.edge == "right" and rail.lane is not None]
        uses: dict[int, list[tuple[int, int, float]]] = {id: [] for id in self.contents.columns}
        for rail in self.rails:
            source = self.values[rail.value].source
            if source is not None and source in uses:
                uses[source] += [(tap.row, tap.way == "row", self.tap_offset(tap, rail.edge)) for tap in rail.taps]
        edge = -FAR
        for id in sorted(uses, key=lambda id: min(uses[id], default=(0, 0, 0.0))):
            rows = range(max([row for row, _, _ in uses[id]], default=-1) + 1)
            edge = max([edge, self._beyond("right", rows, 0.0), *lanes]) + 22.0
            self.column_x[id] = edge
            edge += self.frames[id].w

    def tap_offset(self, tap: Tap, edge: Edge) -> float:
        """Return the y of a tap from the top of the child."""
        frame = self.frames[tap.child]
        return (frame.lefts if edge == "left" else frame.rights).get(tap.port, frame.h / 2)

    def rail_x(self, rail: Rail) -> float | None:
        """Return the x of the vertical of a rail."""
        source = self.values[rail.value].source
        if source in self.column_x:
            return self.column_x[source] + self.frames[source].outs[self.values[rail.value].output]
        return rail.lane

    def gap_x(self, tap: Tap, edge: Edge) -> float:
        """Return the x of a vertical in the gap beside a child."""
        frame, x = self.frames[tap.child], self.x[tap.row, tap.child]
        return x - frame.axis - LANE * tap.gap if edge == "left" else x + frame.w - frame.axis + LANE * tap.gap

    # Channels

    def _find_nets(self) -> None:
        def net(channel: int, value: int) -> Net:
            return self.nets.setdefault((channel, value), Net())

        for index, value in enumerate(self.values):
            for row, place in self.chain(index).items():
                if any(use.way != "beside" for use in value.uses):
                    net(row + 1, index).uppers.append(self.exit_x(index, place))
                if place[1] < 0:
                    net(row, index).lowers.append(self.x[place])
            if value.source is None:
                if index in self.bordered:
                    side = self.node.inputs[value.output].side
                    net(0, index).ends.append(-FAR if side == "left" else FAR)
                elif value.output in self.tops:
                    net(0, index).uppers.append(self.tops[value.output])
            for use in value.uses:
                if use.to is None:
                    net(self.height, index).lowers.append(self.outs[use.port])
                elif use.way == "down":
                    net(self.row_of[use.to], index).lowers.append(self.entry_x(use))
                elif use.way == "column":
                    net(0, index).lowers.append(self.column_x[use.to] + self.frames[use.to].tops[use.port])
        for rail in self.rails:
            self._find_rail_nets(rail)

    def _find_rail_nets(self, rail: Rail) -> None:
        x = self.rail_x(rail)
        if rail.start is not None and rail.lane is not None:
            self.nets[rail.start, rail.value].lowers.append(rail.lane)
        for tap in rail.taps:
            if tap.way == "row":
                continue
            channel = self.tap_channel(rail, tap)
            net = self.nets.setdefault((channel, rail.value), Net())
            if not rail.is_direct(tap):
                if x is None:
                    x = -FAR if rail.edge == "left" else FAR
                is_last = rail.lane is not None and rail.levels()[1] == 2 * channel
                (net.uppers if is_last else net.ends).append(x)
            end = self.gap_x(tap, rail.edge) if tap.way == "gap" else self.tap_entry_x(tap)
            (net.lowers if channel == tap.row else net.uppers).append(end)

    def tap_channel(self, rail: Rail, tap: Tap) -> int:
        """Return the channel from which a tap is reached: that above its row, unless the value comes from the row."""
        return tap.row + 1 if rail.start == tap.row + 1 else tap.row

    def tap_entry_x(self, tap: Tap) -> float:
        """Return the x of a tap that enters at the top."""
        return self.x[tap.row, tap.child] + self.port_offset(tap.child, tap.port)

    # Vertical positions

    def _place_vertically(self) -> None:
        self.track_top: list[float] = []
        self.row_top: list[float] = []
        y = 0.0 if self.is_bare else HEAD
        for channel in range(self.height + 1):
            nets = [net for (at, _), net in self.nets.items() if at == channel]
            self.track_top.append(y + TRACK_TOP)
            y += self._channel_height(channel, assign_tracks(nets), bool(nets))
            if channel < self.height:
                y = max([y, *self._floors(channel)])
                self.row_top.append(y)
                y += self._place_row(channel, y)
        self.bottom = y
        for id in self.contents.columns:
            frame = self.frames[id]
            taps = [(rail, tap) for rail in self.rails if self.values[rail.value].source == id for tap in rail.taps]
            first = min([self.tap_y(rail, tap) for rail, tap in taps], default=0.0)
            self.y[id] = max(first - 14.0 - frame.h, self._column_top(id))
            self.bottom = max(self.bottom, self.y[id] + frame.h + (0.0 if self.is_bare else FOOT))

    def _channel_height(self, channel: int, tracks: int, has_nets: bool) -> float:
        room = TRACK_TOP + (tracks - 1) * TRACK + TRACK_BOTTOM if tracks else 0.0
        if channel == 0:
            return room if self.is_bare or tracks else 12.0
        if channel == self.height:
            return room if self.is_bare else max(room, FOOT)
        return max(room, TRACK_TOP + TRACK_BOTTOM)

    def _column_top(self, id: int) -> float:
        """Return the least y of a column: below the tracks of channel 0 if a value enters it from there."""
        tracks = [net.track for (channel, _), net in self.nets.items() if channel == 0]
        below = self.track_top[0] + max(tracks, default=-1) * TRACK + TRACK_BOTTOM
        return max(below if tracks else 0.0, 0.0 if self.is_bare else HEAD + 8.0)

    def _floors(self, row: int) -> Iterable[float]:
        """Yield the least y of a row at which the columns whose first use is there end above it."""
        for id in self.contents.columns:
            taps = [(rail, tap) for rail in self.rails if self.values[rail.value].source == id for tap in rail.taps]
            if taps and min(tap.row for _, tap in taps) == row:
                offset = min(
                    self.tap_offset(tap, rail.edge) if tap.way == "row" else -TRACK_BOTTOM for rail, tap in taps
                )
                yield self._column_top(id) + self.frames[id].h + 14.0 - offset

    def _place_row(self, row: int, y: float) -> float:
        """Set the y of the children in a row, and return its height."""
        frames = [self.frames[key] for _, key in self.rows[row] if key >= 0]
        beside = [self.frames[id] for frame in frames for id in frame.node.beside or ()]
        tallest = max([frame.h for frame in [*frames, *beside]], default=0.0)
        is_open = any(frame.is_open for frame in frames)
        for frame in frames:
            self.y[frame.node.id] = y if is_open else y + (tallest - frame.h) / 2
        for frame in frames:
            for id, edge in zip(frame.node.beside or (), (frame.rights, frame.lefts), strict=False):
                middle = self.y[frame.node.id] + self.beside_offset(frame, id)
                self.y[id] = middle - self.frames[id].h / 2
        return tallest

    def beside_offset(self, frame: Frame, id: int) -> float:
        """Return the y at which a line from a node beside a child enters it, from the top of the child."""
        port = next(use.port for value in self.values if value.source == id for use in value.uses)
        return {**frame.lefts, **frame.rights}.get(port, frame.h / 2)

    def tap_y(self, rail: Rail, tap: Tap) -> float:
        """Return the y at which a tap leaves the vertical of its rail."""
        if tap.way == "row":
            return self.y[tap.child] + self.tap_offset(tap, rail.edge)
        return self.track_y(self.tap_channel(rail, tap), rail.value)

    def track_y(self, channel: int, value: int) -> float:
        """Return the y of the track of a value in a channel."""
        return self.track_top[channel] + max(0, self.nets[channel, value].track) * TRACK

    def _place_beside(self) -> None:
        """Set the x of what stands in columns and beside children."""
        for id, x in self.column_x.items():
            self.x[-1, id] = x + self.frames[id].axis
        for id, row in self.row_of.items():
            frame, x = self.frames[id], self.x[row, id]
            for other, side in zip(frame.node.beside or (), (1, -1), strict=False):
                box = self.frames[other]
                edge = x + frame.w - frame.axis + BESIDE if side > 0 else x - frame.axis - BESIDE - box.w
                self.x[-2, other] = edge + box.axis
