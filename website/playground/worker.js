/** Python with the compiler: receives texts, and answers with what `playground.py` computes. */

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (path) => new URL(path, import.meta.url);

async function start() {
  const [python, archive, code] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/").href }),
    fetch(here("archspec.zip")).then((response) => response.arrayBuffer()),
    fetch(here("playground.py")).then((response) => response.text()),
  ]);
  python.unpackArchive(archive, "zip", { extractDir: "/archspec" });
  python.runPython('import sys; sys.path.insert(0, "/archspec")');
  python.runPython(code, { filename: "playground.py" });
  return python.globals.get("analyzed");
}

const started = start();
started.then(
  () => postMessage({ started: true }),
  (error) => postMessage({ failure: `Python could not be started: ${error.message}` }),
);

onmessage = async ({ data: { text, model, theme } }) => {
  const analyzed = await started;
  try {
    postMessage(JSON.parse(analyzed(text, model, theme)));
  } catch (error) {
    postMessage({ failure: `The compiler failed; this is a bug in archspec; please report it. ${error.message}` });
  }
};
