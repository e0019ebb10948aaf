// Lines between nodes that use the same weights: `ties.py` in JavaScript.

const TIE_LANE = 8;
const TIE_NEAR = 3;
const TIE_FAR = 1e4;

/** A line for each pair of drawn nodes that use the same weights; those of one tensor share a lane. One is on the left,
 * unless it crosses fewer frames elsewhere. */
function tieLines(placed) {
  const again = plan.nodes.filter((node) => node.again !== undefined && node.kind === "layer").map((node) => [node.again, node.id]);
  const pairs = new Map();
  for (const [first, second] of [...plan.ties, ...again]) {
    const [one, other] = [drawnFor(placed, first), drawnFor(placed, second)];
    if (one !== null && other !== null && one !== other) pairs.set(`${one}-${other}`, [one, other]);
  }
  const routes = [...pairs.values()].map((pair) => [pair, routeOf(placed, ...pair)]);
  const lanes = (side) => [...new Set(routes.filter(([, { sides }]) => sides.every((own) => own === side)).map(([[first]]) => first))];
  const numbers = { left: lanes("left"), right: lanes("right") };
  const rights = [...[...shapesOf(placed).values()].map(([x, , w]) => x + w), ...placed.lines.flat().map(([x]) => x)];
  const right = rights.reduce((most, x) => Math.max(most, x), 0);
  const used = [];
  const ways = new Map();
  return routes.map(([pair, route]) => {
    const step = TIE_LANE * (1.5 + numbers[route.sides[0]].indexOf(pair[0]));
    const x = route.between ?? (route.sides[0] === "left" ? -step : right + step);
    const [start, end] = pair.map((id, i) => {
      const side = route.sides[i];
      const limit = limitOf(route, side);
      const key = `${id} ${side} ${limit}`;
      if (!ways.has(key)) ways.set(key, wayOut(placed, shapesOf(placed).get(id), used, side, limit));
      return ways.get(key);
    });
    return { points: [...start, [x, start.at(-1)[1]], [x, end.at(-1)[1]], ...[...end].reverse()], ends: [start[0], end[0]] };
  });
}

const shapesOf = ({ frames, boxes }) => new Map([...frames, ...boxes]);

/** The way between two nodes that crosses the fewest frames of other nodes. */
function routeOf(placed, first, second) {
  const routes = [{ sides: ["left", "left"] }, { sides: ["right", "right"] }];
  const [[left, , width], [other, , otherWidth]] = [outermost(placed, first, second), outermost(placed, second, first)];
  if (left + width + 2 * TIE_LANE < other) routes.push({ sides: ["right", "left"], between: (left + width + other) / 2 });
  else if (other + otherWidth + 2 * TIE_LANE < left) routes.push({ sides: ["left", "right"], between: (other + otherWidth + left) / 2 });
  const counts = routes.map((route) => countCrossed(placed, route, [first, second]));
  return routes[counts.indexOf(Math.min(...counts))];
}

/** The x up to which nothing may be in the way of a line from a side of a node. */
const limitOf = ({ between }, side) => between ?? (side === "right" ? TIE_FAR : -TIE_FAR);

/** The place of the outermost frame around a node that is not around another one, or of the node itself. */
function outermost(placed, id, other) {
  const around = plan.path(other);
  const outer = plan.path(id).find((node) => node === id || (placed.frames.has(node) && !around.includes(node)));
  return shapesOf(placed).get(outer);
}

/** The number of frames that are not around a node, but in the way of a line from it. */
function countCrossed(placed, route, ends) {
  let count = 0;
  ends.forEach((id, i) => {
    const side = route.sides[i];
    const [left, top, width, height] = shapesOf(placed).get(id);
    const [middle, around, limit] = [top + Math.min(height / 2, 24), plan.path(id), limitOf(route, side)];
    for (const [other, [x, y, w, h]] of placed.frames) {
      const isBeside = side === "right" ? left + width <= x && x < limit : limit < x + w && x + w <= left;
      if (!around.includes(other) && isBeside && y <= middle && middle <= y + h) count++;
    }
  });
  return count;
}

/** The node that is drawn for a node: itself, or the closed one around it. */
function drawnFor(placed, id) {
  for (let node = id; node; node = plan.node(node).parent) {
    if (placed.boxes.has(node) || (placed.frames.has(node) && node === id)) return node;
  }
  return null;
}

/** The way from a side of a box to the x of its end: at the height nearest to its middle that is free. */
function wayOut(placed, [left, y, w, h], used, side, limit) {
  const middle = y + Math.min(h / 2, 24);
  const x = side === "left" ? left : left + w;
  const edge = side === "left" ? x - 6 : x + 6;
  const own = [middle, ...[...placed.boxes.values()].flatMap(([, top, , tall]) => [top - 5, top + tall + 5])];
  const heights = [...own, ...own.flatMap((other) => [other - 5, other + 5])];
  heights.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle) || a - b);
  for (const height of heights) {
    if (used.some(([other, at]) => Math.abs(height - other) < TIE_NEAR + 1 && at > 0)) continue;
    if (isFree(placed, [limit, height], [edge, height]) && isFree(placed, [edge, middle], [edge, height])) {
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
      if (isLevel && Math.abs(ay - by) < 0.05 && Math.abs(ay - y0) < TIE_NEAR && Math.min(ax, bx) < x1 && x0 < Math.max(ax, bx)) return false;
      if (!isLevel && Math.abs(ax - bx) < 0.05 && Math.abs(ax - x0) < TIE_NEAR && Math.min(ay, by) < y1 && y0 < Math.max(ay, by)) return false;
    }
  }
  return true;
}
