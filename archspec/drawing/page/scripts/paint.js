// What the colors show: roles, or shares of parameters, FLOPs or bytes. `paint.py` and `theme.py` in JavaScript.

const theme = () => plan.themes[isDark() ? "dark" : "light"];

const isByRole = () => state.color === "role";

const leafKinds = ["layer", "op", "fn", "param"];

/** The share of each node by id, and the largest of a closed layer or operation; null if the sizes cannot be used. */
function shares() {
  if (state.color === "params") return sharesOf((id) => plan.node(id).params ?? 0);
  return validSizes() && sharesOf((id) => amountsOf(id)[state.color]);
}

function sharesOf(amount) {
  const whole = Number(amount(0)) || 1;
  const byId = plan.nodes.map((_, id) => Number(amount(id)) / whole);
  const most = Math.max(0, ...byId.filter((_, id) => leafKinds.includes(plan.node(id).kind))) || 1;
  return { byId, most };
}

/** The colors of a picture: of boxes, of roles, and of the texts on them. */
function paintOf() {
  const colors = theme();
  const found = isByRole() ? null : shares();
  const fillOf = (node) => {
    if (node.form === "terminal") return { fill: colors.terminal, line: colors.pill_line };
    if (found) return { fill: heat(colors, found.byId[node.id] / found.most), line: colors.pill_line };
    if (!isByRole()) return { fill: colors.pill, line: colors.pill_line };
    if (node.form === "pill" || node.form === "circle") return { fill: colors.pill, line: colors.pill_line };
    return colors.styles[node.role]?.fill ?? colors.plain;
  };
  const letterOf = (node) => (isByRole() ? (colors.styles[node.role]?.letter ?? "") : "");
  const inks = (fill) => {
    if (isByRole() || !found) return [colors.ink, colors.dim];
    const ink = contrast("#ffffff", fill) > contrast("#000000", fill) ? "#ffffff" : "#000000";
    return [ink, ink];
  };
  return { theme: colors, shares: found, fillOf, letterOf, inks };
}

/** A color for a share from 0 to 1: its square root, because most shares are small. */
function heat({ cold, hot }, share) {
  const part = Math.sqrt(Math.max(0, Math.min(1, share)));
  const [low, high] = [channelsOf(cold), channelsOf(hot)];
  return `#${low.map((value, i) => roundEven(value + (high[i] - value) * part, 0).toString(16).padStart(2, "0")).join("")}`;
}

const channelsOf = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

/** The contrast ratio of two colors, from 1 to 21 (WCAG 2.2). */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(color) {
  const [r, g, b] = channelsOf(color).map((value) => value / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
