/** The live example of the home page, and the playground, which has more controls: a spec and its results.
 *
 * The page comes with the results of its first text. Results always belong to the text in the editor, or are dimmed.
 */

import { newCompiler } from "./compiler.js";
import { messageOf, newEditor } from "./editor.js";
import { isPlayground, setUpControls } from "./controls.js";
import { totalOf } from "./formula.js";

const DELAY = 30; // milliseconds without a change before a text is analyzed

const PATIENCE = 200; // milliseconds after which the page says that it is computing

const element = (id) => document.getElementById(id);
const saved = JSON.parse(element("saved").textContent);

let isLive = false;
let isBusy = false;
let timer = 0;
let asked; // the text and the model that the results will be of
let shown = { text: saved[0].text, name: "" }; // what the results are of

const editor = newEditor(element("editor"), saved[0].text, () => {
  performance.mark("edited");
  mark();
  if (!show(savedResult())) {
    clearTimeout(timer);
    timer = setTimeout(analyze, DELAY);
  }
  controls.changed(editor.text);
});
const ask = newCompiler(
  (how) => {
    isLive = true;
    performance.mark("live");
    element("workbench").dataset.start = how;
    say("live", "Live");
    document.dispatchEvent(new Event("compiler"));
    analyze();
    navigator.serviceWorker?.register(new URL("../offline.js", import.meta.url));
  },
  (failure) => {
    say("failed", failure);
    document.dispatchEvent(new Event("compiler"));
  },
);
const controls = setUpControls({ editor, ask, say, refresh: analyze, saved });
editor.show([], saved[0].numbers.lines);
say("starting", "Saved result; the compiler is starting");
element("install")?.querySelector("button").addEventListener("click", copyInstall);

/** The result that the page came with, if it is of the text in the editor; it is not asked for again. */
function savedResult() {
  const found = saved.find(({ text }) => text === editor.text);
  return found && !controls.model() ? found : undefined;
}

/** Show a saved result. */
function show(result) {
  if (!result) return false;
  showNumbers(result.numbers, result.text, "");
  if (result.figure) showFigure(result.figure);
  if (!isLive) say("starting", "Saved result; the compiler is starting");
  return isLive ? false : true;
}

/** Show the total of a text by its formula, if it has one. */
function showTotal() {
  const total = isLive ? undefined : totalOf(editor.text, saved[0]);
  element("results").classList.toggle("by-formula", total !== undefined);
  if (total === undefined) return false;
  document.querySelector(".total b").textContent = total.toLocaleString("en-US");
  editor.show([], saved[0].numbers.lines);
  say("starting", "Total by its formula; the compiler is starting");
  return true;
}

/** Ask for numbers, then for pictures; while the compiler is busy, only the latest text waits. */
async function analyze() {
  if (!isLive) return showTotal() || say("starting", "The compiler is starting; your text is next");
  if (isBusy) return;
  isBusy = true;
  try {
    const text = editor.text;
    const name = controls.model();
    asked = { text, name };
    const busy = setTimeout(() => say("busy", "Computing"), PATIENCE);
    const numbers = await ask("numbers", text, name);
    clearTimeout(busy);
    if (isCurrent(text, name)) {
      showNumbers(numbers, text, name);
      performance.measure("numbers", performance.getEntriesByName("edited").length ? "edited" : "live");
      if (numbers.model) await showPictures(numbers.model, text, name);
    }
  } finally {
    isBusy = false;
  }
  if (!isCurrent(asked.text, asked.name)) analyze();
}

const isCurrent = (text, name) => editor.text === text && controls.model() === name;

async function showPictures(model, text, name) {
  for (const kind of isPlayground ? controls.kinds() : ["figure"]) {
    const result = await ask("picture", model, kind);
    if (!isCurrent(text, name)) return;
    if (kind === "figure" && result.figure) showFigure(result.figure);
    else controls.showPicture(kind, result);
    element("results").classList.remove("waiting");
  }
}

function showNumbers(numbers, text, name) {
  const { diagnostics, lines, model, html } = numbers;
  if (model) {
    shown = { text, name };
    element("results").classList.remove("by-formula");
    element("results").classList.add("waiting"); // for pictures, which come later
    element("numbers").innerHTML = html; // made by the compiler, which escapes all text
  }
  editor.show(diagnostics, lines);
  const elsewhere = diagnostics.filter(({ from }) => from === null);
  element("messages").replaceChildren(...elsewhere.map(messageOf));
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  const state = isLive ? "Live" : "Saved result; the compiler is starting";
  if (errors) say("error", errors === 1 ? "1 error" : `${errors} errors`);
  else say(isLive ? "live" : "starting", model ? state : 'No model to count: add `model "name" = Definition(...)`');
  controls.showModels(numbers);
  mark();
}

function showFigure(svg) {
  element("figure").innerHTML = svg; // also made by the compiler
  element("results").classList.remove("waiting");
}

/** Dim results that are not of the text in the editor. */
function mark() {
  const { state } = element("workbench").dataset;
  element("results").classList.toggle("outdated", state === "error" || shown.text !== editor.text);
}

function say(state, text) {
  element("workbench").dataset.state = state;
  element("state").textContent = text;
  mark();
}

async function copyInstall({ currentTarget }) {
  await navigator.clipboard.writeText(currentTarget.previousElementSibling.dataset.copy);
  currentTarget.textContent = "Copied";
}
