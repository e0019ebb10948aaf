/** The controls around the editor: changes to try, and in the playground examples, files, links, models and views. */

import { pack, unpack } from "./links.js";

const element = (id) => document.getElementById(id);

const MAX_LINKED = 256 * 1024; // longer texts are not compiled, and browsers limit addresses

export const isPlayground = element("workbench").dataset.kind === "playground";

export function setUpControls({ editor, ask, say, refresh, saved }) {
  for (const button of document.querySelectorAll("[data-replace]")) {
    button.onclick = () => {
      editor.open(saved[0].text);
      editor.replace(...JSON.parse(button.dataset.replace));
    };
  }
  element("undo")?.addEventListener("click", () => editor.open(saved[0].text));
  if (!isPlayground) {
    return {
      model: () => "",
      changed: (text) => (element("undo").hidden = text === saved[0].text),
      showModels: () => {},
    };
  }
  let linked = ""; // the packed text of the link
  let view = "figure";

  element("example").onchange = async ({ target }) => {
    const examples = await (await fetch(new URL("examples.json", import.meta.url))).json();
    open(examples[target.value]);
  };
  element("model").onchange = refresh;
  element("file").onchange = async ({ target }) => read(target.files[0]);
  element("open").onclick = () => element("file").click();
  element("share").onclick = share;
  for (const button of document.querySelectorAll("[data-view]")) button.onclick = () => choose(button);
  addEventListener("hashchange", openLink);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (!isConfiguration(text)) return;
    event.preventDefault();
    event.stopPropagation();
    openConfiguration(text);
  }, true);
  openLink();

  function open(text) {
    element("model").replaceChildren();
    editor.open(text);
  }

  async function read(file) {
    const text = await file.text();
    if (isConfiguration(text) || file.name.endsWith(".json")) openConfiguration(text);
    else open(text);
  }

  async function openConfiguration(text) {
    say("busy", "Reading the configuration");
    const { spec, problem } = await ask("opened", text);
    if (spec) open(spec);
    else {
      element("messages").textContent = problem;
      say("error", "The configuration cannot be read");
    }
  }

  async function openLink() {
    const packed = location.hash.slice(1);
    if (!packed || packed === linked) return;
    linked = packed;
    try {
      open(await unpack(packed));
    } catch {
      say("error", "The link is damaged; this is the example");
    }
  }

  async function putIntoLink(text) {
    linked = text.length > MAX_LINKED ? "" : await pack(text);
    history.replaceState(null, "", linked ? `#${linked}` : location.pathname);
  }

  async function share({ target }) {
    await putIntoLink(editor.text);
    if (!linked) return (target.textContent = "Too long for a link");
    try {
      await navigator.clipboard.writeText(location.href);
      target.textContent = "Copied";
    } catch {
      target.textContent = "The address bar has the link";
    }
  }

  function choose(chosen) {
    view = chosen.dataset.view;
    for (const button of document.querySelectorAll("[data-view]")) {
      const isChosen = button === chosen;
      button.setAttribute("aria-selected", isChosen);
      element(button.getAttribute("aria-controls")).hidden = !isChosen;
    }
    refresh();
  }

  return {
    model: () => element("model").value,
    changed(text) {
      element("share").textContent = "Copy link";
      putIntoLink(text);
    },
    kinds: () => (view === "layers" ? [] : [view]),
    showModels({ models, model }) {
      if (!model) return;
      element("model").replaceChildren(...models.map((name) => new Option(name, name, false, name === model)));
    },
    showPicture(kind, { page, code, problem }) {
      if (problem) element(kind).textContent = problem;
      else if (kind === "code") element("code").textContent = code;
      else if (page) element("page").srcdoc = page;
    },
  };
}

/** Whether a text is a JSON object, as a `config.json` is. */
function isConfiguration(text) {
  if (!text.trimStart().startsWith("{")) return false;
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
