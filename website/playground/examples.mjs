/** Finds the examples of pages that run in the browser's Python, as JSON by path.
 *
 * `node examples.mjs RESULT ARCHIVE ARCHIVE PAGE...`
 */

import { readFile, writeFile } from "node:fs/promises";

import { loadPyodide } from "pyodide";

const [result, ...paths] = process.argv.slice(2);
const python = await loadPyodide();
for (const archive of paths.splice(0, 2)) {
  python.unpackArchive(new Uint8Array(await readFile(archive)), "zip", { extractDir: "/packages" });
}
python.runPython('import sys; sys.path.insert(0, "/packages")');
const { examples } = python.pyimport("runnable");
const found = {};
for (const page of paths) found[page] = JSON.parse(examples(await readFile(page, "utf8")));
await writeFile(result, JSON.stringify(found));
