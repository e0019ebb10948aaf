"""The y of everything in a block: rows, the tracks of the channels between them, and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from archspec.drawing.layout.block import BEYOND_ALL_X, SIDE_GAP, TRACK, TRACK_TOP, Block, Net, assign_tracks
from archspec.drawing.layout.frames import FOOT, HEAD, Frame
from archspec.drawing.layout.taps import Rail
from archspec.drawing.plan.plan import PassThrough

TRACK_BOTTOM = 13.0
"""Distance of the last track from the row below it."""


def find_nets(block: Block) -> None:
    def net(channel: int, value: int) -> Net:
        return block.nets.setdefault((channel, value, ""), Net())

    for index, value in enumerate(block.values):
        for row, place in block.chain(index).items():
            net(row + 1, index).uppers.append(block.exit_x(index, place))
            if isinstance(place[1], PassThrough):
                net(row, index).lowers.append(block.x[place])
        if value.source is None:
            if index in block.bordered:
                side = block.node.inputs[value.output].side
                net(0, index).ends.append(-BEYOND_ALL_X if side == "left" else BEYOND_ALL_X)
            elif value.output in block.tops:
                net(0, index).uppers.append(block.tops[value.output])
        for use in value.uses:
            if use.to is None:
                net(block.height, index).lowers.append(block.outs[use.port])
            elif use.way == "down":
                net(block.row_of[use.to], index).lowers.append(block.entry_x(use))
            elif use.way == "column":
                net(0, index).lowers.append(block.column_x[use.to] + block.frames[use.to].tops[use.port])
    for rail in block.rails:
        _find_rail_nets(block, rail)


def _find_rail_nets(block: Block, rail: Rail) -> None:
    x = block.rail_x(rail)
    if rail.start is not None and rail.lane is not None:
        if rail.value in block.bordered:
            block.nets[rail.start, rail.value, ""].lowers.append(rail.lane)
        else:  # a track of its own, so that what goes aside and what goes down are told apart
            own = block.nets[rail.start, rail.value, rail.edge] = Net()
            upper = block.upper_x(rail.value, rail.start)
            if upper is not None:
                own.uppers.append(upper)
            own.lowers.append(rail.lane)
    for tap in rail.taps:
        if tap.way == "row":
            continue
        channel = block.tap_channel(rail, tap)
        net = block.nets.setdefault((channel, rail.value, ""), Net())
        if not rail.is_direct(tap):
            if x is None:
                x = -BEYOND_ALL_X if rail.edge == "left" else BEYOND_ALL_X
            is_last = rail.lane is not None and rail.levels()[1] == 2 * channel
            (net.uppers if is_last else net.ends).append(x)
        end = block.gap_x(tap, rail.edge) if tap.way == "gap" else block.tap_entry_x(tap)
        (net.lowers if channel == tap.row else net.uppers).append(end)


def place_vertically(block: Block, floors: Mapping[int, float]) -> None:
    y = 0.0 if block.is_bare else HEAD
    channels: list[list[Net]] = [[] for _ in range(block.height + 1)]
    for (channel, _, _), net in block.nets.items():
        channels[channel].append(net)
    for channel, nets in enumerate(channels):
        y = max([y, *_floors(block, 2 * channel)])
        block.track_top.append(y + TRACK_TOP)
        y += _channel_height(block, channel, assign_tracks(nets))
        if channel < block.height:
            y = max([y, *_floors(block, 2 * channel + 1), *_row_floors(block, channel, floors)])
            block.row_top.append(y)
            y += _place_row(block, channel, y)
    block.bottom = y
    for id in block.contents.columns:
        frame = block.frames[id]
        taps = [(rail, tap) for rail in block.rails if block.values[rail.value].source == id for tap in rail.taps]
        first = min([block.tap_y(rail, tap) for rail, tap in taps], default=0.0)
        block.y[id] = max(first - 14.0 - frame.h, _column_top(block, id))
        block.bottom = max(block.bottom, block.y[id] + frame.h + (0.0 if block.is_bare else FOOT))


def _channel_height(block: Block, channel: int, tracks: int) -> float:
    room = TRACK_TOP + (tracks - 1) * TRACK + TRACK_BOTTOM if tracks else 0.0
    if channel == 0:
        return room if block.is_bare or tracks else 12.0
    if channel == block.height:
        return room if block.is_bare else max(room, FOOT)
    return max(room, TRACK_TOP + TRACK_BOTTOM)


def _column_top(block: Block, id: int) -> float:
    """Return the least y of a column: below the tracks of channel 0 if a value enters it from there."""
    tracks = [net.track for (channel, _, _), net in block.nets.items() if channel == 0]
    below = block.track_top[0] + max(tracks, default=-1) * TRACK + TRACK_BOTTOM
    return max(below if tracks else 0.0, 0.0 if block.is_bare else HEAD + 8.0)


def _floors(block: Block, level: int) -> Iterable[float]:
    """Yield the least y of a row or channel at which the columns whose first use is there end above it."""
    for id in block.contents.columns:
        taps = [(rail, tap) for rail in block.rails if block.values[rail.value].source == id for tap in rail.taps]
        if taps and min(block.tap_level(rail, tap) for rail, tap in taps) == level:
            here = [(rail, tap) for rail, tap in taps if block.tap_level(rail, tap) == level]
            offset = min(block.tap_offset(tap, rail.edge) for rail, tap in here) if level % 2 else TRACK_TOP
            yield _column_top(block, id) + block.frames[id].h + 14.0 - offset


def _row_floors(block: Block, row: int, floors: Mapping[int, float]) -> Iterable[float]:
    """Yield the least y of a row at which its children are not above their floors."""
    frames, tallest = _row_of(block, row)
    for frame in frames:
        if frame.node.id in floors:
            yield floors[frame.node.id] - _below_top(frame, frames, tallest)


def _row_of(block: Block, row: int) -> tuple[list[Frame], float]:
    """Return the children in a row, and its height."""
    frames = [block.frames[entry] for _, entry in block.rows[row] if isinstance(entry, int)]
    beside = [block.frames[id] for frame in frames for id in frame.node.beside or ()]
    return frames, max([frame.h for frame in [*frames, *beside]], default=0.0)


def _below_top(frame: Frame, frames: Sequence[Frame], tallest: float) -> float:
    """Return the distance of a child from the top of its row: closed ones are centered."""
    return 0.0 if any(other.is_open for other in frames) else (tallest - frame.h) / 2


def _place_row(block: Block, row: int, y: float) -> float:
    """Set the y of the children in a row, and return its height."""
    frames, tallest = _row_of(block, row)
    for frame in frames:
        block.y[frame.node.id] = y + _below_top(frame, frames, tallest)
    for frame in frames:
        for id, _edge in zip(frame.node.beside or (), (frame.rights, frame.lefts), strict=False):
            middle = block.y[frame.node.id] + block.beside_offset(frame, id)
            block.y[id] = middle - block.frames[id].h / 2
    return tallest


def place_beside(block: Block) -> None:
    """Set the x of what stands in columns and beside children."""
    for id, x in block.column_x.items():
        block.x[-1, id] = x + block.frames[id].axis
    for id, row in block.row_of.items():
        frame, x = block.frames[id], block.x[row, id]
        for other, side in zip(frame.node.beside or (), (1, -1), strict=False):
            box = block.frames[other]
            edge = x + frame.w - frame.axis + SIDE_GAP if side > 0 else x - frame.axis - SIDE_GAP - box.w
            block.x[-2, other] = edge + box.axis
