"""What a page shows in a browser: its nodes by name, its texts, its colors."""

from __future__ import annotations

import json
import re
from base64 import b64encode

from browser import Page


def ids(shown: Page) -> dict[str, str]:
    """The id of each drawn node by its full name."""
    nodes = shown.run(
        "[...document.querySelectorAll('.node')].map(n => [n.querySelector('title').textContent, n.dataset.id])"
    )
    return {title.split(",")[0]: id for title, id in nodes}


def box(shown: Page, name: str) -> dict[str, float]:
    """The rectangle of a node in the window."""
    id = ids(shown)[name]
    code = f"JSON.stringify(document.querySelector('#node-{id} > .shape').getBoundingClientRect())"
    return json.loads(shown.run(code))


def middle(shown: Page, name: str) -> tuple[float, float]:
    """A point of a node where no line, text or other node is: near the right end of its top."""
    found = box(shown, name)
    return found["x"] + found["width"] - min(found["width"] / 4, 24), found["y"] + min(found["height"] / 2, 6)


def panel(shown: Page) -> str:
    return shown.run("document.getElementById('panel').innerText")


def crumbs(shown: Page) -> str:
    return shown.run("document.getElementById('crumbs').innerText").replace("\n", " ")


def selected(shown: Page) -> str | None:
    return shown.run("document.querySelector('.at > title')?.textContent.split(',')[0] ?? null")


def transform(shown: Page) -> tuple[float, float, float]:
    x, y, k = re.findall(r"-?[\d.]+(?:e-\d+)?", shown.run("document.querySelector('#view > svg').style.transform"))
    return float(x), float(y), float(k)


def entry_x(shown: Page, name: str) -> float:
    """Where the line on the axis meets the top of a node."""
    code = """
      const box = document.querySelector("#node-%s > .shape").getBoundingClientRect();
      const ends = [...document.querySelectorAll(".wire")].map((wire) => {
        const end = wire.getPointAtLength(wire.getTotalLength()).matrixTransform(wire.getScreenCTM());
        return [end.x, end.y];
      });
      return ends.find(([x, y]) => Math.abs(y - box.top) < 7 && x > box.left && x < box.right)[0];
    """
    return shown.run(f"(() => {{ {code % ids(shown)[name]} }})()")


LOW_CONTRAST = """
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
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
"""


TILE = 40

MOSAIC = """(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,%s";
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const lines = [];
  for (let y = 0; y + %d <= image.height; y += %d) {
    const line = [];
    for (let x = 0; x + %d <= image.width; x += %d) {
      const { data } = context.getImageData(x, y, %d, %d);
      line.push([0, 1, 2].map((c) => {
        let sum = 0;
        for (let i = c; i < data.length; i += 4) sum += data[i];
        return Math.floor((4 * sum) / data.length).toString(16).padStart(2, "0");
      }).join(""));
    }
    lines.push(line.join(" "));
  }
  return lines.join("\\n") + "\\n";
})()"""


def mosaic(shown: Page, png: bytes) -> str:
    """The mean colors of the tiles of a picture: where things are, whatever the fonts."""
    return shown.run(MOSAIC % (b64encode(png).decode(), *[TILE] * 6))


def distance(one: str, other: str) -> int:
    return max(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (0, 2, 4))
