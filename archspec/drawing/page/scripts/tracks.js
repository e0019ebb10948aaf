// The channels between rows: `tracks.py` in JavaScript. Each value that moves sideways in a channel gets a track.

const NEAR = 4;
const APART = 8;

/** A value in a channel: where it comes from above, where it goes below, and other ends of its track. */
const netOf = () => ({ uppers: [], lowers: [], ends: [], track: -1 });

function spanOf({ uppers, lowers, ends }) {
  const xs = [...uppers, ...lowers, ...ends];
  return [Math.min(...xs), Math.max(...xs)];
}

function isStraight(net) {
  const [first, last] = spanOf(net);
  return last - first < 0.5;
}

/** Set the track of each net that is not straight; return the number of tracks. */
function assignTracks(nets) {
  let waiting = nets.filter((net) => !isStraight(net));
  const above = new Map(waiting.map((net) => [net, waiting.filter((other) => other !== net && mustBeAbove(other, net))]));
  const tracks = [];
  while (waiting.length) {
    const unblocked = waiting.filter((net) => !above.get(net).some((other) => waiting.includes(other)));
    const net = leftmost(unblocked.length ? unblocked : waiting);
    waiting = waiting.filter((other) => other !== net);
    const first = Math.max(0, ...above.get(net).map((other) => other.track + 1));
    const roomy = tracks.findIndex((track, i) => i >= first && hasRoom(track, net));
    net.track = roomy < 0 ? Math.max(first, tracks.length) : roomy;
    while (tracks.length <= net.track) tracks.push([]);
    tracks[net.track].push(net);
  }
  return tracks.length;
}

function leftmost(nets) {
  return nets.reduce((best, net) => {
    const [a, b] = [spanOf(best), spanOf(net)];
    return b[0] < a[0] || (b[0] === a[0] && b[1] < a[1]) ? net : best;
  });
}

const mustBeAbove = (net, other) => net.uppers.some((upper) => other.lowers.some((lower) => Math.abs(upper - lower) < NEAR));

function hasRoom(track, net) {
  const [first, last] = spanOf(net);
  return track.every((other) => last + APART < spanOf(other)[0] || spanOf(other)[1] + APART < first);
}
