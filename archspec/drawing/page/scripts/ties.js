// Lines between nodes that use the same weights: `ties.py` in JavaScript.

const TIE_LANE = 8;
const TIE_NEAR = 3;

/** A line for each pair of drawn nodes that use the same weights; those of one tensor share a lane. */
function tieLines(placed) {
  const again = plan.nodes.filter((node) => node.again !== undefined && node.kind === "layer").map((node) => [node.again, node.id]);
  const pairs = new Map();
  for (const [first, second] of [...plan.ties, ...again]) {
    const [one, other] = [drawnFor(placed, first), drawnFor(placed, second)];
    if (one !== null && other !== null && one !== other) pairs.set(`${one}-${other}`, [one, other]);
  }
  const lanes = [...new Set([...pairs.values()].map(([first]) => first))];
  const used = [];
  const ways = new Map();
  return [...pairs.values()].map(([first, second]) => {
    for (const id of [first, second]) {
      if (!ways.has(id)) ways.set(id, wayOut(placed, placed.boxes.get(id) ?? placed.frames.get(id), used));
    }
    const x = -TIE_LANE * (1.5 + lanes.indexOf(first));
    const [start, end] = [ways.get(first), ways.get(second)];
    return { points: [...start, [x, start.at(-1)[1]], [x, end.at(-1)[1]], ...[...end].reverse()], ends: [start[0], end[0]] };
  });
}

/** The node that is drawn for a node: itself, or the closed one around it. */
function drawnFor(placed, id) {
  for (let node = id; node; node = plan.node(node).parent) {
    if (placed.boxes.has(node) || (placed.frames.has(node) && node === id)) return node;
  }
  return null;
}

/** The way from a box to the left of the picture: at the height nearest to its middle that is free. */
function wayOut(placed, [x, y, , h], used) {
  const middle = y + Math.min(h / 2, 24);
  const edge = x - 6;
  const own = [middle, ...[...placed.boxes.values()].flatMap(([, top, , tall]) => [top - 5, top + tall + 5])];
  const heights = [...own, ...own.flatMap((other) => [other - 5, other + 5])];
  heights.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle) || a - b);
  for (const height of heights) {
    if (used.some(([other, at]) => Math.abs(height - other) < TIE_NEAR + 1 && at > 0)) continue;
    if (isFree(placed, [-1e4, height], [edge, height]) && isFree(placed, [edge, middle], [edge, height])) {
      used.push([height, edge]);
      return [[x, middle], [edge, middle], [edge, height]];
    }
  }
  return [[x, middle], [edge, middle], [edge, y - 5]];
}

/** Whether a straight line meets no box, and no line of the same direction. */
function isFree(placed, start, end) {
  const [x0, x1] = [Math.min(start[0], end[0]), Math.max(start[0], end[0])];
  const [y0, y1] = [Math.min(start[1], end[1]), Math.max(start[1], end[1])];
  for (const [x, y, w, h] of placed.boxes.values()) {
    if (x0 < x + w + 3 && x - 3 < x1 && y0 < y + h + 3 && y - 3 < y1) return false;
  }
  const isLevel = start[1] === end[1];
  for (const line of placed.lines) {
    for (let i = 1; i < line.length; i++) {
      const [[ax, ay], [bx, by]] = [line[i - 1], line[i]];
      if (isLevel && Math.abs(ay - by) < 0.05 && Math.abs(ay - y0) < TIE_NEAR && Math.min(ax, bx) < x1) return false;
      if (!isLevel && Math.abs(ax - bx) < 0.05 && Math.abs(ax - x0) < TIE_NEAR && Math.min(ay, by) < y1 && y0 < Math.max(ay, by)) return false;
    }
  }
  return true;
}
