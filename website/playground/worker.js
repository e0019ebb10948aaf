/** Python with the compiler: receives texts, and answers with what `playground.py` computes. */

import { start } from "./python.js";

const started = start("playground.py", "archspec.zip").then((python) => python.globals.get("analyzed"));
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
