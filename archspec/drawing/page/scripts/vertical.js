// The y of everything in a block: `vertical.py` in JavaScript. Channel c is above row c.

const TRACK = 7;
const TRACK_TOP = 9;
const TRACK_BOTTOM = 13;

/**
 * The net of a value in a channel, made when it is first needed; with an edge, that to the lane on this side, which is
 * apart so that what goes aside and what goes down are told apart.
 */
function netIn(block, channel, value, edge = "") {
  const key = `${channel}.${value}.${edge}`;
  if (!block.nets.has(key)) block.nets.set(key, { ...netOf(), channel });
  return block.nets.get(key);
}

function findNets(block) {
  block.values.forEach((value, index) => {
    const net = (channel) => netIn(block, channel, index);
    for (const [row, key] of block.chains[index]) {
      if (value.uses.some(({ way }) => way !== "beside")) net(row + 1).uppers.push(block.exitX(index, row, key));
      if (key < 0) net(row).lowers.push(block.xOf(row, key));
    }
    if (value.from === undefined) {
      if (block.bordered.has(index)) net(0).ends.push(block.sideOf(value) === "left" ? -FAR : FAR);
      else if (block.tops.has(value.output)) net(0).uppers.push(block.tops.get(value.output));
    }
    for (const use of value.uses) {
      if (use.to === undefined) net(block.height).lowers.push(block.outs.get(use.port));
      else if (use.way === "down") net(block.rowOf.get(use.to)).lowers.push(block.entryX(use));
      else if (use.way === "column") net(0).lowers.push(block.columnX.get(use.to) + block.frames.get(use.to).tops.get(use.port));
    }
  });
  for (const rail of block.rails) findRailNets(block, rail);
}

function findRailNets(block, rail) {
  let x = railX(block, rail);
  if (rail.start !== undefined && rail.lane !== undefined) {
    const own = netIn(block, rail.start, rail.value, block.bordered.has(rail.value) ? "" : rail.edge);
    if (!block.bordered.has(rail.value)) own.uppers.push(block.upperX(rail.value, rail.start) ?? 0);
    own.lowers.push(rail.lane);
  }
  for (const tap of rail.taps) {
    if (tap.way === "row") continue;
    const channel = tapChannel(block, rail, tap);
    const net = netIn(block, channel, rail.value);
    if (!isDirect(rail, tap)) {
      x ??= rail.edge === "left" ? -FAR : FAR;
      const isLast = rail.lane !== undefined && levelsOf(rail)[1] === 2 * channel;
      (isLast ? net.uppers : net.ends).push(x);
    }
    const end = tap.way === "gap" ? gapX(block, tap, rail.edge) : tapEntryX(block, tap);
    (channel === tap.row ? net.lowers : net.uppers).push(end);
  }
}

/** The x of a tap that enters at the top. */
const tapEntryX = (block, tap) => block.x.get(tap.child) + block.portOffset(tap.child, tap.port);

function placeVertically(block) {
  block.trackTop = [];
  block.rowTop = [];
  let y = block.isBare ? 0 : HEAD;
  const channels = Array.from({ length: block.height + 1 }, () => []);
  for (const net of block.nets.values()) channels[net.channel].push(net);
  for (const [channel, nets] of channels.entries()) {
    y = Math.max(y, ...floors(block, 2 * channel));
    block.trackTop.push(y + TRACK_TOP);
    y += channelHeight(block, channel, assignTracks(nets));
    if (channel === block.height) break;
    y = Math.max(y, ...floors(block, 2 * channel + 1));
    block.rowTop.push(y);
    y += placeRow(block, channel, y);
  }
  block.bottom = y;
  for (const id of block.columns) {
    const h = block.frames.get(id).h;
    const taps = railsFrom(block, id).flatMap((rail) => rail.taps.map((tap) => tapY(block, rail, tap)));
    block.y.set(id, Math.max((taps.length ? Math.min(...taps) : 0) - 14 - h, columnTop(block)));
    block.bottom = Math.max(block.bottom, block.y.get(id) + h + (block.isBare ? 0 : FOOT));
  }
}

function channelHeight(block, channel, tracks) {
  const room = tracks ? TRACK_TOP + (tracks - 1) * TRACK + TRACK_BOTTOM : 0;
  if (channel === 0) return block.isBare || tracks ? room : 12;
  if (channel === block.height) return block.isBare ? room : Math.max(room, FOOT);
  return Math.max(room, TRACK_TOP + TRACK_BOTTOM);
}

/** The least y of a column: below the tracks of channel 0 if a value enters it from there. */
function columnTop(block) {
  const tracks = [...block.nets.values()].filter((net) => net.channel === 0).map((net) => net.track);
  const below = block.trackTop[0] + Math.max(-1, ...tracks) * TRACK + TRACK_BOTTOM;
  return Math.max(tracks.length ? below : 0, block.isBare ? 0 : HEAD + 8);
}

/** The least y of a row or channel at which the columns whose first use is there end above it. */
function floors(block, level) {
  return block.columns.flatMap((id) => {
    const taps = railsFrom(block, id).flatMap((rail) => rail.taps.map((tap) => [rail, tap, tapLevel(block, rail, tap)]));
    if (!taps.length || Math.min(...taps.map(([, , at]) => at)) !== level) return [];
    const offsets = taps.filter(([, , at]) => at === level).map(([rail, tap]) => tapOffset(block, tap, rail.edge));
    return [columnTop(block) + block.frames.get(id).h + 14 - (level % 2 ? Math.min(...offsets) : TRACK_TOP)];
  });
}

/** Set the y of the children in a row, and return its height. */
function placeRow(block, row, y) {
  const frames = block.rows[row].filter((key) => key >= 0).map((key) => block.frames.get(key));
  const besides = (frame) => plan.node(frame.id).beside ?? [];
  const tallest = Math.max(0, ...frames.map(({ h }) => h), ...frames.flatMap(besides).map((id) => block.frames.get(id).h));
  const isOpen = frames.some(({ open }) => open);
  for (const frame of frames) block.y.set(frame.id, isOpen ? y : y + (tallest - frame.h) / 2);
  for (const frame of frames) {
    for (const id of besides(frame)) block.y.set(id, block.y.get(frame.id) + besideOffset(block, frame, id) - block.frames.get(id).h / 2);
  }
  return tallest;
}

/** The y at which a line from a node beside a child enters it, from the top of the child. */
function besideOffset(block, frame, id) {
  const { port } = block.values.find((value) => value.from === id && value.uses.length).uses[0];
  return frame.rights.get(port) ?? frame.lefts.get(port) ?? frame.h / 2;
}

/** The y at which a tap leaves the vertical of its rail. */
function tapY(block, rail, tap) {
  if (tap.way === "row") return block.y.get(tap.child) + tapOffset(block, tap, rail.edge);
  return trackY(block, tapChannel(block, rail, tap), rail.value);
}

/** The y at which a rail that begins in a channel turns aside, on its way to a tap. */
function startY(block, rail, tap) {
  const isShared = isDirect(rail, tap) || block.bordered.has(rail.value);
  return trackY(block, rail.start, rail.value, isShared ? "" : rail.edge);
}

/** The y of the track of a value in a channel; with an edge, of that to the lane on this side. */
function trackY(block, channel, value, edge = "") {
  return block.trackTop[channel] + Math.max(0, block.nets.get(`${channel}.${value}.${edge}`).track) * TRACK;
}

/** Set the x of what stands in columns and beside children. */
function placeBeside(block) {
  for (const [id, x] of block.columnX) block.x.set(id, x + block.frames.get(id).axis);
  for (const id of block.rowOf.keys()) {
    const [frame, x] = [block.frames.get(id), block.x.get(id)];
    (plan.node(id).beside ?? []).forEach((other, i) => {
      const box = block.frames.get(other);
      const edge = i === 0 ? x + frame.w - frame.axis + BESIDE : x - frame.axis - BESIDE - box.w;
      block.x.set(other, edge + box.axis);
    });
  }
}
