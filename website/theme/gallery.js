// The gallery of families: filter by word and kind, order by name, year or size.
const gallery = document.querySelector(".gallery");
const form = document.querySelector(".gallery-controls");
if (gallery && form) {
  const [word, kind, order] = form.querySelectorAll("input, select");
  const cards = [...gallery.children];
  const show = () => {
    const words = word.value.toLowerCase().split(/\s+/).filter(Boolean);
    const key = order.value;
    const sorted = key === "name" ? cards : [...cards].sort((a, b) => b.dataset[key] - a.dataset[key]);
    let shown = 0;
    for (const card of sorted) {
      const { text, kind: own } = card.dataset;
      card.hidden = (kind.value && own !== kind.value) || !words.every((each) => text.includes(each));
      shown += !card.hidden;
    }
    gallery.replaceChildren(...sorted);
    form.querySelector("output").textContent = `${shown} of ${cards.length} families`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}
