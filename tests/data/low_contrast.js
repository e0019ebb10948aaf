  const parse = (color) => color.match(/[\d.]+/g).map(Number);
  const part = (value) => value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (element) => {
    const color = element ? parse(getComputedStyle(element).backgroundColor) : [255, 255, 255];
    return color[3] === 0 ? behind(element.parentElement) : color;
  };
  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *:not(svg *):not(script)")].filter((element) => {
    if (!hasText(element) || !element.getClientRects().length) return false;
    const [low, high] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05) < 4.5;
  }).map((element) => element.outerHTML);
