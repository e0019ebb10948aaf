// The boxes of a picture with their ports and lines: `frames.py` in JavaScript.
//
// A frame has the node `id`, its size `w` and `h`, the x of its `axis`, and whether it is `open`; by the number of an
// input or output the ports `tops` and `outs` (x), `lefts` and `rights` (y); the x of the texts of its `heading`; `items`,
// the frames inside with their corners, and `paths`, the lines between them. Coordinates are from the top left corner of
// the frame around it.

const HEAD = 26;
const PAD = 14;
const FOOT = 12;
const HEADING_SIDE = 13;
const HEADING_GAP = 7;
const WIDEST_SIDE = 190;

function frameOf(id, w, h, axis, open) {
  return { id, w, h, axis, open, tops: new Map(), outs: new Map(), lefts: new Map(), rights: new Map(), heading: [], items: [], paths: [] };
}

/** The box of a closed node; the ports at the top are spread in the order of the inputs. */
function closedFrame(id) {
  const node = plan.node(id);
  const [w, h] = node.size;
  const frame = frameOf(id, w, h, w / 2, false);
  const count = node.outputs ?? 1;
  spreadTops(frame, portsAt(node, "top"));
  frame.outs = new Map(spread(w / 2, count, Math.min(26, (w - 16) / Math.max(1, count))).entries());
  for (const [side, ports] of [["left", frame.lefts], ["right", frame.rights]]) {
    const own = portsAt(node, side);
    const places = spread(h / 2, own.length, Math.min(8, h / (own.length + 0.5)));
    own.forEach((port, i) => ports.set(port, places[i]));
  }
  return frame;
}

/** The numbers of the inputs at a side. */
const portsAt = (node, side) => (node.inputs ?? []).flatMap((input, port) => (input.side === side ? [port] : []));

/** Spread the ports at the top of a closed box, in an order from left to right. */
function spreadTops(frame, order) {
  const room = plan.node(frame.id).form === "circle" ? 5 : Math.min(26, (frame.w - 16) / Math.max(1, order.length));
  const places = spread(frame.axis, order.length, room);
  frame.tops = new Map(order.map((port, i) => [port, places[i]]));
}

/** Places around a middle, with equal steps. */
const spread = (middle, count, step) => Array.from({ length: count }, (_, i) => middle + (i - (count - 1) / 2) * step);

/**
 * Place the texts of a heading between the lines that enter at `tops`, in a frame from `start` to `end`: the x of each
 * text, and the sides of the frame, which is widened if necessary.
 */
function placeHeading({ heading = [], badge }, tops, start, end) {
  const badgeRoom = badge ? badge[1] + 24 : 0;
  if (heading.length && tops.length) {
    const first = Math.min(...tops);
    const room = heading[0][1] + HEADING_SIDE + HEADING_GAP;
    if (first - start < room && room <= WIDEST_SIDE) start = first - room;
  }
  let x = start + HEADING_SIDE;
  const sorted = [...tops].sort((a, b) => a - b);
  const places = heading.map(([, width]) => {
    for (const top of sorted) if (x - HEADING_GAP < top && top < x + width + HEADING_GAP) x = top + HEADING_GAP;
    const at = x;
    x += width + HEADING_GAP;
    return at;
  });
  return [places, start, Math.max(end, x + badgeRoom + (badgeRoom ? 0 : HEADING_SIDE - HEADING_GAP))];
}
