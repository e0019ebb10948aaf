/** The playground: an editor, and the results that the worker computes from its text. */

import { defaultKeymap, history as undo, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";

import { arch } from "./highlighting.js";
import { pack, unpack } from "./links.js";

const DELAY = 150; // milliseconds without a change before a text is analyzed

const element = (id) => document.getElementById(id);
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });

let busy = true; // until Python has started
let waiting = false; // whether something has changed since the analysis that is running
let timer = 0;
let shown = ""; // the packed text of the link

const editor = new EditorView({
  parent: element("editor"),
  state: stateOf(""),
});

function stateOf(text) {
  return EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      undo(),
      bracketMatching(),
      highlightActiveLine(),
      indentUnit.of("  "),
      keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": "Spec" }),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
      arch,
    ],
  });
}

function changed() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    analyze();
    putIntoLink();
  }, DELAY);
}

/** Ask the worker for results; while it is busy, only the latest text waits. */
function analyze() {
  waiting = busy;
  if (busy) return;
  busy = true;
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  worker.postMessage({ text: editor.state.doc.toString(), model: element("model").value, theme });
}

worker.onmessage = ({ data }) => {
  busy = false;
  if (data.failure) {
    element("status").textContent = data.failure;
  } else if (data.diagnostics && !waiting) {
    show(data);
  }
  if (data.started || waiting) analyze();
};
worker.onerror = (event) => {
  element("status").textContent = `Python could not be started: ${event.message || "error in the worker"}`;
};

function show(results) {
  showDiagnostics(results.diagnostics);
  element("results").classList.toggle("outdated", !results.model);
  element("status").textContent = results.status;
  element("model").replaceChildren(...results.models.map((name) => new Option(name, name, false, name === results.model)));
  if (!results.model) return;
  element("counts").innerHTML = results.counts; // made by the compiler, which escapes all text
  const picture = element("picture");
  URL.revokeObjectURL(picture.src);
  picture.src = URL.createObjectURL(new Blob([results.picture], { type: "image/svg+xml" }));
  picture.alt = `Picture of ${results.model}`;
  picture.hidden = false;
}

function showDiagnostics(diagnostics) {
  const paragraphs = diagnostics.map(({ severity, rendered }) => {
    const paragraph = document.createElement("span");
    const [first, ...rest] = rendered.split("\n");
    const head = document.createElement("b");
    head.className = severity;
    head.textContent = first;
    paragraph.append(head, ["", ...rest].join("\n"), "\n\n");
    return paragraph;
  });
  element("diagnostics").replaceChildren(...paragraphs);
  const length = editor.state.doc.length;
  const marks = diagnostics
    .filter(({ from }) => from !== null && from <= length)
    .map(({ from, to, severity, message }) => ({ from, to: Math.min(to, length), severity, message }));
  editor.dispatch(setDiagnostics(editor.state, marks));
}

async function putIntoLink() {
  const packed = await pack(editor.state.doc.toString());
  if (packed === shown) return;
  shown = packed;
  history.replaceState(null, "", `#${packed}`);
}

async function openLink() {
  const packed = location.hash.slice(1);
  if (packed && packed === shown) return;
  const fallback = await (await fetch(new URL("example.arch", import.meta.url))).text();
  let text = fallback;
  try {
    if (packed) text = await unpack(packed);
  } catch {
    element("status").textContent = "The link is damaged; this is the example.";
  }
  shown = packed;
  editor.setState(stateOf(text));
  analyze();
}

element("model").onchange = analyze;
element("share").onclick = async () => {
  await putIntoLink();
  try {
    await navigator.clipboard.writeText(location.href);
    element("status").textContent = "Copied.";
  } catch {
    element("status").textContent = "The address bar has the link.";
  }
};
addEventListener("hashchange", openLink);
new MutationObserver(analyze).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
openLink();
