/** Starts Python with the compiler. */

import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (path) => new URL(path, import.meta.url);

/** Run a file in a Python that has archives with packages, and return the Python. */
export async function start(file, ...archives) {
  const [python, code, ...packages] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/").href }),
    fetch(here(file)).then((response) => response.text()),
    ...archives.map((name) => fetch(here(name)).then((response) => response.arrayBuffer())),
  ]);
  for (const archive of packages) python.unpackArchive(archive, "zip", { extractDir: "/packages" });
  python.runPython('import sys; sys.path.insert(0, "/packages")');
  python.runPython(code, { filename: file });
  return python;
}
