/** Writes the package as an archive with bytecode of Pyodide's Python, which imports it in a fraction of the time.
 *
 * `node archive.mjs WHEEL ARCHIVE`
 */

import { readFile, writeFile } from "node:fs/promises";

import { loadPyodide } from "pyodide";

const [wheel, archive] = process.argv.slice(2);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(await readFile(wheel)), "zip", { extractDir: "/archspec" });
python.runPython(`
import compileall, shutil
from py_compile import PycInvalidationMode

compileall.compile_dir("/archspec", quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
shutil.make_archive("/tmp/archspec", "zip", "/archspec")
`);
await writeFile(archive, python.FS.readFile("/tmp/archspec.zip"));
