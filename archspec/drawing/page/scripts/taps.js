// How values reach their uses from the side: `taps.py` in JavaScript.
//
// A rail is a value on its way to taps on one `edge`; `start` is the channel in which it begins, undefined if it comes
// from the border or a column; `lane` is the x of its vertical. A tap enters a `child` in a `row`: its `way` is "row"
// (from the outside), "gap" (from the channel next to the row, beside the child) or "top" (from the channel above).

const LANE = 9;

/** Whether a tap is reached from the channel in which the rail begins, without a lane. */
const isDirect = (rail, tap) => tap.way !== "row" && (rail.start === tap.row || rail.start === tap.row + 1);

/** The range of the lane of a rail: channel c is level 2 c, and row r is level 2 r + 1. */
function levelsOf(rail) {
  const found = rail.taps.filter((tap) => !isDirect(rail, tap)).map((tap) => 2 * tap.row + (tap.way === "row" ? 1 : 0));
  if (rail.start !== undefined) found.push(2 * rail.start);
  return [Math.min(...found), Math.max(...found)];
}

/** The rails of all values that enter children from the side or skip rows; those of `fromTop` begin in channel 0. */
function railsOf(block, fromTop) {
  const rails = new Map();
  const gaps = new Map();
  const skipped = new Map();
  block.values.forEach((value, index) => {
    const start = block.rowOf.has(value.from) ? block.rowOf.get(value.from) + 1 : fromTop.has(index) ? 0 : undefined;
    for (const { to, port, way } of value.uses) {
      if (!["left", "right", "skip"].includes(way) || to === undefined) continue;
      const edge = way === "right" ? "right" : "left";
      const row = block.rowOf.get(to);
      const tap = { child: to, port, row, way: tapWay(block, block.frames.get(to), { to, port, way }, edge, row, skipped), gap: 0 };
      if (tap.way === "gap") {
        tap.gap = (gaps.get(`${to}.${edge}`) ?? 0) + 1;
        gaps.set(`${to}.${edge}`, tap.gap);
      }
      const key = `${index}.${edge}`;
      if (!rails.has(key)) rails.set(key, { value: index, edge, start, taps: [], lane: undefined });
      rails.get(key).taps.push(tap);
    }
  });
  for (const [id, ports] of skipped) {
    const frame = block.frames.get(id);
    const taken = [...ports, ...[...frame.lefts.keys()].filter((port) => !ports.includes(port))];
    const places = spread(frame.h / 2, taken.length, Math.min(8, frame.h / (taken.length + 0.5)));
    taken.forEach((port, i) => frame.lefts.set(port, places[i]));
  }
  return [...rails.values()];
}

function tapWay(block, frame, use, edge, row, skipped) {
  const entries = block.rows[row];
  const beside = (plan.node(use.to).beside ?? []).length;
  const isOutermost = (edge === "left" ? entries[0] : entries.at(-1)) === use.to && beside < (edge === "left" ? 2 : 1);
  if (use.way !== "skip") return isOutermost ? "row" : "gap";
  const isFree = plan.node(use.to).form !== "circle" || !(frame.lefts.size || skipped.has(use.to));
  if (frame.open || !isOutermost || !isFree) return "top";
  skipped.set(use.to, [...(skipped.get(use.to) ?? []), use.port]);
  return "row";
}
