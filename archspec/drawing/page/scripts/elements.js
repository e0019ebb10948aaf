// The elements of SVG pictures: `elements.py` in JavaScript. Both write the same text.

const TIP = 7;
const TIP_WIDTH = 3.2;

/** A coordinate with one digit after the point. */
const coordinate = (value) => String(roundEven(value, 1) + 0);

/** A text without characters that do not print, for the content of an element or an attribute. */
const clean = (text) => escaped(text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : "\ufffd")));

const tooltip = (text) => `<title>${clean(text)}</title>`;

/**
 * A line of text; one with characters of unknown width is made to fit its width. A halo is a second text below the
 * first: not every program that reads SVG knows `paint-order`.
 */
function textOf(x, y, [text, width], color, size, { weight, anchor, italic, halo } = {}) {
  let extra = weight ? ` font-weight="${weight}"` : "";
  extra += anchor ? ` text-anchor="${anchor}"` : "";
  extra += italic ? ' font-style="italic"' : "";
  if (!isKnown(text)) extra += ` textLength="${coordinate(width)}" lengthAdjust="spacingAndGlyphs"`;
  const start = `<text x="${coordinate(x)}" y="${coordinate(y)}" font-size="${coordinate(size)}"${extra}`;
  const shown = `${start} fill="${color}">${escaped(text)}</text>`;
  if (!halo) return shown;
  const around = `fill="${halo}" stroke="${halo}" stroke-width="4" stroke-linejoin="round" aria-hidden="true"`;
  return `${start} ${around}>${escaped(text)}</text>${shown}`;
}

function rectangle(x, y, w, h, radius, fill, line, width, extra = "") {
  const place = `x="${coordinate(x)}" y="${coordinate(y)}" width="${coordinate(w)}" height="${coordinate(h)}"`;
  return `<rect ${place} rx="${coordinate(radius)}" fill="${fill}" stroke="${line}" stroke-width="${coordinate(width)}"${extra}/>`;
}

const lengthOf = (a, b) => Math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2);

function towards(start, end, distance) {
  const length = lengthOf(start, end) || 1;
  return [start[0] + ((end[0] - start[0]) * distance) / length, start[1] + ((end[1] - start[1]) * distance) / length];
}

const pointText = ([x, y]) => `${coordinate(x)} ${coordinate(y)}`;

/** The data of a path through points, with rounded corners. */
function rounded(points, radius) {
  const parts = [`M${pointText(points[0])}`];
  for (let i = 1; i < points.length - 1; i++) {
    const [before, corner, after] = [points[i - 1], points[i], points[i + 1]];
    const room = Math.min(radius, lengthOf(before, corner) / 2, lengthOf(corner, after) / 2);
    parts.push(`L${pointText(towards(corner, before, room))}`, `Q${pointText(corner)} ${pointText(towards(corner, after, room))}`);
  }
  parts.push(`L${pointText(points.at(-1))}`);
  return parts.join("");
}

/** The data of the tip of an arrow at the end of a line. */
function tip(points) {
  const [end, before] = [points.at(-1), points.at(-2)];
  const base = towards(end, before, TIP);
  const across = Math.abs(end[0] - before[0]) < 0.05 ? [TIP_WIDTH, 0] : [0, TIP_WIDTH];
  const corners = [end, [base[0] + across[0], base[1] + across[1]], [base[0] - across[0], base[1] - across[1]]];
  return `M${corners.map(pointText).join("L")}Z`;
}

/** Where a line with a tip ends. */
function beforeTip(points) {
  const [end, before] = [points.at(-1), points.at(-2)];
  return towards(end, before, Math.min(TIP - 2, lengthOf(before, end) / 2));
}

/** A snowflake, the sign of frozen parameters. */
function flake(x, y, color) {
  const rays = [[5, 0], [2.5, 4.3], [2.5, -4.3]];
  const data = rays.map(([dx, dy]) => `M${pointText([x - dx, y - dy])}L${pointText([x + dx, y + dy])}`).join("");
  return `<path d="${data}" stroke="${color}" stroke-width="1.3" fill="none"><title>frozen</title></path>`;
}
