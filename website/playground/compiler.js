/** The compiler in a worker, which the page has started, to ask for results. */

export function newCompiler(onStart, onFailure) {
  const { worker } = globalThis;
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data: { started, failure, id, result } }) => {
    if (started) return onStart(started);
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (!failure) return resolve(result);
    onFailure(failure);
    reject?.(new Error(failure));
  };
  worker.onerror = (event) => onFailure(`Python could not be started: ${event.message || "error in the worker"}`);
  worker.postMessage({}); // asks whether it has started
  /** Call a function of `playground.py`. */
  return (name, ...values) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, name, values });
    });
}
