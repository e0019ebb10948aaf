"""The layout of a block: its rows of boxes and the lines between them, in coordinates around its axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from archspec.core.record import Record
from archspec.drawing.layout.frames import Frame, spread_tops
from archspec.drawing.layout.taps import LANE, Edge, Rail, Tap, rails_of
from archspec.drawing.plan.plan import Entry, Node, PassThrough, Use

# Horizontal positions: entries of a row as near as possible to where they are wanted, with their order kept.

GAP = 18.0
"""Least distance between two entries of a row."""

FIXED = 1e6
"""The weight of an entry that stays where it is wanted."""


class EntryRoom(Record):
    """The extent of a row entry to the left and right of its axis."""

    left: float
    right: float


def fit_positions(
    slots: Sequence[EntryRoom], wanted: Sequence[float], weights: Sequence[float], gap: float = GAP
) -> list[float]:
    """Return the positions of the axes with the least sum of weighted squares of the distances to those wanted.

    Entries keep their order and do not overlap (isotonic regression: neighbors that would are moved as one).
    """
    offsets, offset = [0.0][: len(slots)], 0.0
    for before, after in itertools.pairwise(slots):
        offset += before.right + gap + after.left
        offsets.append(offset)
    groups: list[tuple[float, float, int]] = []  # weighted sum, weight, number of entries
    for want, start, weight in zip(wanted, offsets, weights, strict=True):
        groups.append(((want - start) * weight, weight, 1))
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] >= groups[-1][0] / groups[-1][1]:
            last, first = groups.pop(), groups.pop()
            groups.append((first[0] + last[0], first[1] + last[1], first[2] + last[2]))
    places = [total / weight for total, weight, count in groups for _ in range(count)]
    return [place + start for place, start in zip(places, offsets, strict=True)]


# The channels between rows: each value that moves sideways in a channel gets a horizontal track.

MIN_DISTANCE = 4.0
"""Verticals nearer than this would be read as one line."""

MIN_TRACK_GAP = 8.0
"""Least distance between two values on one track."""


class Net:
    """A value in a channel: where it comes from above and where it goes below, and other ends of its track."""

    __slots__ = ("ends", "lowers", "track", "uppers")

    def __init__(self) -> None:
        self.uppers: list[float] = []
        self.lowers: list[float] = []
        self.ends: list[float] = []
        self.track = -1

    @property
    def span(self) -> tuple[float, float]:
        xs = [*self.uppers, *self.lowers, *self.ends]
        return min(xs), max(xs)

    @property
    def is_straight(self) -> bool:
        first, last = self.span
        return last - first < 0.5


def assign_tracks(nets: list[Net]) -> int:
    """Set the track of each net that is not straight; return the number of tracks.

    Where one net comes from above at the place where another one goes down, its track is above.
    """
    waiting = [net for net in nets if not net.is_straight]
    above = {net: {other for other in waiting if other is not net and _must_be_above(other, net)} for net in waiting}
    tracks: list[list[Net]] = []
    while waiting:
        free = [net for net in waiting if not above[net].intersection(waiting)] or waiting
        net = min(free, key=lambda net: net.span)
        waiting.remove(net)
        first = max([other.track + 1 for other in above[net]], default=0)
        net.track = next((i for i in range(first, len(tracks)) if _has_room(tracks[i], net)), max(first, len(tracks)))
        while len(tracks) <= net.track:
            tracks.append([])
        tracks[net.track].append(net)
    return len(tracks)


def _must_be_above(net: Net, other: Net) -> bool:
    return any(abs(upper - lower) < MIN_DISTANCE for upper in net.uppers for lower in other.lowers)


def _has_room(track: list[Net], net: Net) -> bool:
    first, last = net.span
    return all(last + MIN_TRACK_GAP < other.span[0] or other.span[1] + MIN_TRACK_GAP < first for other in track)


Place: TypeAlias = tuple[int, Entry]
"""A row and an entry of it."""

SIDE_GAP = 16.0
"""Distance of what stands beside an operation."""

TRACK = 7.0
TRACK_TOP = 9.0
"""Distance between tracks, and of the first from the row above it."""

BEYOND_ALL_X = 1e5
"""Beyond all children, on the right; with a minus, on the left."""


class Block:
    """Layout of an open node; its axis is at x = 0 and its top at y = 0.

    `x` are the axes of the entries of rows, `y` the tops of children. `turns` are inputs of circles that enter at the
    side, with the side. `tops` and `outs` are the x of the node's own ports. Channel c is above row c; `nets` are by
    channel, value, and the side of the lane to which the value turns ("" for all other ways).
    """

    def __init__(self, node: Node, frames: dict[int, Frame]) -> None:
        assert node.contents is not None
        self.node = node
        self.frames = frames
        self.contents = node.contents
        self.values = node.contents.values
        self.is_bare = node.kind in ("root", "group")
        self.rows: list[list[Place]] = [
            [(row, entry) for entry in entries] for row, entries in enumerate(node.contents.rows)
        ]
        self.height = len(self.rows)
        self.row_of: dict[int, int] = {}
        self.passing: dict[int, list[int]] = {}
        for row, entries in enumerate(node.contents.rows):
            for entry in entries:
                if isinstance(entry, PassThrough):
                    self.passing.setdefault(entry.value, []).append(row)
                else:
                    self.row_of[entry] = row
        self.x: dict[Place, float] = {}
        self.y: dict[int, float] = {}
        self.tops: dict[int, float] = {}
        self.outs: dict[int, float] = {}
        self.turns: dict[tuple[int, int], Edge] = {}
        self.nets: dict[tuple[int, int, str], Net] = {}
        self.turn_x: dict[tuple[int, int], float] = {}
        self.ends: dict[int, list[float]] = {}
        self.left: list[float] = []
        self.right: list[float] = []
        self.column_x: dict[int, float] = {}
        self.track_top: list[float] = []
        self.row_top: list[float] = []
        self.bottom = 0.0
        self.bordered = self._bordered()
        self._make_equally_wide()
        own = {index for index, value in enumerate(self.values) if value.source is None}
        sides = {index for index in own if node.inputs[self.values[index].output].side != "top"}
        self.rails = rails_of(node.contents, frames, self.row_of, self.bordered | (own - sides))
        gaps: dict[int, dict[str, float]] = {}
        for rail in self.rails:
            for tap in rail.taps:
                lanes = gaps.setdefault(tap.child, {})
                lanes[rail.edge] = max(lanes.get(rail.edge, 0.0), LANE * tap.gap)
        self.slots = {place: self._slot(place[1], gaps) for row in self.rows for place in row}

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
            row = [self.frames[entry] for _, entry in entries if isinstance(entry, int)]
            closed = [frame for frame in row if frame.node.kind == "layer" and not frame.is_open]
            if len(closed) == len(row) and len({frame.node.type for frame in row}) == 1:
                widest = max(frame.w for frame in row)
                for frame in row:
                    frame.outs = {port: x + (widest - frame.w) / 2 for port, x in frame.outs.items()}
                    frame.w, frame.axis = widest, widest / 2
                    spread_tops(frame, [*frame.tops])

    def _slot(self, entry: Entry, gaps: dict[int, dict[str, float]]) -> EntryRoom:
        """Return the room of an entry: with what stands beside it, and lanes in the gaps around it."""
        if isinstance(entry, PassThrough):
            return EntryRoom(4.0, 4.0)
        frame, lanes = self.frames[entry], gaps.get(entry, {})
        around = [self.frames[id].w + SIDE_GAP for id in frame.node.beside or ()]
        right, left = (*around, 0.0, 0.0)[:2]
        return EntryRoom(
            frame.axis + left + lanes.get("left", 0.0), frame.w - frame.axis + right + lanes.get("right", 0.0)
        )

    def port_offset(self, id: int, port: int) -> float:
        """Return the x of a port at the top of a child, from the child's axis."""
        frame = self.frames[id]
        return frame.tops.get(port, frame.axis) - frame.axis

    def out_offset(self, id: int, output: int) -> float:
        """Return the x of an output of a child, from the child's axis."""
        return self.frames[id].outs.get(output, self.frames[id].axis) - self.frames[id].axis

    def chain(self, value: int) -> dict[int, Place]:
        """Return the entries from which a value goes on downwards, by their rows: its source, and where it passes."""
        found: dict[int, Place] = {row: (row, PassThrough(value)) for row in self.passing.get(value, ())}
        source = self.values[value].source
        if source in self.row_of:
            found[self.row_of[source]] = (self.row_of[source], source)
        return found

    def exit_x(self, value: int, place: Place) -> float:
        """Return the x at which a value leaves an entry at the bottom."""
        return self.x[place] + self.exit_offset(value, place)

    def exit_offset(self, value: int, place: Place) -> float:
        """Return the x at which a value leaves an entry, from the entry's axis."""
        entry = place[1]
        return self.out_offset(entry, self.values[value].output) if isinstance(entry, int) else 0.0

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
        return None if value in self.bordered else self.tops[self.values[value].output]

    def is_from_column(self, rail: Rail) -> bool:
        """Whether a rail comes from a column beside the rows."""
        return self.values[rail.value].source in self.contents.columns

    def tap_offset(self, tap: Tap, edge: Edge) -> float:
        """Return the y of a tap from the top of the child."""
        frame = self.frames[tap.child]
        return (frame.lefts if edge == "left" else frame.rights)[tap.port]

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

    def tap_channel(self, rail: Rail, tap: Tap) -> int:
        """Return the channel from which a tap is reached: that above its row, unless the value comes from below it.

        A column may be fed from channel 0, and is then below it.
        """
        is_below = rail.start == tap.row + 1 or (tap.row == 0 and self.is_from_column(rail))
        return tap.row + 1 if is_below else tap.row

    def tap_level(self, rail: Rail, tap: Tap) -> int:
        """Return where a tap leaves its rail: 2 c in channel c, 2 r + 1 in row r."""
        return 2 * tap.row + 1 if tap.way == "row" else 2 * self.tap_channel(rail, tap)

    def tap_entry_x(self, tap: Tap) -> float:
        """Return the x of a tap that enters at the top."""
        return self.x[tap.row, tap.child] + self.port_offset(tap.child, tap.port)

    def beside_offset(self, frame: Frame, id: int) -> float:
        """Return the y at which a line from a node beside a child enters it, from the top of the child."""
        port = next(use.port for value in self.values if value.source == id for use in value.uses)
        return {**frame.lefts, **frame.rights}[port]

    def tap_y(self, rail: Rail, tap: Tap) -> float:
        """Return the y at which a tap leaves the vertical of its rail."""
        if tap.way == "row":
            return self.y[tap.child] + self.tap_offset(tap, rail.edge)
        return self.track_y(self.tap_channel(rail, tap), rail.value)

    def start_y(self, rail: Rail, tap: Tap) -> float:
        """Return the y at which a rail that begins in a channel turns aside, on its way to a tap."""
        assert rail.start is not None
        own = "" if rail.is_direct(tap) or rail.value in self.bordered else rail.edge
        return self.track_y(rail.start, rail.value, own)

    def track_y(self, channel: int, value: int, edge: str = "") -> float:
        """Return the y of the track of a value in a channel; with an edge, of that to the lane on this side."""
        return self.track_top[channel] + max(0, self.nets[channel, value, edge].track) * TRACK
