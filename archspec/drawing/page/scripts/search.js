// Search by address, type or tensor. The full name of a tensor also finds the repeated layer that it belongs to.

const MOST_HITS = 60;
const ORDER = { fn: 1, loop: 1, op: 2, param: 2, buffer: 2 };
let hits = [];
let chosen = 0;

function watchSearch() {
  const input = byId("query");
  input.addEventListener("input", () => {
    hits = found(input.value.trim());
    chosen = 0;
    showHits();
  });
  input.addEventListener("focus", () => input.value && showHits());
  input.addEventListener("blur", hideHits);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) {
      chosen = (chosen + step + hits.length) % hits.length;
      showHits();
      byId("hits").children[chosen].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && hits[chosen]) choose(hits[chosen]);
    else if (event.key === "Escape") {
      input.value = "";
      hits = [];
      byId("view").focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * The nodes that match, best first: by the end of the address, by any of it, by a tensor, by the label or type. What is inside a
 * layer is not looked through: its tensors find the layer.
 */
function found(text) {
  if (!text) return [];
  const results = [];
  for (const node of plan.nodes) {
    if (node.id === 0 || node.kind === "group" || plan.isInLayer(node.id)) continue;
    const hit = matched(node, text.toLowerCase());
    if (hit) results.push({ id: node.id, type: node.label || node.type, order: ORDER[node.kind] ?? 0, ...hit });
  }
  return results.sort((a, b) => a.rank - b.rank || a.order - b.order).slice(0, MOST_HITS);
}

function matched(node, text) {
  const address = node.address ?? (node.form === "terminal" ? node.title : node.name);
  const own = address.toLowerCase();
  if (own === text || own.endsWith(`.${text}`)) return { rank: 0, shown: address };
  if (own.includes(text)) return { rank: 1, shown: address };
  const numbered = /\d/.test(text);
  if (numbered && isOneOf(own, text)) return { rank: 1, shown: address };
  for (const tensor of node.tensors ?? []) {
    const name = `${address}.${tensor.name}`;
    const lower = name.toLowerCase();
    if (lower.includes(text) || (numbered && isOneOf(lower, text))) return { rank: 2, shown: name };
  }
  return `${node.label ?? ""} ${node.type ?? ""}`.toLowerCase().includes(text) ? { rank: 3, shown: address } : null;
}

/** Whether an address as typed, perhaps a part of it, is one of those that `layer.*` or `layer.1,4,...,19` stands for. */
function isOneOf(address, text) {
  const parts = address.replaceAll("...", "…").split(".");
  const wanted = text.split(".");
  const last = wanted.length - 1;
  const fits = (part, each, i) => {
    if (/^\d+$/.test(each) && numbersOf(part)) return numbersOf(part)(Number(each));
    if (i === 0 && i === last) return part.includes(each);
    return i === 0 ? part.endsWith(each) : i === last ? part.startsWith(each) : part === each;
  };
  return parts.some((_, start) => start + last < parts.length && wanted.every((each, i) => fits(parts[start + i], each, i)));
}

/** The numbers that a part of an address stands for, `*`, `0-2` or `1,4,…,19`, as a condition; null for other parts. */
function numbersOf(part) {
  if (part === "*") return () => true;
  if (!/^\d+([-,…]+\d+)+$/.test(part)) return null;
  const given = part.split(/[-,…]+/).map(Number);
  if (!/[-…]/.test(part)) return (number) => given.includes(number);
  const [first, last] = [given[0], given.at(-1)];
  const step = part.includes("-") ? 1 : given[1] - first;
  return (number) => number >= first && number <= last && (number - first) % step === 0;
}

function showHits() {
  const list = byId("hits");
  const wanted = byId("query").value.trim();
  const rows = hits.map((hit, i) => {
    const attributes = { role: "option", id: `hit-${i}`, "aria-selected": String(i === chosen) };
    const row = make("li", attributes, marked(hit.shown, wanted), make("small", {}, hit.type ?? ""));
    row.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      choose(hit);
    });
    return row;
  });
  if (!rows.length && wanted) rows.push(make("li", { class: "none" }, "nothing found"));
  list.replaceChildren(...rows);
  list.hidden = rows.length === 0;
  byId("query").setAttribute("aria-expanded", String(!list.hidden));
  byId("query").setAttribute("aria-activedescendant", hits.length ? `hit-${chosen}` : "");
}

/** A text with the part that was looked for marked. */
function marked(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return make("span", {}, text);
  const end = at + wanted.length;
  return make("span", {}, text.slice(0, at), make("mark", {}, text.slice(at, end)), text.slice(end));
}

function hideHits() {
  byId("hits").hidden = true;
  byId("query").setAttribute("aria-expanded", "false");
}

function choose(hit) {
  byId("view").focus();
  hideHits();
  select(hit.id, true);
}
