/** Writes a running Python with the compiler as one compressed file, which starts in a browser within a second.
 *
 * `node snapshot.mjs PACKAGES FOLDER RESULT TEXT...`: the file in FOLDER is named after its contents, RESULT tells its
 * name, its sizes and the version. It has all modules that results of the texts need (specs, broken specs, configurations), and has
 * computed those of the first.
 */

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { loadPyodide } from "pyodide";

const [packages, folder, result, ...texts] = process.argv.slice(2);
const code = await readFile(new URL("warm_up.py", import.meta.url), "utf8");
const part = (name) => readFile(createRequire(import.meta.url).resolve(`pyodide/${name}`));

const first = await started({});
const contents = await Promise.all(texts.map((path) => readFile(path, "utf8")));
const modules = first.globals.get("modules_for")(JSON.stringify(contents));
const files = Buffer.from(first.globals.get("data")());

const saved = await started({ _makeSnapshot: true, env: { HOME: "/home/pyodide" } });
saved.globals.get("prepare")(modules, contents[0]);
const memory = saved.makeMemorySnapshot();
const [program, glue] = [await part("pyodide.asm.wasm"), await part("pyodide.asm.mjs")];
const parts = [program, glue, files, memory];
const sizes = { program: program.length, glue: glue.length, files: files.length, memory: memory.length };

first.FS.writeFile("/parts", Buffer.concat(parts));
first.globals.get("compress_file")("/parts");
const packed = Buffer.from(first.FS.readFile("/parts"));
const name = `python-${createHash("sha256").update(packed).digest("hex").slice(0, 16)}.zst`;
await writeFile(join(folder, name), packed);
const { info } = JSON.parse(await part("pyodide-lock.json"));
await writeFile(result, JSON.stringify({ info, name, sizes }));

async function started(options) {
  const python = await loadPyodide(options);
  python.mountNodeFS("/packages", packages); // an archive would leave its bytes in the memory
  python.runPython(code);
  return python;
}
