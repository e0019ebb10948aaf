/** Python with the compiler: answers requests by the functions of `playground.py`.
 *
 * Python is restored from a snapshot; where that is not possible, or a module is missing in it, it starts anew.
 */

import { start } from "./python.js";
import { restore } from "./restore.js";

let isRestored = true;
let compiler = restore()
  .catch((error) => {
    console.info(`The snapshot cannot be restored: ${error.message}`);
    return startAnew();
  })
  .then(compilerOf);
onmessage = async ({ data: { id, name, values } }) => {
  if (!id) return report();
  try {
    postMessage({ id, result: JSON.parse(await call(name, values)) });
  } catch (error) {
    postMessage({ id, failure: `The compiler failed; this is a bug in archspec; please report it. ${error.message}` });
  }
};

/** Tell the page when Python has started; it asks once it listens, since the worker starts before its script. */
async function report() {
  try {
    await compiler;
    postMessage({ started: isRestored ? "restored" : "anew" });
  } catch (error) {
    postMessage({ failure: `Python could not be started: ${error.message}` });
  }
}

async function call(name, values) {
  try {
    return (await compiler)[name](...values);
  } catch (error) {
    if (!isRestored || error.type !== "ModuleNotFoundError") throw error;
    compiler = startAnew().then(compilerOf);
    return (await compiler)[name](...values);
  }
}

function startAnew() {
  isRestored = false;
  return start("archspec.zip");
}

function compilerOf(python) {
  return python.pyimport("playground");
}
