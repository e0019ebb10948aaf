// The frame of a block with its lines: `paths.py` in JavaScript.

/** The frame around a block that is laid out. */
function framed(block) {
  const boxes = [...block.x].filter(([id]) => block.y.has(id)).map(([id, x]) => [block.frames.get(id), x - block.frames.get(id).axis, block.y.get(id)]);
  const lanes = block.rails.map(({ lane }) => lane).filter((lane) => lane !== undefined);
  const passes = [...block.x].filter(([place]) => typeof place === "string").map(([, x]) => x);
  const turns = [...block.turns.values()].map(({ x }) => x);
  const xs = [...lanes, ...passes, ...turns, ...block.tops.values(), ...block.outs.values()];
  const lefts = [...boxes.map(([, x]) => x), ...xs.map((x) => x - 4)];
  const rights = [...boxes.map(([frame, x]) => x + frame.w), ...xs.map((x) => x + 4)];
  let [left, right] = [lefts.length ? Math.min(...lefts) : 0, rights.length ? Math.max(...rights) : 0];
  let heading = [];
  if (!block.isBare) [heading, left, right] = placeHeading(block.node, [...block.tops.values()], left - PAD, right + PAD);
  const frame = frameOf(block.node.id, right - left, block.bottom, -left, true);
  frame.heading = heading.map((x) => x - left);
  frame.items = boxes.map(([inner, x, y]) => [inner, x - left, y]);
  for (const [port, x] of block.tops) frame.tops.set(port, x - left);
  for (const [port, x] of block.outs) frame.outs.set(port, x - left);
  new Drawing(block, frame, left, right).run();
  return frame;
}

class Drawing {
  constructor(block, frame, left, right) {
    Object.assign(this, { block, frame, left, right });
  }

  /** Add the lines of the block to its frame, and the ports at the frame's sides. */
  run() {
    this.block.values.forEach((value, index) => value.uses.forEach((use) => this.use(index, value, use)));
    this.downs = this.frame.paths.filter(({ target }) => !this.block.columnX.has(target));
    for (const rail of this.block.rails) this.rail(rail);
    this.frame.paths.sort((a, b) => (a.stream === "main") - (b.stream === "main")); // where they begin together, the main one is on top
    (this.block.node.inputs ?? []).forEach(({ side }, own) => {
      const ports = { left: this.frame.lefts, right: this.frame.rights }[side];
      if (ports && !ports.has(own)) ports.set(own, this.frame.h / 2);
    });
  }

  /** Draw a value to a use below it, in a column or beside it. */
  use(index, value, use) {
    const { block } = this;
    if (use.way === "down") {
      const last = use.to === undefined ? block.height : block.rowOf.get(use.to);
      let [points, channel] = this.start(index, value);
      for (; channel <= last; channel++) points = [...points, ...this.across(index, channel, points.at(-1)[0], this.exit(index, channel, last, use))];
      this.end(index, value, use, points);
    } else if (use.way === "column") {
      const [points] = this.start(index, value);
      const x = block.columnX.get(use.to) + block.frames.get(use.to).tops.get(use.port);
      this.add(index, value, use, [...points, ...this.across(index, 0, points.at(-1)[0], x), [x, block.y.get(use.to)]], "side");
    } else if (use.way === "beside") this.beside(index, value, use);
  }

  /** The first points of a value, and the channel that they lead to. */
  start(index, value) {
    const { block } = this;
    const { from, output } = value;
    if (block.rowOf.has(from)) {
      const row = block.rowOf.get(from);
      return [[[block.exitX(index, row, from), block.y.get(from) + block.frames.get(from).h]], row + 1];
    }
    if (block.bordered.has(index)) {
      const y = trackY(block, 0, index);
      const isLeft = block.sideOf(value) === "left";
      (isLeft ? this.frame.lefts : this.frame.rights).set(output, y);
      return [[[isLeft ? this.left : this.right, y]], 0];
    }
    return [[[block.tops.get(output) ?? 0, 0]], 0];
  }

  /** The x at which a value leaves a channel. */
  exit(index, channel, last, use) {
    if (channel < last) return this.block.xOf(channel, -1 - index);
    return use.to === undefined ? this.block.outs.get(use.port) : this.block.entryX(use);
  }

  across(index, channel, x, to) {
    if (Math.abs(x - to) < 0.5) return [];
    const y = trackY(this.block, channel, index);
    return [[x, y], [to, y]];
  }

  end(index, value, use, points) {
    const { block } = this;
    const turn = block.turns.get(`${use.to}.${use.port}`);
    let rest;
    if (use.to === undefined) rest = [[block.outs.get(use.port), this.frame.h]];
    else if (turn) {
      const [box, x] = [block.frames.get(use.to), block.x.get(use.to)];
      const y = block.y.get(use.to) + box.h / 2;
      rest = [[points.at(-1)[0], y], [turn.edge === "left" ? x - box.axis : x + box.w - box.axis, y]];
    } else rest = [[block.entryX(use), block.y.get(use.to) + this.dip(use.to, use.port)]];
    this.add(index, value, use, [...points, ...rest], this.stream(value));
  }

  /** How far below the top of a circle a line meets it, away from the axis. */
  dip(id, port) {
    if (plan.node(id).form !== "circle") return 0;
    const [radius, offset] = [this.block.frames.get(id).w / 2, this.block.portOffset(id, port)];
    return radius - Math.sqrt(radius ** 2 - offset ** 2);
  }

  stream(value) {
    if (value.from !== undefined || this.block.isBare) return "main";
    return { top: "main", left: "cross", right: "side" }[this.block.sideOf(value)];
  }

  beside(index, value, use) {
    const { block } = this;
    const [box, target] = [block.frames.get(value.from), block.frames.get(use.to)];
    const y = block.y.get(use.to) + besideOffset(block, target, value.from);
    const [x, to] = [block.x.get(value.from), block.x.get(use.to)];
    const xs = x > to ? [x - box.axis, to + target.w - target.axis] : [x + box.w - box.axis, to - target.axis];
    this.add(index, value, use, xs.map((at) => [at, y]), "side");
  }

  /** Draw a rail to each of its taps. */
  rail(rail) {
    const { block } = this;
    const value = block.values[rail.value];
    const x = railX(block, rail);
    const taps = rail.taps.map((tap) => [tap, tapY(block, rail, tap)]).sort((a, b) => a[1] - b[1]);
    taps.forEach(([tap, y], number) => {
      const start = this.railStart(rail, value, taps[0][1], tap);
      const turn = !isDirect(rail, tap) && x !== undefined ? [[x, start.at(-1)[1]], [x, y]] : [];
      const way = value.uses.some((use) => use.way === "skip" && use.to === tap.child) ? "skip" : rail.edge;
      let dot = x !== undefined && number + 1 < taps.length && tap.way === "row" ? [x, y] : undefined;
      const branches = start.length === 2 && this.isPassed(rail.value, start[1]);
      if (branches && number === 0) dot = start.at(-1);
      const stream = { skip: "skip", left: "cross", right: "side" }[way];
      this.add(rail.value, value, { to: tap.child, port: tap.port }, [...start, ...turn, ...this.tap(rail, tap, y)], stream, dot, branches);
    });
  }

  /** Whether a line of a value to a use below it goes straight from its source to a point. */
  isPassed(index, point) {
    const [x, y] = [hundredth(point[0] - this.left), hundredth(point[1])];
    return this.downs.some(({ value, points: [, [a, b]] }) => value === index && Math.abs(a - x) < 0.05 && b > y - 0.05);
  }

  /** The first points of a rail to a tap; `y` is the height of its first tap. */
  railStart(rail, value, y, tap) {
    const { block } = this;
    if (block.columnX.has(value.from)) return [[railX(block, rail), block.y.get(value.from) + block.frames.get(value.from).h]];
    if (rail.start !== undefined) {
      const [points] = this.start(rail.value, value);
      return block.bordered.has(rail.value) ? points : [...points, [points.at(-1)[0], startY(block, rail, tap)]];
    }
    (rail.edge === "left" ? this.frame.lefts : this.frame.rights).set(value.output, y);
    return [[rail.edge === "left" ? this.left : this.right, y]];
  }

  /** The last points of a tap, from its height on the vertical of the rail. */
  tap(rail, tap, y) {
    const { block } = this;
    const [frame, x] = [block.frames.get(tap.child), block.x.get(tap.child)];
    if (tap.way === "top") {
      const entry = tapEntryX(block, tap);
      return [[entry, y], [entry, block.y.get(tap.child) + this.dip(tap.child, tap.port)]];
    }
    const edge = rail.edge === "left" ? x - frame.axis : x + frame.w - frame.axis;
    const at = block.y.get(tap.child) + tapOffset(block, tap, rail.edge);
    if (tap.way === "row") return [[edge, at]];
    const gap = gapX(block, tap, rail.edge);
    return [[gap, y], [gap, at], [edge, at]];
  }

  add(index, value, use, points, stream, dot, branches = false) {
    const shifted = simplified(points).map(([x, y]) => [hundredth(x - this.left), hundredth(y)]);
    if (shifted.length < 2) return;
    const arrow = use.to !== undefined && !this.block.frames.get(use.to).open;
    const placed = dot && [hundredth(dot[0] - this.left), hundredth(dot[1])];
    this.frame.paths.push({ points: shifted, stream, value: index, source: value.from, target: use.to, port: use.port, arrow, dot: placed, branches });
  }
}

const hundredth = (x) => roundEven(x, 2);

/** The corners of a line: no repeated points, and none on a straight line. */
function simplified(points) {
  const found = [];
  for (const point of points) {
    const last = found.at(-1);
    if (last && Math.abs(last[0] - point[0]) < 0.05 && Math.abs(last[1] - point[1]) < 0.05) continue;
    if (found.length > 1 && isOnLine(found.at(-2), last, point)) found.pop();
    found.push(point);
  }
  return found;
}

function isOnLine(a, b, c) {
  for (const axis of [0, 1]) {
    if (Math.abs(a[axis] - b[axis]) < 0.05 && Math.abs(b[axis] - c[axis]) < 0.05) return (b[1 - axis] - a[1 - axis]) * (c[1 - axis] - b[1 - axis]) >= 0;
  }
  return false;
}
