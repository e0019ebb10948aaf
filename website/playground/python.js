/** Starts Python with the compiler. */

const here = (path) => new URL(path, import.meta.url);

/** Return a Python that has archives with packages, started in the plain way. */
export async function start(...archives) {
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const [python, ...packages] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/").href }),
    ...archives.map((name) => fetch(here(name)).then((response) => response.arrayBuffer())),
  ]);
  for (const archive of packages) python.unpackArchive(archive, "zip", { extractDir: "/packages" });
  python.runPython('import sys; sys.path.insert(0, "/packages")');
  return python;
}
