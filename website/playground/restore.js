/** Restores the Python that `snapshot.mjs` has saved: its program, its memory and its files are one file. */

import { ZSTDDecoder } from "zstddec";

import { info, name, sizes } from "archspec-snapshot";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const NO_FILES = "data:application/zip;base64,UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="; // an empty archive

export async function restore() {
  const [program, memory, glue, files] = await parts();
  const module = await import(URL.createObjectURL(new Blob([glue], { type: "text/javascript" })));
  const fetched = globalThis.fetch;
  globalThis.fetch = (url, options) =>
    String(url).endsWith("pyodide.asm.wasm")
      ? Promise.resolve(new Response(program, { headers: { "Content-Type": "application/wasm" } }))
      : fetched(url, options);
  try {
    const python = await loadPyodide({
      indexURL: new URL("pyodide/", import.meta.url).href,
      createPyodideModule: (settings) => grown(module.default(settings), memory.length),
      lockFileContents: { info, packages: {} },
      stdLibURL: NO_FILES,
      _loadSnapshot: memory.slice(), // at an address that is a multiple of 4
    });
    write(python.FS, JSON.parse(new TextDecoder().decode(files)));
    return python;
  } finally {
    globalThis.fetch = fetched;
  }
}

/** Give a program the memory that the saved one had. */
async function grown(starting, length) {
  const program = await starting;
  program.growMemory(length);
  return program;
}

/** Fetch and unpack the file. */
async function parts() {
  const decoder = new ZSTDDecoder();
  const response = fetch(new URL(name, import.meta.url));
  await decoder.init();
  const all = decoder.decode(
    new Uint8Array(await (await response).arrayBuffer()),
    sizes.reduce((sum, size) => sum + size),
  );
  let end = 0;
  return sizes.map((size) => all.subarray(end, (end += size)));
}

function write(FS, files) {
  const made = new Set();
  for (const [path, text] of Object.entries(files)) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!made.has(folder)) FS.mkdirTree(folder);
    made.add(folder);
    FS.writeFile(path, text);
  }
}
