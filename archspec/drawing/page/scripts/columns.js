// Horizontal positions: `columns.py` in JavaScript. Entries of a row stand as near as possible to where they are wanted.

const GAP = 18;
const FIXED = 1e6;

/**
 * The positions of the axes with the least sum of weighted squares of the distances to those wanted. A slot is the room
 * that an entry takes to the `left` and to the `right` of its axis; entries keep their order and do not overlap.
 */
function fitted(slots, wanted, weights, gap = GAP) {
  const offsets = [0];
  for (let i = 1; i < slots.length; i++) offsets.push(offsets[i - 1] + (slots[i - 1].right + gap + slots[i].left));
  const groups = [];
  wanted.forEach((want, i) => {
    groups.push([(want - offsets[i]) * weights[i], weights[i], 1]);
    while (groups.length > 1 && groups.at(-2)[0] / groups.at(-2)[1] >= groups.at(-1)[0] / groups.at(-1)[1]) {
      const last = groups.pop();
      const first = groups.pop();
      groups.push(first.map((part, at) => part + last[at]));
    }
  });
  return groups.flatMap(([total, weight, count]) => Array(count).fill(total / weight)).map((at, i) => at + offsets[i]);
}
