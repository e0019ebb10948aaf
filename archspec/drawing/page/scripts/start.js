// The page: drawing what the state says, and what the buttons do.

/** What is drawn: the places of nodes, and the size and the axis of the picture. */
let shown = { places: new Map(), width: 1, height: 1, axis: 0, streams: new Set(), hasTies: false };

function redraw() {
  const start = performance.now();
  shown = shownPicture();
  byId("view").innerHTML = shown.svg;
  document.documentElement.className = isDark() ? "dark" : "";
  place();
  mark();
  showLegend();
  writeFragment();
  performance.measure("draw", { start });
}

/** Mark the selected node, and the lines of the values that enter and leave it. */
function mark() {
  const element = byId("view");
  for (const marked of element.querySelectorAll(".at, .lit")) marked.classList.remove("at", "lit");
  element.removeAttribute("aria-activedescendant");
  if (state.at === null) return;
  const node = byId(`node-${state.at}`);
  if (!node) return;
  node.classList.add("at");
  element.setAttribute("aria-activedescendant", node.id);
  const wires = plan.wiresAround(state.at);
  const over = element.querySelector(".over");
  for (const wire of element.querySelectorAll("[data-wire]")) {
    if (!wires.has(wire.dataset.wire)) continue;
    wire.classList.add("lit");
    over.before(wire); // above the lines that begin together with it
  }
}

function select(id, bring = false) {
  state.at = id;
  if (id !== null && !shown.places.has(id)) {
    openAround(id);
    redraw();
  } else {
    mark();
    writeFragment();
  }
  showPanel();
  if (id !== null && bring) bringIntoView(id);
  say(id === null ? plan.model : spoken(id));
}

/** A node in words, for those who cannot see the picture. */
function spoken(id) {
  const { params } = plan.node(id);
  const box = plan.isBox(id) ? (state.open.has(id) ? "open" : "closed") : "";
  return [titleOf(id), ...factsOf(plan.node(id)), params ? `${exact(params)} parameters` : "", box].filter(Boolean).join(", ");
}

function toggle(id) {
  const before = shown.places.get(id);
  if (!state.open.delete(id)) state.open.add(id);
  while (state.at !== null && !isVisible(state.at)) state.at = plan.around(state.at);
  redraw();
  keepInPlace(before, shown.places.get(id));
  writeFragment();
  if (state.at !== id) select(id);
  say(`${titleOf(id)} ${state.open.has(id) ? "opened" : "closed"}`);
}

const isVisible = (id) => plan.path(id).slice(0, -1).every((outer) => state.open.has(outer));

const isBlock = (id) => ["block", "period"].includes(plan.node(id).kind);

/** Open the closed blocks that are shown; if there are none, layers and functions. */
function openLevel() {
  const closed = plan.boxes.filter((id) => !state.open.has(id) && isVisible(id));
  const blocks = closed.filter(isBlock);
  changeLevel(() => (blocks.length ? blocks : closed).forEach((id) => state.open.add(id)));
}

/** Close the innermost layers and functions that are open; if there are none, blocks. */
function closeLevel() {
  const holdsOpen = new Set([...state.open].map(plan.around));
  const innermost = [...state.open].filter((id) => !holdsOpen.has(id));
  const others = innermost.filter((id) => !isBlock(id));
  changeLevel(() => (others.length ? others : innermost).forEach((id) => state.open.delete(id)));
}

function changeLevel(change) {
  change();
  while (state.at !== null && !isVisible(state.at)) state.at = plan.around(state.at);
  redraw();
  fit(true);
  showPanel();
}

function setSize(name, text) {
  state.sizes[name] = text.trim().replace(/[\s,_]/g, "");
  redraw();
  showPanel();
  byId(`size-${name}`).focus();
}

function switchTheme() {
  state.theme = isDark() ? "light" : "dark";
  redraw();
}

function setColor(color) {
  state.color = color;
  byId("color").value = color;
  redraw();
}

const nextColor = () => setColor(COLORS[(COLORS.indexOf(state.color) + 1) % COLORS.length]);

const say = (text) => (byId("said").textContent = text);

/** With `archspec view --watch`: load the next version, and show the errors of files that do not compile. */
function watchServer() {
  const { version } = document.documentElement.dataset;
  if (version === undefined) return;
  new EventSource(`changes?${version}`).addEventListener("message", (message) => {
    const [current, error] = JSON.parse(message.data);
    byId("notice").textContent = error ?? "";
    byId("notice").hidden = error === null;
    if (String(current) !== version) location.reload();
  });
}

/** The JSON of the plan, which the page holds compressed. */
async function unpacked() {
  const bytes = Uint8Array.from(atob(byId("plan").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function start() {
  const began = performance.now();
  plan = planOf(await unpacked());
  readFragment();
  byId("name").textContent = byId("name").title = plan.model;
  byId("total").textContent = `${exact(plan.total)} parameters`;
  byId("color").value = state.color;
  const buttons = { fit: () => fit(), theme: switchTheme, svg: saveSvg, png: savePng, more: openLevel, less: closeLevel, help: showKeys };
  for (const [id, action] of Object.entries(buttons)) byId(id).addEventListener("click", action);
  byId("color").addEventListener("change", (event) => setColor(event.target.value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("hashchange", () => {
    readFragment();
    byId("color").value = state.color;
    redraw();
    showPanel();
    if (state.at !== null) bringIntoView(state.at);
  });
  watchGestures((id, opens) => {
    byId("view").focus({ preventScroll: true });
    if (id !== null && opens && plan.isBox(id)) toggle(id);
    else select(id);
  });
  watchSearch();
  watchKeys();
  watchServer();

  const saved = history.state;
  redraw();
  showPanel();
  if (Number.isFinite(saved?.k)) {
    Object.assign(view, saved);
    place();
  } else fit(true);
  if (state.at !== null) bringIntoView(state.at);
  watchSize();
  performance.measure("start", { start: began });
}

start().catch((error) => {
  byId("notice").textContent = `This browser cannot show the page: ${error.message}`;
  byId("notice").hidden = false;
  throw error;
});
