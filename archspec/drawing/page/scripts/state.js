// What is shown: open blocks, the selected node, color, theme and sizes; kept in the address of the page.

const COLORS = ["role", "params", "flops", "bytes"];

/** `at` is the selected node or null; `sizes` are texts as typed; `theme` is null until one is chosen. */
const state = { open: new Set(), at: null, color: "role", theme: null, sizes: {} };

const isDark = () => (state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** The fragment of the page's address: whatever differs from how the page starts. */
function fragment() {
  const query = new URLSearchParams();
  if (state.at !== null) query.set("at", plan.nameOf(state.at));
  for (const id of plan.boxes) {
    if (state.open.has(id) !== plan.opened.has(id)) query.append(state.open.has(id) ? "open" : "shut", plan.nameOf(id));
  }
  if (state.color !== "role") query.set("color", state.color);
  if (state.theme) query.set("theme", state.theme);
  for (const [name, size] of Object.entries(state.sizes)) {
    if (size !== String(plan.sizes[name][0])) query.set(`size-${name}`, size);
  }
  return query.toString();
}

/** Set the state from the fragment; whatever it names that the model does not have is ignored. */
function readFragment() {
  const query = new URLSearchParams(location.hash.slice(1));
  const boxes = (key) => query.getAll(key).map(plan.named).filter(plan.isBox);
  state.open = new Set([...plan.opened, ...boxes("open")]);
  for (const id of boxes("shut")) state.open.delete(id);
  state.color = COLORS.includes(query.get("color")) ? query.get("color") : "role";
  state.theme = ["light", "dark"].includes(query.get("theme")) ? query.get("theme") : null;
  state.sizes = {};
  for (const [name, [size]] of Object.entries(plan.sizes)) state.sizes[name] = query.get(`size-${name}`) ?? String(size);
  state.at = plan.named(query.get("at"));
  if (state.at !== null) openAround(state.at);
}

/** Write the state to the address, and the position to the history: a page that is loaded again shows the same. */
function writeFragment() {
  const text = fragment();
  try {
    history.replaceState({ ...view }, "", text ? `#${text}` : location.pathname + location.search);
  } catch {
    // A page without an address of its own, such as one inside a notebook, cannot be linked to.
  }
}

/** Open everything that a node is in. */
function openAround(id) {
  for (const outer of plan.path(id).slice(0, -1)) state.open.add(outer);
}

/** Why a size cannot be used; null if it can. */
function sizeError(name) {
  const text = state.sizes[name];
  const largest = plan.sizes[name][1];
  if (!/^[1-9]\d{0,17}$/.test(text)) return `expected a positive integer for ${name}`;
  return largest !== null && BigInt(text) > BigInt(largest) ? `${plan.model} cannot run with ${name} = ${text}: its largest ${name} is ${largest}` : null;
}

/** The sizes as integers; null if one of them cannot be used. */
function validSizes() {
  const names = Object.keys(state.sizes);
  if (names.some(sizeError)) return null;
  return Object.fromEntries(names.map((name) => [name, BigInt(state.sizes[name])]));
}

let known = { sizes: "", amounts: new Map() };

/** The work and memory of a node in all its applications, at the sizes of the state; null if they cannot be used. */
function amountsOf(id) {
  const sizes = validSizes();
  if (!sizes) return null;
  const key = JSON.stringify(state.sizes);
  if (known.sizes !== key) known = { sizes: key, amounts: new Map() };
  if (!known.amounts.has(id)) {
    const { macs, elementwise, bytes } = plan.node(id);
    const times = plan.applied(id).reduce((product, factor) => product * valueOf(factor, sizes), 1n);
    const [multiplied, single, stored] = [macs, elementwise, bytes].map((amount) => valueOf(amount, sizes) * times);
    known.amounts.set(id, { flops: 2n * multiplied, elementwise: single, bytes: stored });
  }
  return known.amounts.get(id);
}

/** What the color of a node shows, as a share of the model; null if it is the role, or there is no number. */
function heatOf(id) {
  if (state.color === "role") return null;
  if (state.color === "params") return ratio(plan.node(id).params, plan.total);
  const [own, whole] = [amountsOf(id), amountsOf(0)];
  return own && ratio(own[state.color], whole[state.color]);
}
