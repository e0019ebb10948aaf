/** Restores the Python that `snapshot.mjs` has saved: its program, its files and its memory are one file. */

import { ZSTDDecoder } from "zstddec/stream";

import { info, name, sizes } from "archspec-snapshot";

const NO_FILES = "data:application/zip;base64,UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="; // an empty archive

export async function restore() {
  const next = await unpacked();
  const compiled = WebAssembly.compile(next(sizes.program)); // in other threads, while the rest is unpacked
  const glue = URL.createObjectURL(new Blob([next(sizes.glue)], { type: "text/javascript" }));
  const [files, memory] = [next(sizes.files), next(sizes.memory)];
  const [program, module, { loadPyodide }] = await Promise.all([compiled, import(glue), import("./pyodide/pyodide.mjs")]);
  const { fetch } = globalThis;
  const { instantiateStreaming } = WebAssembly;
  globalThis.fetch = (url, ...options) =>
    String(url).endsWith("pyodide.asm.wasm") ? Promise.resolve(new Response()) : fetch(url, ...options);
  WebAssembly.instantiateStreaming = async (_, imports) => {
    return { module: program, instance: await WebAssembly.instantiate(program, imports) };
  };
  try {
    const python = await loadPyodide({
      indexURL: new URL("pyodide/", import.meta.url).href,
      createPyodideModule: async (settings) => {
        const started = await module.default(settings);
        started.growMemory(memory.length);
        return started;
      },
      lockFileContents: { info, packages: {} },
      stdLibURL: NO_FILES,
      _loadSnapshot: memory,
    });
    write(python.FS, JSON.parse(new TextDecoder().decode(files)));
    return python;
  } finally {
    globalThis.fetch = fetch;
    WebAssembly.instantiateStreaming = instantiateStreaming;
  }
}

/** Fetch the file; return a function that unpacks a number of further bytes. */
async function unpacked() {
  const decoder = new ZSTDDecoder();
  const response = fetch(new URL(name, import.meta.url));
  await decoder.init();
  const chunks = decoder.decodeStreaming([new Uint8Array(await (await response).arrayBuffer())]);
  let chunk = new Uint8Array();
  return (size) => {
    const bytes = new Uint8Array(size);
    for (let end = 0; end < size; ) {
      if (!chunk.length) chunk = chunks.next().value;
      if (!chunk?.length) throw new Error("the file is incomplete or damaged");
      const part = chunk.subarray(0, size - end);
      bytes.set(part, end);
      end += part.length;
      chunk = chunk.subarray(part.length);
    }
    return bytes;
  };
}

function write(FS, files) {
  const encoder = new TextEncoder();
  const folders = new Set();
  for (const [path, text] of Object.entries(files)) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!folders.has(folder)) FS.mkdirTree(folder);
    folders.add(folder);
    FS.writeFile(path, encoder.encode(text), { canOwn: true });
  }
}
