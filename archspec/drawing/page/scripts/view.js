// The window onto the picture: its position and scale, and the gestures that change them.

const view = { x: 0, y: 0, k: 1, fitted: true };
const LEAST = 0.04;
const MOST = 6;

function place() {
  const svg = byId("view").querySelector("svg");
  if (svg) svg.style.transform = `translate(${view.x}px,${view.y}px) scale(${view.k})`;
}

/** Show the whole picture; at first, or when `readable` is set, never smaller than can be read. */
function fit(readable = false) {
  const { clientWidth: width, clientHeight: height } = byId("view");
  const across = (width - 16) / shown.width;
  const whole = Math.min(1, across, (height - 16) / shown.height);
  view.k = Math.max(LEAST, readable ? Math.max(whole, Math.min(1, across, 0.9)) : whole);
  view.x = Math.max(8, (width - shown.width * view.k) / 2);
  if (shown.width * view.k > width) view.x = Math.min(8, width / 2 - shown.axis * view.k);
  view.y = Math.max(8, Math.min(24, (height - shown.height * view.k) / 2));
  view.fitted = true;
  view.readable = readable;
  place();
  writeFragment();
}

function moveBy(dx, dy) {
  view.x += dx;
  view.y += dy;
  view.fitted = false;
  place();
}

/** Scale around a point of the window, which stays where it is. */
function scaleAt(x, y, factor) {
  const k = Math.min(MOST, Math.max(LEAST, view.k * factor));
  view.x = x - ((x - view.x) * k) / view.k;
  view.y = y - ((y - view.y) * k) / view.k;
  view.k = k;
  view.fitted = false;
  place();
}

const scaleMiddle = (factor) => scaleAt(byId("view").clientWidth / 2, byId("view").clientHeight / 2, factor);

/** Move the picture so that a point of it, which was drawn at `before`, is on screen where it was. */
function keepInPlace(before, after) {
  if (!before || !after) return;
  view.x += (before.x + before.axis - after.x - after.axis) * view.k;
  view.y += (before.y - after.y) * view.k;
  view.fitted = false;
  place();
}

/** Bring a node into the window, if it is not there. */
function bringIntoView(id) {
  const at = shown.places.get(id);
  if (!at) return;
  const { clientWidth: width, clientHeight: height } = byId("view");
  const x = (at.x + at.w / 2) * view.k + view.x;
  const y = (at.y + Math.min(at.h, 120) / 2) * view.k + view.y;
  if (x < 60 || x > width - 60 || y < 40 || y > height - 40) moveBy(width / 2 - x, height / 2 - y);
}

/** When the window has another size, fit again if the picture was fitted, and keep the middle in the middle otherwise. */
function watchSize() {
  const element = byId("view");
  let [width, height] = [element.clientWidth, element.clientHeight];
  addEventListener("resize", () => {
    const [before, above] = [width, height];
    [width, height] = [element.clientWidth, element.clientHeight];
    if (view.fitted) fit(view.readable);
    else moveBy((width - before) / 2, (height - above) / 2);
  });
}

/** Dragging, pinching, the wheel, and taps, which `tapped` is called with. */
function watchGestures(tapped) {
  const element = byId("view");
  const pointers = new Map();
  let moved = false;
  let last = { id: null, time: 0 };
  let rest = 0;

  const local = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    if (pointers.size === 0) moved = false;
    pointers.set(event.pointerId, { ...local(event), target: event.target });
  });
  addEventListener("pointermove", (event) => {
    const from = pointers.get(event.pointerId);
    if (!from) return;
    const to = local(event);
    if (!moved && pointers.size === 1 && Math.hypot(to.x - from.x, to.y - from.y) < 5) return;
    if (!moved && pointers.size === 1) element.setPointerCapture(event.pointerId);
    moved = true;
    element.classList.add("moving");
    if (pointers.size === 1) moveBy(to.x - from.x, to.y - from.y);
    else {
      const [a, b] = [...pointers.values()];
      const other = from === a ? b : a;
      const factor = Math.hypot(to.x - other.x, to.y - other.y) / (Math.hypot(from.x - other.x, from.y - other.y) || 1);
      scaleAt(other.x, other.y, factor);
    }
    Object.assign(from, to);
  });
  const lift = (event) => {
    const from = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (!from) return;
    if (pointers.size === 0) element.classList.remove("moving");
    if (moved) {
      if (pointers.size === 0) writeFragment();
      return;
    }
    if (event.type === "pointercancel") return;
    const id = from.target.closest("[data-id]")?.dataset.id ?? null;
    const again = id !== null && last.id === id && event.timeStamp - last.time < 400;
    last = { id: again ? null : id, time: event.timeStamp };
    tapped(id === null ? null : Number(id), again || Boolean(from.target.closest(".toggle")));
  };
  addEventListener("pointerup", lift);
  addEventListener("pointercancel", lift);

  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = local(event);
      const line = event.deltaMode === 1 ? 16 : 1;
      if (event.ctrlKey || event.metaKey) scaleAt(x, y, Math.exp(-event.deltaY * line * 0.0025 * (event.ctrlKey ? 2 : 1)));
      else if (event.shiftKey && !event.deltaX) moveBy(-event.deltaY * line, 0);
      else moveBy(-event.deltaX * line, -event.deltaY * line);
      clearTimeout(rest);
      rest = setTimeout(writeFragment, 200); // browsers limit how often the history is written
    },
    { passive: false },
  );
}
