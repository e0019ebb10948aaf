// The x of everything in the rows of a block: `horizontal.py` in JavaScript.

function placeRows(block) {
  const [above, below, entered] = links(block);
  block.rows.forEach((entries, row) => {
    for (const key of entries) {
      const place = placeOf(row, key);
      const isOwn = key < 0 && block.values[-1 - key].from === undefined && isMain(block, block.values[-1 - key].output);
      if (isOwn || (above.get(place) ?? []).some(([up]) => entered.has(up))) entered.add(place);
    }
    const main = entries.filter((key) => key >= 0 && entered.has(key));
    const only = main.length === 1 && !block.isBare ? main[0] : null;
    fitRow(block, row, entries.map(() => 0), entries.map((key) => (key === only ? FIXED : 1)));
  });
  let wide = 0;
  for (let row = 1; row < block.height; row++) if (widthOf(block, row) > widthOf(block, wide)) wide = row;
  for (let row = wide + 1; row < block.height; row++) pull(block, row, above, entered, above);
  for (let row = wide - 1; row >= 0; row--) pull(block, row, below, entered, above);
}

/** Whether an input is the main one, or one at the top if there is none. */
function isMain(block, own) {
  return block.node.main === undefined ? block.node.inputs[own].side === "top" : own === block.node.main;
}

/** What each entry is connected to above and below, with offsets; and the entries that a top input enters. */
function links(block) {
  const [above, below, entered] = [new Map(), new Map(), new Set()];
  const add = (map, place, link) => map.set(place, [...(map.get(place) ?? []), link]);
  const link = (upper, lower, offset) => {
    add(above, lower, [upper, offset]);
    add(below, upper, [lower, -offset]);
  };
  block.values.forEach((value, index) => {
    const chain = block.chains[index];
    for (const [row, key] of chain) {
      if (key >= 0 || !chain.has(row - 1)) continue;
      const upper = chain.get(row - 1);
      link(placeOf(row - 1, upper), placeOf(row, key), upper >= 0 ? block.outOffset(upper, value.output) : 0);
    }
    for (const { to, port, way } of value.uses) {
      if (way !== "down" || !block.rowOf.has(to)) continue;
      const row = block.rowOf.get(to);
      const upper = chain.get(row - 1);
      if (upper !== undefined) {
        const leaving = upper >= 0 ? block.outOffset(upper, value.output) : 0;
        const entering = block.frames.get(to).open ? block.portOffset(to, port) : 0;
        link(placeOf(row - 1, upper), to, leaving - entering);
      }
      if (value.from === undefined && isMain(block, value.output)) entered.add(to);
    }
  });
  return [above, below, entered];
}

function widthOf(block, row) {
  const entries = block.rows[row];
  const several = entries.filter((key) => key >= 0).length > 1 ? 1 : 0;
  return entries.reduce((sum, key) => {
    const { left, right } = block.slots.get(placeOf(row, key));
    return sum + (left + right + GAP);
  }, 0) + several * FAR;
}

/** Move the entries of a row towards those that they are connected to. */
function pull(block, row, links, entered, above) {
  const entries = block.rows[row];
  const places = entries.map((key) => placeOf(row, key));
  const wanted = (place, around) => {
    const found = (around.get(place) ?? []).map(([other, offset]) => block.x.get(other) + offset);
    return found.length ? found.reduce((a, b) => a + b, 0) / found.length : block.x.get(place);
  };
  if (entries.length === 1 && entries[0] >= 0) {
    block.x.set(places[0], block.isBare ? wanted(places[0], above.get(places[0])?.length ? above : links) : 0);
    return;
  }
  const wants = places.map((place) => wanted(place, links));
  const weights = entries.map((key) => (key < 0 ? 4 : 1));
  const isMain = (key, i) => (block.isBare ? key < 0 || plan.node(key).kind !== "output" : entered.has(places[i]));
  const main = entries.map((key, i) => (isMain(key, i) ? i : -1)).filter((i) => i >= 0);
  if (main.length === 1 && entries[main[0]] >= 0) {
    weights[main[0]] = FIXED;
    if (!block.isBare) wants[main[0]] = 0;
  }
  fitRow(block, row, wants, weights);
}

function fitRow(block, row, wants, weights) {
  const places = block.rows[row].map((key) => placeOf(row, key));
  const xs = fitted(places.map((place) => block.slots.get(place)), wants, weights);
  places.forEach((place, i) => block.x.set(place, xs[i]));
}

/** Place the node's own ports at the top and at the bottom: the main ones on the axis. */
function placePorts(block) {
  const wants = new Map();
  (block.node.inputs ?? []).forEach(({ side }, own) => side === "top" && wants.set(own, []));
  const leaving = new Map();
  block.values.forEach((value, index) => {
    const chain = block.chains[index];
    if (value.from === undefined && wants.has(value.output)) {
      const found = wants.get(value.output);
      if (chain.has(0)) found.push(block.xOf(0, chain.get(0)));
      for (const { to, port, way } of value.uses) {
        if (way === "down" && block.rowOf.get(to) === 0) found.push(block.x.get(to) + block.portOffset(to, port));
      }
    }
    for (const { to, port } of value.uses) {
      if (to !== undefined) continue;
      const key = chain.get(block.height - 1);
      leaving.set(port, key === undefined ? [] : [block.exitX(index, block.height - 1, key)]);
    }
  });
  if (wants.has(block.node.main)) wants.set(block.node.main, [0]);
  block.tops = spaced(block, wants, block.node.main);
  block.outs = spaced(block, leaving, block.contents.out ?? 0);
}

function spaced(block, wants, main) {
  const middles = new Map([...wants].map(([port, xs]) => [port, xs.length ? xs.reduce((a, b) => a + b, 0) / xs.length : 0]));
  const rounded = (port) => Math.round(middles.get(port) * 1000) / 1000;
  const order = [...middles.keys()].sort((a, b) => rounded(a) - rounded(b) || a - b);
  const slots = order.map(() => ({ left: 0, right: 0 }));
  const xs = fitted(slots, order.map((port) => middles.get(port)), order.map((port) => (port === main ? FIXED : 1)), 16);
  return new Map(order.map((port, i) => [port, xs[i]]));
}

/** Order the ports at the top of closed children by where their values come from. */
function orderEntries(block) {
  const entering = new Map();
  const aside = new Map();
  const enter = (id, x, port) => entering.set(id, [...(entering.get(id) ?? []), [x, port]]);
  block.values.forEach((value, index) => {
    for (const { to, port, way } of value.uses) {
      if (way === "down" && block.rowOf.has(to)) enter(to, block.upperX(index, block.rowOf.get(to)) ?? -FAR, port);
    }
  });
  for (const { edge, taps } of block.rails) {
    for (const { child, port, way } of taps) {
      if (way === "top") enter(child, -FAR, port);
      aside.set(child, (aside.get(child) ?? new Set()).add(edge));
    }
  }
  for (const [id, unsorted] of entering) {
    if (block.frames.get(id).open) continue;
    let found = unsorted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    if (plan.node(id).form === "circle" && found.length === 2) found = turned(block, id, found, aside.get(id) ?? new Set());
    spreadTops(block.frames.get(id), found.map(([, port]) => port));
  }
}

/** Let values that come from the sides of a circle turn into its side; return those that enter at the top. */
function turned(block, id, found, taken) {
  const row = block.rowOf.get(id);
  const [before, after] = [-1, 1].map((step) => block.rows[row][block.rows[row].indexOf(id) + step]);
  const x = block.x.get(id);
  const [[first, one], [last, other]] = found;
  const start = before === undefined ? -FAR : block.xOf(row, before) + block.slots.get(placeOf(row, before)).right;
  const end = after === undefined ? FAR : block.xOf(row, after) - block.slots.get(placeOf(row, after)).left;
  const isLeft = !taken.has("left") && start + LANE < first && first < x - 20;
  const isRight = !taken.has("right") && x + 20 < last && last < end - LANE;
  let left = found;
  if (isLeft && (isRight || Math.abs(last - x) < 0.5)) {
    block.turns.set(`${id}.${one}`, { child: id, edge: "left", x: first });
    left = left.slice(1);
  }
  if (isRight && (isLeft || Math.abs(first - x) < 0.5)) {
    block.turns.set(`${id}.${other}`, { child: id, edge: "right", x: last });
    left = left.slice(0, -1);
  }
  return left;
}

/** Set how far each row reaches to the left and to the right. */
function measureRows(block) {
  block.left = [];
  block.right = [];
  const turns = block.rows.map(() => []);
  for (const { child, x } of block.turns.values()) turns[block.rowOf.get(child)].push(x);
  block.rows.forEach((entries, row) => {
    const turned = turns[row];
    const reach = (side, sign) => entries.map((key) => block.xOf(row, key) + sign * block.slots.get(placeOf(row, key))[side]);
    block.left.push(Math.min(...reach("left", -1), ...turned));
    block.right.push(Math.max(...reach("right", 1), ...turned));
  });
}
