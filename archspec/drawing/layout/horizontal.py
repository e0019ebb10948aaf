"""The x of everything in the rows of a block."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.drawing.layout.block import BEYOND_ALL_X, FIXED, GAP, Block, EntryRoom, Place, fit_positions
from archspec.drawing.layout.frames import spread_tops
from archspec.drawing.layout.taps import LANE, Edge, Rail
from archspec.drawing.plan.plan import PassThrough

# The x of what is beside the rows of a block: the verticals of rails, and columns.


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


def place_rows(block: Block) -> None:
    above: dict[Place, list[tuple[Place, float]]] = {}
    below: dict[Place, list[tuple[Place, float]]] = {}
    entered: set[Place] = set()

    def link(upper: Place, lower: Place, offset: float) -> None:
        above.setdefault(lower, []).append((upper, offset))
        below.setdefault(upper, []).append((lower, -offset))

    for index, value in enumerate(block.values):
        chain = block.chain(index)
        for row, place in chain.items():
            if row - 1 in chain:
                upper = chain[row - 1]
                link(upper, place, block.exit_offset(index, upper))
        for use in value.uses:
            if use.way == "down" and use.to in block.row_of:
                lower = (block.row_of[use.to], use.to)
                upper = chain.get(block.row_of[use.to] - 1)
                if upper is not None:
                    entering = block.port_offset(use.to, use.port) if block.frames[use.to].is_open else 0.0
                    link(upper, lower, block.exit_offset(index, upper) - entering)
                if value.source is None and _is_main(block, value.output):
                    entered.add(lower)
    for entries in block.rows:
        entered.update(place for place in entries if any(up in entered for up, _ in above.get(place, ())))
        passing = [(place, block.values[place[1].value]) for place in entries if isinstance(place[1], PassThrough)]
        entered.update(place for place, value in passing if value.source is None and _is_main(block, value.output))
        main = [place for place in entries if place in entered and isinstance(place[1], int)]
        only = main[0] if len(main) == 1 and not block.is_bare else None
        _fit(block, entries, [0.0] * len(entries), [FIXED if place == only else 1.0 for place in entries])
    wide = max(range(block.height), key=lambda row: _width(block, block.rows[row]))
    for row in range(wide + 1, block.height):
        _pull(block, block.rows[row], above, entered, above)
    for row in range(wide - 1, -1, -1):
        _pull(block, block.rows[row], below, entered, above)


def _is_main(block: Block, own: int) -> bool:
    """Whether an input is the main one, or one at the top if there is none."""
    return own == block.node.main or (block.node.main is None and block.node.inputs[own].side == "top")


def _width(block: Block, entries: list[Place]) -> float:
    several = sum(isinstance(entry, int) for _, entry in entries) > 1
    return several * BEYOND_ALL_X + sum([sum(block.slots[place]) + GAP for place in entries])


def _pull(
    block: Block,
    entries: list[Place],
    links: dict[Place, list[tuple[Place, float]]],
    entered: set[Place],
    above: dict[Place, list[tuple[Place, float]]],
) -> None:
    """Move the entries of a row towards those that they are connected to."""

    def wanted(place: Place, around: dict[Place, list[tuple[Place, float]]]) -> float:
        found = [block.x[other] + offset for other, offset in around.get(place, ())]
        return sum(found) / len(found) if found else block.x[place]

    is_root = block.is_bare
    if len(entries) == 1 and isinstance(entries[0][1], int):
        block.x[entries[0]] = wanted(entries[0], above if above.get(entries[0]) else links) if is_root else 0.0
        return
    wants = [wanted(place, links) for place in entries]
    weights = [4.0 if isinstance(entry, PassThrough) else 1.0 for _, entry in entries]
    outputs = {id for id, frame in block.frames.items() if frame.node.kind == "output"}
    going = [i for i, (_, entry) in enumerate(entries) if entry not in outputs]
    main = [i for i, place in enumerate(entries) if place in entered] if not is_root else going
    if len(main) == 1 and isinstance(entries[main[0]][1], int):
        weights[main[0]] = FIXED
        if not is_root:
            wants[main[0]] = 0.0
    _fit(block, entries, wants, weights)


def _fit(block: Block, entries: list[Place], wants: list[float], weights: list[float]) -> None:
    block.x.update(zip(entries, fit_positions([block.slots[place] for place in entries], wants, weights), strict=True))


def place_ports(block: Block) -> None:
    """Place the node's own ports at the top and at the bottom: the main ones on the axis."""
    wants: dict[int, list[float]] = {own: [] for own, port in enumerate(block.node.inputs) if port.side == "top"}
    leaving: dict[int, list[float]] = {}
    for index, value in enumerate(block.values):
        chain = block.chain(index)
        if value.source is None and value.output in wants:
            if 0 in chain:
                wants[value.output].append(block.x[chain[0]])
            for use in value.uses:
                if use.way == "down" and use.to in block.row_of and block.row_of[use.to] == 0:
                    wants[value.output].append(block.x[0, use.to] + block.port_offset(use.to, use.port))
        for use in value.uses:
            if use.to is None:
                place = chain.get(block.height - 1)
                leaving[use.port] = [block.exit_x(index, place)] if place else []
    if block.node.main in wants:
        wants[block.node.main] = [0.0]
    block.tops = _spaced(wants, block.node.main)
    block.outs = _spaced(leaving, block.contents.out)


def _spaced(wants: dict[int, list[float]], main: int | None) -> dict[int, float]:
    middles = {port: sum(xs) / len(xs) if xs else 0.0 for port, xs in wants.items()}
    order = sorted(middles, key=lambda port: (round(middles[port], 3), port))
    weights = [FIXED if port == main else 1.0 for port in order]
    slots = [EntryRoom(0.0, 0.0)] * len(order)
    return dict(zip(order, fit_positions(slots, [middles[port] for port in order], weights, 16.0), strict=True))


def order_entries(block: Block) -> None:
    """Order the ports at the top of closed children by where their values come from."""
    entering: dict[int, list[tuple[float, int]]] = {}
    aside: dict[int, set[Edge]] = {}
    for index, value in enumerate(block.values):
        for use in value.uses:
            if use.way == "down" and use.to in block.row_of:
                x = block.upper_x(index, block.row_of[use.to])
                entering.setdefault(use.to, []).append((-BEYOND_ALL_X if x is None else x, use.port))
    for rail in block.rails:
        for tap in rail.taps:
            if tap.way == "top":
                entering.setdefault(tap.child, []).append((-BEYOND_ALL_X, tap.port))
            aside.setdefault(tap.child, set()).add(rail.edge)
    for id, found in entering.items():
        frame, found = block.frames[id], sorted(found)
        if not frame.is_open:
            if frame.node.form == "circle" and len(found) == 2:
                found = _enter_circle_sides(block, id, found, aside.get(id, set()))
            spread_tops(frame, [port for _, port in found])


def _enter_circle_sides(
    block: Block, id: int, found: list[tuple[float, int]], taken: set[Edge]
) -> list[tuple[float, int]]:
    """Let values that come from the sides of a circle turn into its side; return those that enter at the top."""
    place = (block.row_of[id], id)
    entries, x = block.rows[place[0]], block.x[place]
    at = entries.index(place)
    (first, one), (last, other) = found
    start = block.x[entries[at - 1]] + block.slots[entries[at - 1]].right if at else -BEYOND_ALL_X
    end = block.x[entries[at + 1]] - block.slots[entries[at + 1]].left if at + 1 < len(entries) else BEYOND_ALL_X
    is_left = "left" not in taken and start + LANE < first < x - 20
    is_right = "right" not in taken and x + 20 < last < end - LANE
    if is_left and (is_right or abs(last - x) < 0.5):
        block.turns[id, one], block.turn_x[id, one] = "left", first
        found = found[1:]
    if is_right and (is_left or abs(first - x) < 0.5):
        block.turns[id, other], block.turn_x[id, other] = "right", last
        found = found[:-1]
    return found


def measure_rows(block: Block) -> None:
    """Set how far each row reaches to the left and to the right."""
    turns: dict[int, list[float]] = {}
    for (id, _), x in block.turn_x.items():
        turns.setdefault(block.row_of[id], []).append(x)
    for row, entries in enumerate(block.rows):
        turned = turns.get(row, [])
        block.left.append(min([block.x[place] - block.slots[place].left for place in entries] + turned))
        block.right.append(max([block.x[place] + block.slots[place].right for place in entries] + turned))
