"""What a page shows in a browser: its nodes by name, its texts, its colors."""

from __future__ import annotations

import json
import re
from base64 import b64encode

from browser import Page
from paths import DATA


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


LOW_CONTRAST = (DATA / "low_contrast.js").read_text(encoding="utf-8")


TILE = 40

MOSAIC = (DATA / "mosaic.js").read_text(encoding="utf-8")


def mosaic(shown: Page, png: bytes) -> str:
    """The mean colors of the tiles of a picture: where things are, whatever the fonts."""
    return shown.run(MOSAIC % (b64encode(png).decode(), *[TILE] * 6))


def distance(one: str, other: str) -> int:
    return max(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (0, 2, 4))
