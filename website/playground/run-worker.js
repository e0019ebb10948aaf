/** Runs examples in Python: receives those of a page and the number of one, and answers with what it prints. */

import { start } from "./python.js";

let started; // Python, a promise
let session; // of the page, in Python
let played = 0; // the examples up to this number have been run, or are not needed
let last = Promise.resolve();

onmessage = ({ data: { examples, number } }) => {
  last = last.then(() => answer(examples, number));
};

async function answer(examples, number) {
  const report = (message) => postMessage({ number, ...message });
  try {
    started ??= start("archspec.zip", "examples.zip").then(async (python) => {
      python.runPython(await (await fetch(new URL("run.py", import.meta.url))).text());
      return python;
    });
    const python = await started;
    if (!session || number < played) {
      session = python.globals.get("new_session")();
      played = 0;
    }
    const play = ({ kind, mark, text }) => python.globals.get("played")(session, kind, mark, text);
    const needed = examples.slice(played, number).filter((example) => example.needed);
    needed.forEach((example, i) => {
      report({ status: `Running what this example needs (${i + 1} of ${needed.length}) …` });
      play(example);
    });
    report({ status: "Running …" });
    report({ output: play(examples[number]) });
    played = number + 1;
  } catch (error) {
    started = session = undefined;
    report({ failure: `The example could not be run: ${error.message}` });
  }
}
