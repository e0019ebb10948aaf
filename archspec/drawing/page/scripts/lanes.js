// The x of what is beside the rows of a block, the verticals of rails and columns: `lanes.py` in JavaScript.

/** Place the verticals of rails, the shorter ones inside. */
function placeLanes(block) {
  const ends = endsIn(block);
  const taken = [];
  const needing = block.rails.filter((rail) => needsLane(block, rail)).map((rail) => [rail, ...levelsOf(rail)]);
  needing.sort(([, a, b], [, c, d]) => b - a - (d - c) || a - c);
  for (const [rail, first, last] of needing) {
    const rows = range(first >> 1, (last + 1) >> 1);
    const isTaken = (x) =>
      [first, last].some((level) => level % 2 === 0 && (ends.get(level / 2) ?? []).some((end) => Math.abs(x - end) < 5)) ||
      taken.some(([other, start, end]) => Math.abs(x - other) < 7 && first <= end && start <= last);
    let x = beyond(block, rail.edge, rows, 12);
    while (isTaken(x)) x += rail.edge === "left" ? -LANE : LANE;
    taken.push([x, first, last]);
    rail.lane = x;
  }
}

const range = (start, end) => Array.from({ length: Math.max(0, end - start) }, (_, i) => start + i);

/** Where values come into and leave each channel. */
function endsIn(block) {
  const ends = new Map();
  const add = (channel, x) => ends.set(channel, [...(ends.get(channel) ?? []), x]);
  block.values.forEach((value, index) => {
    for (const [row, key] of block.chains[index]) {
      add(row + 1, block.exitX(index, row, key));
      if (key < 0) add(row, block.xOf(row, key));
    }
    for (const use of value.uses) if (use.way === "down" && block.rowOf.has(use.to)) add(block.rowOf.get(use.to), block.entryX(use));
  });
  for (const x of block.tops.values()) add(0, x);
  return ends;
}

function beyond(block, edge, rows, distance) {
  if (edge === "left") return (rows.length ? Math.min(...rows.map((row) => block.left[row])) : 0) - distance;
  return (rows.length ? Math.max(...rows.map((row) => block.right[row])) : 0) + distance;
}

function needsLane(block, rail) {
  if (isFromColumn(block, rail)) return false;
  if (rail.start === undefined) {
    const levels = new Set(rail.taps.map((tap) => 2 * tap.row + (tap.way === "row" ? 1 : 0)));
    return rail.taps.length > 1 && !(levels.size === 1 && rail.taps[0].way === "gap");
  }
  return !rail.taps.every((tap) => isDirect(rail, tap));
}

/** Whether a rail comes from a column beside the rows. */
const isFromColumn = (block, rail) => block.columns.includes(block.values[rail.value].from);

/**
 * The channel from which a tap is reached: that above its row, unless the value comes from below it. A column may be fed
 * from channel 0, and is then below it.
 */
function tapChannel(block, rail, tap) {
  const isBelow = rail.start === tap.row + 1 || (tap.row === 0 && isFromColumn(block, rail));
  return isBelow ? tap.row + 1 : tap.row;
}

/** Where a tap leaves its rail: 2 c in channel c, 2 r + 1 in row r. */
const tapLevel = (block, rail, tap) => (tap.way === "row" ? 2 * tap.row + 1 : 2 * tapChannel(block, rail, tap));

/** The rails that come from a column. */
const railsFrom = (block, id) => block.rails.filter((rail) => block.values[rail.value].from === id);

/** Place the columns from left to right, in the order of their first uses. */
function placeColumns(block) {
  const lanes = block.rails.filter(({ edge, lane }) => edge === "right" && lane !== undefined).map(({ lane }) => lane);
  const uses = new Map();
  for (const id of block.columns) {
    const found = railsFrom(block, id).flatMap((rail) => rail.taps.map((tap) => [tapLevel(block, rail, tap), tapOffset(block, tap, rail.edge)]));
    uses.set(id, found.sort(byNumbers));
  }
  const first = (id) => uses.get(id)[0] ?? [0, 0];
  let edge = -FAR;
  for (const id of [...block.columns].sort((a, b) => byNumbers(first(a), first(b)))) {
    const rows = range(0, Math.min(block.height, Math.max(-1, ...uses.get(id).map(([level]) => level >> 1)) + 1));
    edge = Math.max(edge, beyond(block, "right", rows, 0), ...lanes) + 22;
    block.columnX.set(id, edge);
    edge += block.frames.get(id).w;
  }
}

const byNumbers = (a, b) => a[0] - b[0] || a[1] - b[1];

/** The y of a tap from the top of the child. */
function tapOffset(block, tap, edge) {
  const frame = block.frames.get(tap.child);
  return (edge === "left" ? frame.lefts : frame.rights).get(tap.port) ?? frame.h / 2;
}

/** The x of the vertical of a rail, if it has one. */
function railX(block, rail) {
  const { from, output } = block.values[rail.value];
  return block.columnX.has(from) ? block.columnX.get(from) + block.frames.get(from).outs.get(output) : rail.lane;
}

/** The x of a vertical in the gap beside a child. */
function gapX(block, tap, edge) {
  const [frame, x] = [block.frames.get(tap.child), block.x.get(tap.child)];
  return edge === "left" ? x - frame.axis - LANE * tap.gap : x + frame.w - frame.axis + LANE * tap.gap;
}
