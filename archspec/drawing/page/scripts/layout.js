// The layout of a picture: each open node is laid out alone; its parent sees a box with ports.

/** The frame of the model, with the contents of open nodes laid out; `isOpen` is asked of each node that can be. */
const layout = (isOpen) => laidOut(0, isOpen);

const LAYOUT_STEPS = [placeRows, placePorts, orderEntries, measureRows, placeLanes, placeColumns, findNets, placeVertically, placeBeside];

function laidOut(id, isOpen) {
  const node = plan.node(id);
  const isBare = node.kind === "root" || node.kind === "group";
  if (!node.contents || !(isBare || isOpen(id))) return closedFrame(id);
  const frames = new Map(plan.kids(id).map((child) => [child, laidOut(child, isOpen)]));
  const block = new Block(node, frames);
  for (const step of LAYOUT_STEPS) step(block);
  return framed(block);
}
