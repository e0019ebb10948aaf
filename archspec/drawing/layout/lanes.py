"""The x of what is beside the rows of a block: the verticals of rails, and columns."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.drawing.layout.block import BEYOND_ALL_X, Block
from archspec.drawing.layout.taps import LANE, Edge, Rail
from archspec.drawing.plan.plan import PassThrough


def place_lanes(block: Block) -> None:
    """Place the verticals of rails outside of the rows that they pass, the shorter ones inside."""
    for index in range(len(block.values)):
        for row, place in block.chain(index).items():
            block.ends.setdefault(row + 1, []).append(block.exit_x(index, place))
            if isinstance(place[1], PassThrough):
                block.ends.setdefault(row, []).append(block.x[place])
        for use in block.values[index].uses:
            if use.way == "down" and use.to in block.row_of:
                block.ends.setdefault(block.row_of[use.to], []).append(block.entry_x(use))
    for x in block.tops.values():
        block.ends.setdefault(0, []).append(x)
    taken: list[tuple[float, int, int]] = []
    needing = [rail for rail in block.rails if _needs_lane(block, rail)]
    for rail in sorted(needing, key=lambda rail: (rail.levels()[1] - rail.levels()[0], rail.levels()[0])):
        first, last = rail.levels()
        rows = range(first // 2, (last + 1) // 2)
        x = _outside_x(block, rail.edge, rows, 12.0)
        step = -LANE if rail.edge == "left" else LANE
        while _is_taken(block, x, first, last, taken):
            x += step
        taken.append((x, first, last))
        rail.lane = x


def _outside_x(block: Block, edge: Edge, rows: Iterable[int], distance: float) -> float:
    if edge == "left":
        return min([block.left[row] for row in rows], default=0.0) - distance
    return max([block.right[row] for row in rows], default=0.0) + distance


def _is_taken(block: Block, x: float, first: int, last: int, taken: list[tuple[float, int, int]]) -> bool:
    channels = {level // 2 for level in (first, last) if level % 2 == 0}
    return any(abs(x - end) < 5 for channel in channels for end in block.ends.get(channel, ())) or any(
        abs(x - other) < 7 and first <= end and start <= last for other, start, end in taken
    )


def _needs_lane(block: Block, rail: Rail) -> bool:
    if block.is_from_column(rail):
        return False
    if rail.start is None:
        places = {(tap.row, tap.way == "row") for tap in rail.taps}
        return len(rail.taps) > 1 and not (len(places) == 1 and rail.taps[0].way == "gap")
    return not all(rail.is_direct(tap) for tap in rail.taps)


def place_columns(block: Block) -> None:
    """Place the columns from left to right, in the order of their first uses."""
    lanes = [rail.lane for rail in block.rails if rail.edge == "right" and rail.lane is not None]
    uses: dict[int, list[tuple[int, float]]] = {id: [] for id in block.contents.columns}
    for rail in block.rails:
        source = block.values[rail.value].source
        if source is not None and source in uses:
            uses[source] += [(block.tap_level(rail, tap), block.tap_offset(tap, rail.edge)) for tap in rail.taps]
    edge = -BEYOND_ALL_X
    for id in sorted(uses, key=lambda id: min(uses[id], default=(0, 0.0))):
        rows = range(min(block.height, max([level // 2 for level, _ in uses[id]], default=-1) + 1))
        edge = max([edge, _outside_x(block, "right", rows, 0.0), *lanes]) + 22.0
        block.column_x[id] = edge
        edge += block.frames[id].w
