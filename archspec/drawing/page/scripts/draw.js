// Pictures as SVG: `svg.py` in JavaScript. A saved picture is the text that Python writes; the page's own has no title
// and legend, but triangles that open and close nodes, and attributes by which its elements are found.

const MARGIN = 26;
const TITLE_ROOM = 66;
const SHEET = 4;
const RADIUS = 7;
const WIRES = { main: 1.3, skip: 1.5, side: "1.0", cross: 1.2 };
const FONTS = `font-family="Helvetica, Arial, 'Liberation Sans', sans-serif"`;

/** The picture as a file: with its title and legend. */
function savedPicture() {
  const paint = paintOf();
  const drawing = new Picture(paint, false).draw();
  const { root, left, right, streams, hasTies } = drawing;
  let width = Math.max(right - left + SHEET * 2, 300);
  const [title, room] = drawTitle(paint.theme);
  width = Math.max(width, room);
  const [legend, height] = drawLegend(paint, streams, hasTies, width);
  const [w, h] = [width + 2 * MARGIN, TITLE_ROOM + root.h + 28 + height + 18].map(coordinate);
  const below = coordinate(TITLE_ROOM + root.h + 28);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" role="img" ${FONTS}>` +
    `<title>${clean(plan.model)}</title><rect width="${w}" height="${h}" fill="${paint.theme.background}"/>` +
    `<g transform="translate(${coordinate(MARGIN)} 0)">${title}</g>` +
    `<g transform="translate(${coordinate(MARGIN - left)} ${coordinate(TITLE_ROOM)})">${drawing.body()}</g>` +
    `<g transform="translate(${coordinate(MARGIN)} ${below})">${legend}</g></svg>\n`
  );
}

const PAGE_MARGIN = 18;

/** The picture in the page, with the places of its nodes. */
function shownPicture() {
  const drawing = new Picture(paintOf(), true).draw();
  const { root, left, right, places, streams, hasTies } = drawing;
  const [dx, dy] = [PAGE_MARGIN - left, PAGE_MARGIN];
  const [width, height] = [right - left + SHEET * 2 + 2 * PAGE_MARGIN, root.h + 2 * PAGE_MARGIN];
  for (const place of places.values()) {
    place.x += dx;
    place.y += dy;
  }
  const svg = `<svg width="${coordinate(width)}" height="${coordinate(height)}" ${FONTS}><g transform="translate(${coordinate(dx)} ${coordinate(dy)})">${drawing.body()}</g></svg>`;
  return { svg, width, height, axis: root.axis + dx, places, streams, hasTies };
}

/** Draws frames; `placed` has the rectangles and lines, and `streams` the kinds of lines drawn. */
class Picture {
  constructor(paint, isLive) {
    this.paint = paint;
    this.theme = paint.theme;
    this.isLive = isLive;
    this.below = [];
    this.over = [];
    this.placed = { boxes: new Map(), frames: new Map(), lines: [] };
    this.places = new Map();
    this.streams = new Set();
    this.arrows = new Map();
  }

  draw() {
    this.root = layout((id) => state.open.has(id));
    this.contents(this.root, 0, 0, 0);
    for (const [group, { stream, tips }] of this.arrows) {
      this.below.push(`<path d="${tips.join("")}" fill="${this.theme[stream]}"${this.isLive ? group : ""}/>`);
    }
    const lines = tieLines(this.placed);
    const { tie } = this.theme;
    for (const { points, ends } of lines) {
      const dots = ends.map(([x, y]) => `<circle cx="${coordinate(x)}" cy="${coordinate(y)}" r="2.6" fill="${tie}"/>`).join("");
      const path = `<path d="${rounded(points, 5)}" fill="none" stroke="${tie}" stroke-width="1.4" stroke-dasharray="2 3.5" stroke-linecap="round"/>`;
      this.over.push(path + dots);
    }
    this.hasTies = lines.length > 0;
    const [lefts, rights] = [Math.min, Math.max].map((most) => lines.map(({ points }) => most(...points.map(([x]) => x))));
    this.left = Math.min(0, ...lefts);
    this.right = Math.max(this.root.w, ...rights);
    if (this.left < 0) this.left -= 16;
    if (this.right > this.root.w) this.right += 16;
    const outer = lines.find((_, i) => lefts[i] < 0) ?? lines.find((_, i) => rights[i] > this.root.w);
    if (outer) {
      const ys = outer.points.map(([, y]) => y);
      const middle = (Math.min(...ys) + Math.max(...ys)) / 2;
      const turned = `translate(${coordinate(this.left < 0 ? this.left + 9 : this.right - 2)} ${coordinate(middle)}) rotate(-90)`;
      this.over.push(`<text transform="${turned}" font-size="10" fill="${tie}" text-anchor="middle">same weights</text>`);
    }
    return this;
  }

  body() {
    const over = this.over.join("");
    return this.below.join("") + (this.isLive ? `<g class="over">${over}</g>` : over);
  }

  /** Draw what is inside a frame. */
  contents(frame, x, y, depth) {
    for (const [inner, dx, dy] of frame.items) {
      if (!inner.open) continue;
      const isGroup = plan.node(inner.id).kind === "group";
      if (!isGroup) this.frame(inner, x + dx, y + dy, depth);
      this.contents(inner, x + dx, y + dy, depth + (isGroup ? 0 : 1));
    }
    for (const [inner, dx, dy] of frame.items) {
      const node = plan.node(inner.id);
      if (inner.open || node.times === undefined || node.same) continue;
      const { fill, line } = this.paint.fillOf(node);
      this.sheets(inner, x + dx, y + dy, SHEET - 1, radiusOf(inner), fill, line);
    }
    for (const path of frame.paths) this.path(frame.id, path, x, y);
    for (const [inner, dx, dy] of frame.items) if (!inner.open) this.box(inner, x + dx, y + dy);
  }

  path(owner, { points, stream, value, target, port, arrow, dot, branches }, x, y) {
    const at = points.map(([a, b]) => [a + x, b + y]);
    const color = this.theme[stream];
    this.streams.add(stream);
    this.placed.lines.push(at);
    let drawn = branches ? at.slice(1) : at;
    const key = this.isLive ? ` data-wire="${plan.wireOf({ owner, index: value }, { to: target, port })}"` : "";
    if (arrow) {
      const group = this.isLive ? ` class="tip"${key}` : stream; // in the page, a tip is marked with its wire
      if (!this.arrows.has(group)) this.arrows.set(group, { stream, tips: [] });
      this.arrows.get(group).tips.push(tip(at));
      drawn = [...drawn.slice(0, -1), beforeTip(at)];
    }
    const live = this.isLive ? ` class="wire"${key}` : "";
    this.below.push(`<path d="${rounded(drawn, RADIUS)}" fill="none" stroke="${color}" stroke-width="${WIRES[stream]}"${live}/>`);
    if (dot) this.below.push(`<circle cx="${coordinate(dot[0] + x)}" cy="${coordinate(dot[1] + y)}" r="2.2" fill="${color}"/>`);
  }

  /** The start of the group of a node, with its description. */
  group(node, frame, x, y) {
    this.places.set(node.id, { x, y, w: frame.w, h: frame.h, axis: frame.axis, open: frame.open });
    return `<g${this.isLive ? ` class="node" id="node-${node.id}" data-id="${node.id}"` : ""}>${tooltip(descriptionOf(node))}`;
  }

  shape() {
    return this.isLive ? ' class="shape"' : "";
  }

  frame(frame, x, y, depth) {
    const { theme: colors } = this;
    const node = plan.node(frame.id);
    this.placed.frames.set(node.id, [x, y, frame.w, frame.h]);
    const isPeriod = node.kind === "period";
    const fill = isPeriod ? colors.background : colors.frames[Math.min(depth, colors.frames.length - 1)];
    const line = node.role && isByRole() ? this.paint.fillOf(node).line : colors.frame;
    const several = node.times !== undefined;
    if (several && !node.same) this.sheets(frame, x, y, SHEET, 10, colors.background, line);
    const dash = isPeriod ? ' stroke-dasharray="6 4"' : isFrozen(node) ? ' stroke-dasharray="3 2"' : "";
    const triangle = this.isLive ? this.toggle(x + 8, y + 14, `M${coordinate(x + 3.5)} ${coordinate(y + 12)}h7l-3.5 5z`, colors.dim) : "";
    this.below.push(`${this.group(node, frame, x, y)}${rectangle(x, y, frame.w, frame.h, 10, fill, line, several ? 1.6 : 1.1, dash + this.shape())}${triangle}</g>`);
    let at = x;
    const heading = node.heading ?? [];
    heading.forEach((text, i) => {
      at = x + frame.heading[i];
      const italic = i === heading.length - 1 && Boolean(node.differs);
      const ink = i === 0 || italic ? colors.ink : colors.dim;
      this.over.push(textOf(at, y + 18, text, ink, i === 0 ? 11.5 : 10, { weight: i === 0 ? "700" : "", italic, halo: fill }));
      at += text[1] + 7;
    });
    if (isFrozen(node)) this.over.push(flake(at + 5, y + 14, colors.dim));
    this.badge(node, x + frame.w - 8, y + 1);
  }

  /** The triangle that opens or closes a node, with room for a finger around it. */
  toggle(x, y, data, color) {
    return `<g class="toggle"><rect x="${coordinate(x - 8)}" y="${coordinate(y - 9)}" width="16" height="18" fill="transparent"/><path d="${data}" fill="${color}"/></g>`;
  }

  box(frame, x, y) {
    const node = plan.node(frame.id);
    const { w, h } = frame;
    this.placed.boxes.set(node.id, [x, y, w, h]);
    this.below.push(this.group(node, frame, x, y));
    if (node.form === "circle") return this.circle(node, x + w / 2, y + h / 2, w / 2);
    const { fill, line } = this.paint.fillOf(node);
    this.below.push(rectangle(x, y, w, h, radiusOf(frame), fill, line, 1.1, (isFrozen(node) ? ' stroke-dasharray="3 2"' : "") + this.shape()));
    const [ink, dim] = this.paint.inks(fill);
    const hasBar = node.form === "box" && node.params > 0 && isByRole();
    this.lines(node, frame, x, y, ink, dim, hasBar);
    if (hasBar) {
      const share = Math.max(1, ((w - 10) * node.params) / plan.total);
      const bar = (width, opacity) => `<rect x="${coordinate(x + 5)}" y="${coordinate(y + h - 5)}" width="${coordinate(width)}" height="2.4" rx="1.2" fill="${line}"${opacity}/>`;
      this.below.push(bar(w - 10, ' opacity=".18"') + bar(share, ""));
    }
    const letter = this.paint.letterOf(node);
    if (letter && node.form === "box") this.below.push(textOf(x + 4.5, y + 10, [letter, 6], dim, 8, { weight: "700" }));
    if (isFrozen(node)) this.below.push(flake(x + w - 10, y + 10, line));
    this.below.push("</g>");
    this.badge(node, x + w + 6, y - 1);
  }

  /** The texts of a closed node; in the page with a triangle before the title if it can be opened. */
  lines(node, { w, h }, x, y, ink, dim, hasBar) {
    const sizes = lineSizes(node);
    let top = y + (h - sizes.reduce((sum, size) => sum + size * 1.22, 0)) / 2 - (hasBar ? 1.5 : 0);
    (node.lines ?? []).forEach((line, i) => {
      top += sizes[i] * 1.22;
      const base = top - sizes[i] * 0.25;
      const opens = this.isLive && i === 0 && plan.isBox(node.id);
      const middle = x + w / 2 + (opens ? 5 : 0);
      if (opens) {
        const start = middle - line[1] / 2 - 9;
        this.below.push(this.toggle(start + 2, base - 4, `M${coordinate(start)} ${coordinate(base - 8)}v8l5 -4z`, dim));
      }
      const weight = i === 0 && node.form !== "pill" ? "600" : "";
      this.below.push(textOf(middle, base, line, i === 0 || i === 2 ? ink : dim, sizes[i], { weight, italic: i === 2, anchor: "middle" }));
    });
  }

  circle(node, x, y, radius) {
    const isPlus = node.title === "+";
    const arm = isPlus ? 5 : 3.6;
    const sign = isPlus
      ? `M${coordinate(x - arm)} ${coordinate(y)}h10M${coordinate(x)} ${coordinate(y - arm)}v10`
      : `M${coordinate(x - arm)} ${coordinate(y - arm)}l7.2 7.2M${coordinate(x - arm)} ${coordinate(y + arm)}l7.2 -7.2`;
    const { fill } = this.paint.fillOf(node);
    this.below.push(
      `<circle cx="${coordinate(x)}" cy="${coordinate(y)}" r="${coordinate(radius)}" fill="${fill}" stroke="${this.theme.skip}" stroke-width="1.2"${this.shape()}/>` +
        `<path d="${sign}" stroke="${this.paint.inks(fill)[0]}" stroke-width="1.2"/></g>`,
    );
  }

  /** Two sheets behind a node that stands for several. */
  sheets({ w, h }, x, y, step, radius, fill, line) {
    for (const [k, opacity] of [[2, ".55"], [1, ".8"]]) {
      this.below.push(rectangle(x + step * k, y + step * k, w, h, radius, fill, line, 1, ` opacity="${opacity}"`));
    }
  }

  badge({ badge }, right, middle) {
    if (!badge) return;
    const width = badge[1] + 16;
    const { badge: fill, badge_ink: ink } = this.theme;
    this.over.push(
      rectangle(right - width, middle - 10, width, 20, 10, fill, "none", 0) +
        textOf(right - width / 2, middle + 4.2, badge, ink, 12, { weight: "700", anchor: "middle" }),
    );
  }
}

const radiusOf = ({ id, h }) => ({ pill: 10, terminal: h / 2 })[plan.node(id).form] ?? 5;

function lineSizes({ form, lines = [] }) {
  const [first, rest] = { pill: [11, 9.5], terminal: [11, 9] }[form] ?? [12, 9.5];
  return [first, ...lines.slice(1).map(() => rest)];
}

function isFrozen({ tensors, params, frozen }) {
  if (tensors?.length) return tensors.every((tensor) => tensor.frozen);
  return params > 0 && frozen === params;
}

function descriptionOf({ name, title, type, label, params, copies }) {
  const each = params && copies ? `${copies} x ${exact(BigInt(params) / BigInt(copies))} = ` : "";
  return [name || title, label || (type === title ? "" : type), params ? `${each}${exact(params)} parameters` : ""].filter(Boolean).join(", ");
}
