// A block that is laid out, in coordinates around its axis (x = 0; y = 0 is its top): `block.py` in JavaScript.
//
// An entry of a row is the id of a child or, as -1 - v, the value v that passes. `x` has the axes of entries (those of
// children by id, those of passing values by row and value), `y` the tops of children.

const BESIDE = 16;
const FAR = 1e5;

/** The place of an entry in maps. */
const placeOf = (row, key) => (key >= 0 ? key : `${row}|${key}`);

class Block {
  constructor(node, frames) {
    this.node = node;
    this.frames = frames;
    this.contents = node.contents;
    this.values = node.contents.values;
    this.columns = node.contents.columns ?? [];
    this.isBare = node.kind === "root" || node.kind === "group";
    this.rows = (node.contents.rows ?? []).map((entries) => entries.map((entry) => (typeof entry === "object" ? -1 - entry.value : entry)));
    this.height = this.rows.length;
    this.rowOf = new Map();
    this.passing = new Map();
    this.rows.forEach((entries, row) => {
      for (const key of entries) {
        if (key >= 0) this.rowOf.set(key, row);
        else this.passing.set(-1 - key, [...(this.passing.get(-1 - key) ?? []), row]);
      }
    });
    this.x = new Map();
    this.y = new Map();
    this.tops = new Map();
    this.outs = new Map();
    this.turns = new Map();
    this.nets = new Map();
    this.columnX = new Map();
    this.bordered = this.findBordered();
    this.makeEquallyWide();
    const fromTop = this.values.map((value, index) => index).filter((index) => this.beginsAtTop(index));
    this.rails = railsOf(this, new Set(fromTop));
    const gaps = new Map();
    for (const { edge, taps } of this.rails) {
      for (const { child, gap } of taps) {
        const lanes = gaps.get(child) ?? { left: 0, right: 0 };
        lanes[edge] = Math.max(lanes[edge], LANE * gap);
        gaps.set(child, lanes);
      }
    }
    this.slots = new Map();
    this.rows.forEach((entries, row) => entries.forEach((key) => this.slots.set(placeOf(row, key), this.slotOf(key, gaps.get(key)))));
    this.chains = this.values.map((_, value) => this.findChain(value));
  }

  sideOf(value) {
    return this.node.inputs[value.output].side;
  }

  /** The values that enter at a side of the node and continue in channel 0. */
  findBordered() {
    const found = new Set();
    this.values.forEach((value, index) => {
      if (value.from !== undefined || this.sideOf(value) === "top") return;
      const isRight = this.sideOf(value) === "right";
      if ((isRight && this.columns.length) || value.uses.some(({ way }) => way === "down" || way === "column")) found.add(index);
    });
    return found;
  }

  /** Whether a value is an input of the node that begins in channel 0. */
  beginsAtTop(index) {
    const value = this.values[index];
    return this.bordered.has(index) || (value.from === undefined && this.sideOf(value) === "top");
  }

  /** Give closed layers of one type that stand side by side the same width. */
  makeEquallyWide() {
    for (const entries of this.rows) {
      const row = entries.filter((key) => key >= 0).map((key) => this.frames.get(key));
      const kinds = new Set(row.map(({ id, open }) => `${plan.node(id).kind}|${plan.node(id).type}|${open}`));
      if (row.length < 2 || kinds.size > 1 || plan.node(row[0].id).kind !== "layer" || row[0].open) continue;
      const widest = Math.max(...row.map(({ w }) => w));
      for (const frame of row) {
        frame.outs = new Map([...frame.outs].map(([port, x]) => [port, x + (widest - frame.w) / 2]));
        frame.w = widest;
        frame.axis = widest / 2;
        spreadTops(frame, [...frame.tops.keys()]);
      }
    }
  }

  /** The room of an entry: with what stands beside it, and lanes in the gaps around it. */
  slotOf(key, lanes = { left: 0, right: 0 }) {
    if (key < 0) return { left: 4, right: 4 };
    const frame = this.frames.get(key);
    const [right, left] = [...(plan.node(key).beside ?? []).map((id) => this.frames.get(id).w + BESIDE), 0, 0];
    return { left: frame.axis + left + lanes.left, right: frame.w - frame.axis + right + lanes.right };
  }

  /** The x of a port at the top of a child, from the child's axis. */
  portOffset(id, port) {
    const frame = this.frames.get(id);
    return (frame.tops.get(port) ?? frame.axis) - frame.axis;
  }

  /** The x of an output of a child, from the child's axis. */
  outOffset(id, output) {
    const frame = this.frames.get(id);
    return (frame.outs.get(output) ?? frame.axis) - frame.axis;
  }

  /** The entries from which a value goes on downwards, by their rows: where it passes, and its source. */
  findChain(value) {
    const found = new Map((this.passing.get(value) ?? []).map((row) => [row, -1 - value]));
    const source = this.values[value].from;
    if (this.rowOf.has(source)) found.set(this.rowOf.get(source), source);
    return found;
  }

  xOf(row, key) {
    return this.x.get(placeOf(row, key));
  }

  /** The x at which a value leaves an entry at the bottom. */
  exitX(value, row, key) {
    return this.xOf(row, key) + (key >= 0 ? this.outOffset(key, this.values[value].output) : 0);
  }

  /** The x at which a value enters a child at the top, or from which it turns to it. */
  entryX({ to, port }) {
    const turn = this.turns.get(`${to}.${port}`);
    return turn ? turn.x : this.x.get(to) + this.portOffset(to, port);
  }

  /** The x at which a value comes into a channel from above, if it does. */
  upperX(value, channel) {
    const key = this.chains[value].get(channel - 1);
    if (key !== undefined) return this.exitX(value, channel - 1, key);
    const { from, output } = this.values[value];
    return channel === 0 && from === undefined && !this.bordered.has(value) ? this.tops.get(output) : undefined;
  }
}
