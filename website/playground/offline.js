/** The service worker: home page and playground without a network, after the first visit.
 *
 * The snapshot of Python, whose name changes with its contents, comes from the cache; all else from the network first.
 */

import { files, version } from "archspec-offline";

const NAME = `archspec-${version}`;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(files)));
  skipWaiting();
});

addEventListener("activate", (event) => {
  const others = caches.keys().then((names) => names.filter((name) => name.startsWith("archspec-") && name !== NAME));
  event.waitUntil(others.then((names) => Promise.all(names.map((name) => caches.delete(name)))).then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && new URL(request.url).origin === location.origin) event.respondWith(answer(request));
});

async function answer(request) {
  const cache = await caches.open(NAME);
  const kept = () => cache.match(request, { ignoreSearch: true, ignoreVary: true });
  if (request.url.endsWith(".zst")) {
    const found = await kept();
    if (found) return found;
  }
  try {
    const response = await fetch(request);
    if (response.ok && response.status === 200) cache.put(request, response.clone());
    return response;
  } catch (error) {
    const found = await kept();
    if (found) return found;
    throw error;
  }
}
