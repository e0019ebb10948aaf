// Widths of text in Helvetica and the fonts with its metrics: `metrics.py` in JavaScript.

/** Widths of the characters from the space to the tilde, in thousandths of the size of the font. */
const REGULAR = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
  556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556,
  833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500,
  556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500,
  334, 260, 334, 584,
];
const BOLD = [
  278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
  556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
  722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
  556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
  280, 389, 584,
];
const OTHERS = { "\u00d7": 584, "\u2192": 1000, "\u2013": 556, "\u2026": 1000 };
const UNKNOWN = 700;

/** The width of a text; that of characters without metrics is an estimate. */
function textWidth(text, size, bold = false) {
  const widths = bold ? BOLD : REGULAR;
  let total = 0;
  for (const c of text) total += widths[c.codePointAt(0) - 32] ?? OTHERS[c] ?? UNKNOWN;
  return roundEven((total * size) / 1000, 1);
}

/** Whether the widths of all characters are exact. */
const isKnown = (text) => [...text].every((c) => (c >= " " && c <= "~") || c in OTHERS);

/** A text, shortened in the middle if it is wider than `most`; characters that do not print are replaced. */
function shortened(text, size, most, bold = false) {
  const signs = [...text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : "\ufffd"))];
  if (textWidth(signs.join(""), size, bold) <= most) return signs.join("");
  for (let kept = signs.length - 2; kept >= 2; kept--) {
    const head = (kept + 1) >> 1;
    const shorter = `${signs.slice(0, head).join("")}\u2026${signs.slice(signs.length - (kept - head)).join("")}`;
    if (textWidth(shorter, size, bold) <= most) return shorter;
  }
  return `${signs[0]}\u2026`;
}
