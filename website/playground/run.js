/** The buttons that run the examples of a page; Python starts with the first one. */

const examples = JSON.parse(document.getElementById("examples").textContent);
const buttons = new Map(
  [...document.querySelectorAll(".run button")].map((button) => [Number(button.dataset.example), button]),
);
let worker;

for (const [number, button] of buttons) {
  button.onclick = () => {
    button.disabled = true;
    show(number, worker ? "Waiting …" : "Starting Python …", true);
    worker ??= newWorker();
    worker.postMessage({ examples, number });
  };
}

function newWorker() {
  const created = new Worker(new URL("run-worker.js", import.meta.url), { type: "module" });
  created.onmessage = ({ data: { number, status, output, failure } }) => {
    show(number, status ?? output ?? failure, status !== undefined);
    buttons.get(number).disabled = status !== undefined;
  };
  created.onerror = (event) => {
    for (const [number, button] of buttons) {
      if (!button.disabled) continue;
      show(number, `Python could not be started: ${event.message || "error in the worker"}`, false);
      button.disabled = false;
    }
    worker = undefined;
  };
  return created;
}

/** Show a text under an example: its output, or how far it is. */
function show(number, text, isStatus) {
  const output = buttons.get(number).nextElementSibling;
  output.textContent = text;
  output.classList.toggle("status", isStatus);
  output.hidden = false;
}
