// The title and the legend: `legend.py` in JavaScript for saved pictures, and the legend below the page's picture.

const STREAMS = { skip: "residual", side: "mask, positions", cross: "other stream" };
const TITLES = { params: "share of parameters", flops: "share of FLOPs", bytes: "share of activation bytes" };
const LEGEND_ROW = 18;
const STEPS = 24;

function drawTitle({ ink, dim }) {
  const name = shortened(plan.model, 17, 600, true);
  const counts = `${exact(plan.total)} parameters${plan.frozen ? `, ${exact(plan.frozen)} frozen` : ""}`;
  const lines = [[name, textWidth(name, 17, true)], [counts, textWidth(counts, 11)]];
  const text = textOf(0, 28, lines[0], ink, 17, { weight: "700" }) + textOf(0, 46, lines[1], dim, 11);
  return [text, Math.max(lines[0][1], lines[1][1])];
}

/** The legend within a width, and its height. */
function drawLegend(paint, streams, hasTies, most) {
  const [text, y] = isByRole() ? drawRoles(paint.theme, most) : drawScale(paint);
  const entries = lineEntries(streams, hasTies);
  return [text + drawLineEntries(paint.theme, entries, y), y + (entries.length ? LEGEND_ROW : 0)];
}

/** The roles that have tensors, each with its style, name and share. */
function roleEntries({ styles, plain }) {
  const counts = new Map(plan.roles.map(({ role, params }) => [role ?? null, params ?? 0]));
  const cells = Object.entries(styles).map(([role, { fill, letter }]) => ({ role, fill, letter }));
  if (counts.has(null)) cells.push({ role: null, fill: plain, letter: "" });
  return cells.map(({ role, fill, letter }) => {
    const name = shortened(role === null ? "no role" : role.replaceAll("_", "-"), 10, 160);
    return { fill, letter, name, share: sharePercent(counts.get(role)) };
  });
}

const sharePercent = (params) => (params ? percent(params, plan.total) : "tied");

function drawRoles(colors, most) {
  const cells = roleEntries(colors).map((cell) => ({ ...cell, room: textWidth(cell.name, 10), shareRoom: textWidth(cell.share, 10, true) }));
  const column = Math.max(0, ...cells.map(({ room, shareRoom }) => room + shareRoom)) + 42;
  const perRow = Math.max(1, Math.min(cells.length, Math.floor((most + 12) / column)));
  const parts = cells.map(({ fill, letter, name, share, room, shareRoom }, i) => {
    const [x, y] = [(i % perRow) * column, Math.floor(i / perRow) * LEGEND_ROW];
    return (
      `<rect x="${coordinate(x)}" y="${coordinate(y)}" width="13" height="13" rx="3" fill="${fill.fill}" stroke="${fill.line}"/>` +
      (letter ? textOf(x + 6.5, y + 9.6, [letter, 6], colors.dim, 8, { weight: "700", anchor: "middle" }) : "") +
      textOf(x + 19, y + 10, [name, room], colors.ink, 10) +
      textOf(x + 19 + room + 6, y + 10, [share, shareRoom], colors.dim, 10, { weight: "600" })
    );
  });
  return [parts.join(""), LEGEND_ROW * Math.ceil(cells.length / perRow) + 4];
}

/** What the colors show, with the sizes that it depends on. */
function scaleTitle() {
  const sizes = Object.entries(state.sizes).map(([name, size]) => `${name} = ${size}`);
  return TITLES[state.color] + (state.color !== "params" && sizes.length ? ` at ${sizes.join(", ")}` : "");
}

/** The scale of a share from nothing to the most of one box. */
function drawScale({ theme: colors, shares: found }) {
  const title = scaleTitle();
  const parts = [textOf(0, 10, [title, textWidth(title, 10)], colors.ink, 10)];
  if (found) {
    for (let i = 0; i < STEPS; i++) {
      parts.push(`<rect x="${coordinate(16 + i * 6)}" y="16" width="6.4" height="11" fill="${heat(colors, i / (STEPS - 1))}"/>`);
    }
    const end = `${(100 * found.most).toFixed(1)} %`;
    parts.push(textOf(0, 25, ["0", 5.6], colors.dim, 10), textOf(16 + STEPS * 6 + 7, 25, [end, textWidth(end, 10)], colors.dim, 10));
  }
  return [parts.join(""), 2 * LEGEND_ROW + 4];
}

function lineEntries(streams, hasTies) {
  const entries = Object.entries(STREAMS).filter(([stream]) => streams.has(stream));
  return [...entries, ...(hasTies ? [["tie", "same weights"]] : []), ...(plan.frozen ? [["frozen", "frozen"]] : [])];
}

function drawLineEntries(colors, entries, y) {
  let x = 0;
  return entries.map(([key, name]) => {
    const room = textWidth(name, 10);
    const text = lineSample(colors, key, x, y) + textOf(x + 22, y + 9.5, [name, room], colors.dim, 10);
    x += room + 40;
    return text;
  }).join("");
}

function lineSample(colors, key, x, y) {
  if (key === "frozen") return flake(x + 8, y + 6, colors.dim);
  const dash = key === "tie" ? ' stroke-dasharray="2 3.5" stroke-linecap="round"' : "";
  const width = key === "side" ? "1.0" : "1.5";
  return `<path d="M${coordinate(x)} ${coordinate(y + 6)}h16" stroke="${colors[key]}" stroke-width="${width}" fill="none"${dash}/>`;
}

/** The legend below the picture, which is always in sight. */
function showLegend() {
  const colors = theme();
  const sample = (content, width = 16) => {
    const element = make("span", { class: "sample" });
    element.innerHTML = `<svg width="${width}" height="14" aria-hidden="true">${content}</svg>`;
    return element;
  };
  const entries = isByRole() ? roleEntries(colors).map(({ fill, letter, name, share }) => {
    const box = `<rect x="1" y=".5" width="13" height="13" rx="3" fill="${fill.fill}" stroke="${fill.line}"/>`;
    return [sample(box + textOf(7.5, 10.1, [letter, 6], colors.dim, 8, { weight: "700", anchor: "middle" })), name, make("b", {}, share)];
  }) : [scaleEntry(colors, sample)];
  const lines = lineEntries(shown.streams, shown.hasTies).map(([key, name]) => [sample(lineSample(colors, key, 0, 1)), name]);
  byId("legend").replaceChildren(...[...entries, ...lines].map((parts) => make("span", {}, ...parts)));
}

function scaleEntry(colors, sample) {
  const found = shares();
  if (!found) return [`${scaleTitle()}: no shares at these sizes`];
  const steps = Array.from({ length: STEPS }, (_, i) => `<rect x="${i * 6}" width="6.4" height="14" fill="${heat(colors, i / (STEPS - 1))}"/>`);
  return [scaleTitle(), make("b", {}, "0"), sample(steps.join(""), STEPS * 6), make("b", {}, `${(100 * found.most).toFixed(1)} %`)];
}
