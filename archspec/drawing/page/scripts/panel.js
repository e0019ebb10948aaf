// The panel: everything known about the selected node, or about the model if none is selected.

function showPanel() {
  const parts = state.at === null ? aboutModel() : aboutNode(state.at);
  byId("panel").replaceChildren(...parts.flat(2).filter(Boolean));
  byId("panel").scrollTop = 0;
  showCrumbs();
}

function showCrumbs() {
  const path = state.at === null ? [null] : [null, ...plan.path(state.at)];
  const parts = path.flatMap((id, i) => {
    const text = id === null ? plan.model : titleOf(id);
    const part = id === state.at ? make("b", { "aria-current": "true", title: text }, text) : nodeLink(id, text);
    return i ? [make("span", { "aria-hidden": "true" }, "›"), part] : [part];
  });
  const hint = dim("Select a node; double-click a block to open it.");
  byId("crumbs").replaceChildren(...(state.at === null ? [hint] : parts));
}

/** A link that selects a node; null selects nothing, which shows the model. */
function nodeLink(id, text = titleOf(id)) {
  const click = (event) => {
    event.preventDefault();
    select(id, true);
  };
  return make("a", { href: "#", title: id === null ? null : plan.node(id).address, click }, text);
}

/** A list of terms and their values; a row without a value is left out. */
function terms(...rows) {
  const kept = rows.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "");
  return kept.length > 0 && make("dl", {}, kept.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]));
}

const section = (title, ...content) => [make("h3", {}, title), ...content];

const dim = (...content) => make("span", { class: "dim" }, ...content);

/** A table; a name that begins with `#` is that of a column of numbers. */
function table(names, rows) {
  const cell = (tag) => (content, i) => make(tag, { class: names[i].startsWith("#") && "number" }, content);
  const head = make("tr", {}, names.map((name) => name.replace("#", "")).map(cell("th")));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell("td"))))));
}

function aboutModel() {
  const { model, doc, total, trainable = 0, frozen, hyperparameters } = plan;
  return [
    make("h2", {}, model),
    doc && make("p", { class: "doc" }, coded(doc)),
    terms(
      ["parameters", [exact(total), " ", dim(short(total))]],
      ["trainable", frozen && exact(trainable)],
      ["frozen", frozen && [exact(frozen), " ", dim(percent(frozen, total))]],
    ),
    sizesSection(0),
    hyperparametersSection(hyperparameters, plan.labels),
    make("p", {}, make("kbd", {}, "?"), " ", dim("lists all keys")),
  ];
}

function aboutNode(id) {
  const node = plan.node(id);
  return [
    make("h2", {}, titleOf(id)),
    make("p", { class: "kind" }, factsOf(node).join(" · ")),
    terms(["address", node.address], ...inputRows(id), ...outputRows(id), ...parameterRows(node)),
    node.params > 0 && meter(node.params, plan.total),
    tensorsSection(node),
    sizesSection(id),
    hyperparametersSection({ ...node.hyperparameters, ...node.constants }, node.labels),
    sourceSection(node),
  ];
}

/** Documentation with its `names` as code. */
const coded = (text) => text.split(/`([^`]*)`/).map((part, i) => (i % 2 ? make("code", {}, part) : part));

/** What a node is, in a few words. */
function factsOf({ kind, type, label, title, role, differs, times, same }) {
  const applied = times === undefined ? "" : amountText(times);
  return [
    label,
    type && type !== title ? type : kind === "op" ? "operation" : kind === "fn" ? "function" : kind,
    role?.replace("_", "-"),
    differs,
    applied && (same ? `the same weights, applied ${applied} times` : `${applied} times`),
  ].filter(Boolean);
}

/** A polynomial as text. */
function amountText(polynomial) {
  if (!Array.isArray(polynomial)) return exact(polynomial);
  const factorText = ([factor, exponent]) => {
    const base = Array.isArray(factor) ? operationText(factor) : factor;
    return exponent === 1 ? base : `${base}^${exponent}`;
  };
  return polynomial.map(([coefficient, factors]) => [...(coefficient === 1 && factors.length ? [] : [coefficient]), ...factors.map(factorText)].join(" × ")).join(" + ") || "0";
}

function operationText([operation, ...operands]) {
  const parts = operands.map(amountText);
  return operation === "min" || operation === "max" ? `${operation}(${parts.join(", ")})` : `(${parts.join(` ${operation} `)})`;
}

function meter(part, whole) {
  const bar = make("i", {});
  bar.style.width = `${100 * ratio(part, whole)}%`;
  return make("div", { class: "meter", role: "img", "aria-label": `${percent(part, whole)} of all parameters` }, bar);
}

/** The values that enter a node, with the layer that each comes from. */
function inputRows(id) {
  return (plan.node(id).inputs ?? []).map(({ argument, shape, dtype }, port) => {
    const value = plan.feeding(id, port);
    return [`in ${argument ?? ""}`, [shapeText(shape, dtype), ...(value ? [" ", dim("from "), ...sourceLinks(value)] : [])]];
  });
}

/** Links to the layer that a value comes from, and to what it went through since; of a sum, to those of its operands. */
function sourceLinks(value) {
  const { from, through } = plan.maker(value);
  const { form, title } = plan.node(from);
  const operands = form === "circle" ? (plan.node(from).inputs ?? []).map((_, port) => plan.feeding(from, port)).filter(Boolean) : [];
  const makers = operands.length > 1 ? operands.map((operand) => plan.maker(operand).from) : [from];
  const links = makers.flatMap((maker, i) => [i ? ` ${title} ` : "", nodeLink(maker, plan.node(maker).address)]);
  return [...links, ...through.flatMap((step, i) => [dim(i ? ", " : " through "), nodeLink(step)])];
}

const MOST_USERS = 5;

function outputRows(id) {
  const node = plan.node(id);
  return Array.from({ length: node.outputs ?? 1 }, (_, output) => {
    const users = plan.users(id, output);
    const value = plan.leaving(id)[output]?.[0];
    const { shape, dtype } = output === 0 ? node : (value && typeOf(value)) || {};
    if (!shape && !users.length) return null;
    const links = users.slice(0, MOST_USERS).flatMap((user, i) => [i ? ", " : dim(" to "), nodeLink(user)]);
    if (users.length > MOST_USERS) links.push(dim(` and ${users.length - MOST_USERS} more`));
    return [(node.outputs ?? 1) > 1 ? `out ${output}` : "out", [shape ? shapeText(shape, dtype) : "", ...links]];
  });
}

/** The shape of a value, as the first node that it enters has it. */
function typeOf({ owner, uses }) {
  const use = uses.find(({ to }) => to !== undefined);
  return use && plan.node(use.to).inputs[use.port];
}

function shapeText(shape = [], dtype = "real") {
  return `${shape.length ? shape.join(" × ") : "a number"}${dtype === "real" ? "" : ` ${dtype}`}`;
}

function parameterRows(node) {
  const { copies = 1, params = 0, frozen, again } = node;
  const tied = plan.ties.filter((pair) => pair.includes(node.id)).map(([a, b]) => (a === node.id ? b : a));
  const each = copies > 1 && Number(params) % copies === 0 ? [" ", dim(`${copies} × ${exact(Number(params) / copies)}`)] : [];
  return [
    ["parameters", params ? [exact(params), ...each] : null],
    ["share", params ? percent(params, plan.total) : null],
    ["frozen", frozen ? (frozen === params ? "all of them" : exact(frozen)) : null],
    ["tied to", tied.length ? tied.flatMap((id, i) => [i ? ", " : "", nodeLink(id, plan.node(id).address)]) : null],
    ["weights of", again === undefined ? null : [nodeLink(again, plan.node(again).address), dim(", applied again")]],
  ];
}

function tensorsSection({ tensors, copies = 1 }) {
  if (!tensors?.length) return [];
  const rows = tensors.map(({ name, shape, params, frozen, tied_to, copies: several }) => [
    [name, frozen ? dim(" frozen") : "", tied_to ? dim(` tied to ${tied_to}`) : ""],
    (shape ?? []).join(" × ") || "a number",
    several ? `${several} × ${exact(params)}` : exact(params),
  ]);
  return section(copies > 1 ? "Tensors of each" : "Tensors", table(["name", "shape", "#parameters"], rows));
}

function hyperparametersSection(values, labels = {}) {
  const named = (name) => (Object.hasOwn(labels, name) ? [name, " ", dim(labels[name])] : name);
  const rows = Object.entries(values ?? {}).map(([name, value]) => [named(name), valueText(value)]);
  return rows.length ? section("Hyperparameters", table(["name", "value"], rows)) : [];
}

/** A hyperparameter as it is written in a spec. */
function valueText(value) {
  if (value === null) return "none";
  if (Array.isArray(value)) return `[${value.map(valueText).join(", ")}]`;
  return typeof value === "number" && value && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}

/** Work and memory at the sizes that one types; sizes that the model cannot run with give no numbers. */
function sizesSection(id) {
  const work = amountsOf(id);
  const whole = amountsOf(0);
  const names = Object.keys(state.sizes);
  const amount = (name, key, unit) => {
    if (!work) return null;
    const share = id !== 0 && work[key] ? dim(`, ${percent(work[key], whole[key]).replace(" ", "\u00a0")}`) : "";
    const digits = exact(work[key]);
    const brief = short(work[key], unit);
    return [name, [brief, brief === digits ? "" : [" ", dim(digits)], share].flat()];
  };
  return section(
    "Work and memory",
    names.length > 0 && make("div", { class: "sizes" }, names.map(sizeField)),
    names.map(sizeError).filter(Boolean).map((error) => make("p", { class: "warning", role: "alert" }, error)),
    terms(amount("FLOPs", "flops", "FLOPs"), amount("elementwise", "elementwise", ""), amount("activations", "bytes", "B"), weightRow(id)),
  );
}

/** Bytes of the weights as they are usually stored. */
function weightRow(id) {
  const params = plan.node(id).params;
  return params ? ["weights", [short(4 * Number(params), "B"), dim(` in float32, ${short(2 * Number(params), "B")} in bfloat16`)]] : null;
}

function sizeField(name) {
  const invalid = sizeError(name) !== null;
  const input = make("input", { value: state.sizes[name], inputmode: "numeric", "aria-invalid": invalid && "true", maxlength: 18, id: `size-${name}` });
  input.addEventListener("change", () => setSize(name, input.value));
  return make("label", {}, name, input);
}

const AROUND = 3;

/** The lines of the spec that apply a node. */
function sourceSection({ source }) {
  const at = source?.lastIndexOf(":") ?? -1;
  const text = plan.sources[source?.slice(0, at)];
  if (text === undefined) return [];
  const line = Number(source.slice(at + 1));
  const first = Math.max(1, line - AROUND);
  const rows = text.split("\n").slice(first - 1, line + AROUND).map((row, i) => {
    return make("div", { class: first + i === line && "here" }, make("i", {}, String(first + i)), row || " ");
  });
  return section("Source", make("p", { class: "kind" }, source), make("pre", { tabindex: "0" }, rows));
}
