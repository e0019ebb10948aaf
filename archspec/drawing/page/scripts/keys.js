// The keyboard: every action of the page has a key.

const KEYS = [
  ["/", "search by address, type or tensor", () => byId("query").focus()],
  ["↑ ↓ ← →", "select the nearest node in a direction", null],
  ["Enter", "open or close the selected block", () => plan.isBox(state.at) && toggle(state.at)],
  ["Backspace", "select the block around the selected node", () => state.at && select(plan.around(state.at), true)],
  ["Escape", "select nothing", () => select(null)],
  ["+", "open one more level", () => openLevel()],
  ["-", "close the innermost level", () => closeLevel()],
  ["f", "fit the picture into the window", () => fit()],
  ["i", "zoom in", () => scaleMiddle(1.25)],
  ["o", "zoom out", () => scaleMiddle(0.8)],
  ["Shift ↑ ↓ ← →", "move the picture", null],
  ["c", "change what colors show", () => nextColor()],
  ["d", "switch between light and dark", () => switchTheme()],
  ["p", "go to the details", () => byId("panel").focus()],
  ["s", "save the picture as shown as SVG", () => saveSvg()],
  ["g", "save the picture as shown as PNG", () => savePng()],
  ["?", "show these keys", () => showKeys()],
];

const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
const SAME = { "=": "+", " ": "Enter", _: "-" };

function watchKeys() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const tag = event.target.tagName;
    if (tag === "INPUT" || tag === "SELECT") {
      if (event.key === "Escape") byId("view").focus();
      return;
    }
    const pressed = event.key === "Enter" || event.key === " ";
    if (pressed && (tag === "BUTTON" || tag === "A" || event.target.closest("#hits"))) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      if (event.target.closest("#panel")) return;
      event.shiftKey ? moveBy(-80 * arrow[0], -80 * arrow[1]) : selectTowards(...arrow);
    } else {
      const key = SAME[event.key] || event.key;
      const action = KEYS.find(([name]) => name === key)?.[2];
      if (!action) return;
      action();
    }
    event.preventDefault();
  });
}

/** Select the nearest node in a direction; what lies straight ahead is nearer than what lies aside. */
function selectTowards(dx, dy) {
  const places = [...shown.places];
  if (!places.length) return;
  const from = shown.places.get(state.at);
  if (!from) return select(places[0][0], true);
  const middle = (at) => [at.x + at.w / 2, at.open ? at.y + 10 : at.y + at.h / 2];
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const [id, at] of places) {
    const [u, v] = middle(at);
    const ahead = (u - x) * dx + (v - y) * dy;
    const aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    if (id !== state.at && ahead > 3 && ahead + 2.2 * aside < least) {
      best = id;
      least = ahead + 2.2 * aside;
    }
  }
  if (best !== null) select(best, true);
}

function showKeys() {
  const rows = KEYS.flatMap(([key, what]) => [
    make("dt", {}, ...key.split(" ").flatMap((part) => [make("kbd", {}, part), " "])),
    make("dd", {}, what),
  ]);
  const pointer = "Drag to move, pinch or hold Ctrl while scrolling to zoom, double-click a block to open or close it.";
  byId("keys").replaceChildren(
    make("h2", {}, "Keys"),
    make("dl", {}, rows),
    make("p", {}, pointer),
    make("button", { click: () => byId("keys").close() }, "Close"),
  );
  byId("keys").showModal();
}
