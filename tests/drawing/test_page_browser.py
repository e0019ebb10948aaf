"""The page of a model in a real browser: what it shows, and what pointers, fingers and keys do."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pages
import pytest
import shows
from browser import Browser, Page, executable
from pages import page, page_of
from paths import DATA, GOLDEN

import archspec

pytestmark = [pytest.mark.slow, pytest.mark.skipif(executable() is None, reason="no Chromium is installed")]

QUERY = "encoder.layer.*.attention.self.query"
LAYER = "encoder.layer.*"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = executable()
    assert path
    started = Browser(path)
    yield started
    started.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open the page of a model, or of a plan; at the end, no page has asked for anything or has failed."""
    found: list[Page] = []

    def open_page(model: str | dict[str, Any] = "bert-base-uncased", fragment: str = "", **options: Any) -> Page:
        path = tmp_path / "page.html"
        path.write_text(page(model) if isinstance(model, str) else page_of(model), encoding="utf-8")
        shown = browser.page(path.as_uri() + fragment, **options)
        shown.wait("document.querySelector('#view > svg')")
        found.append(shown)
        return shown

    yield open_page
    for shown in found:
        requests = [event["request"]["url"] for event in shown.events("Network.requestWillBeSent")]
        assert all(url.startswith(("file:", "data:", "blob:")) for url in requests), requests
        assert sum(url.startswith("file:") for url in requests) <= 2
        failures = [event["exceptionDetails"] for event in shown.events("Runtime.exceptionThrown")]
        assert not [failure.get("exception", {}).get("description", failure["text"]) for failure in failures]
        assert not shown.events("Log.entryAdded")
        shown.close()


# What is shown


def test_the_panel_tells_all_about_a_layer(opened: Callable[..., Page]) -> None:
    shown = opened()
    assert "109,482,240" in shows.panel(shown) and "96.6\u00a0GFLOPs" in shows.panel(shown)
    shown.click(*shows.middle(shown, QUERY))
    text = shows.panel(shown)
    assert shows.crumbs(shown) == "bert-base-uncased \u203a encoder.layer.* \u203a attention.self \u203a query"
    for expected in (
        "encoder.layer.*.attention.self.query",
        "batch \u00d7 seq \u00d7 768 from embeddings.LayerNorm",
        "7,087,104 12 \u00d7 590,592",
        "6.5 %",
        "7.25\u00a0GFLOPs 7,247,757,312, 7.5\u00a0%",
        "weight\t768 \u00d7 768\t589,824",
        "in_features\t768",
        "specs/std/attention.arch:",
        "q = query:",
    ):
        assert expected in text, expected
    assert shown.run("document.querySelectorAll('.wire.lit').length") >= 2


def test_sizes_are_typed_and_checked(opened: Callable[..., Page]) -> None:
    shown = opened()
    shown.run("document.getElementById('size-seq').focus(); document.getElementById('size-seq').select()")
    shown.type("513")
    shown.key("Enter")
    assert "largest seq is 512" in shows.panel(shown) and "GFLOPs" not in shows.panel(shown)
    shown.run("document.getElementById('size-seq').select()")
    shown.type("128")
    shown.key("Enter")
    flops = archspec.cost("bert-base-uncased", batch=1, seq=128).work.flops
    assert f"{flops:,}" in shows.panel(shown)
    assert "size-seq=128" in shown.run("location.hash")


def test_tied_frozen_and_applied_again(opened: Callable[..., Page]) -> None:
    shown = opened("transformer-base")
    shown.click(*shows.middle(shown, "tgt_word_prj"))
    assert "tied to\nencoder.src_word_emb" in shows.panel(shown)
    shown.click(*shows.middle(shown, "encoder.position_enc"))
    assert "frozen" in shows.panel(shown)
    albert = opened("albert-base-v2")
    albert.click(*shows.middle(albert, "encoder.albert_layer_groups.0.albert_layers.0"))
    assert "the same weights, applied 12 times" in shows.panel(albert)


def test_a_model_without_parameters(opened: Callable[..., Page]) -> None:
    shown = opened(f"{DATA / 'values.arch'}:positions")
    assert "positions" in shows.panel(shown) and shown.run("document.getElementById('notice').hidden")


def test_every_text_has_contrast(opened: Callable[..., Page]) -> None:
    for dark in (False, True):
        shown = opened(dark=dark)
        assert shown.run("document.documentElement.className") == ("dark" if dark else "")
        shown.click(*shows.middle(shown, QUERY))
        shown.key("/")
        shown.type("query")
        assert shown.run("document.querySelectorAll('#hits li').length") > 0
        assert shown.run(f"(() => {{ {shows.LOW_CONTRAST} }})()") == []


@pytest.mark.parametrize("name", pages.HOSTILE[:-1])
def test_hostile_names_stay_texts(opened: Callable[..., Page], name: str) -> None:
    plan = pages.renamed(pages.plan_in(page("bert-base-uncased")), name)
    shown = opened(plan)
    first = "document.querySelector('.node > rect.shape').getBoundingClientRect()"
    shown.click(shown.run(f"{first}.x") + 9, shown.run(f"{first}.y") + 20)
    shown.key("/")
    shown.type(name[:5])
    assert shown.run("document.title") not in ("harmed", "1")
    assert shown.run("document.querySelectorAll('script').length") == 2
    assert shown.run("document.querySelectorAll('img, iframe, object, [onload], [onerror]').length") == 0
    texts = "[...document.querySelectorAll('#panel *, #bar *')]"
    wide = f"{texts}.filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML)"
    assert shown.run(wide) == []


LONG = """
import std { Linear }
dim batch
block NAME(n = 4)(x [batch, n]) -> [batch, n] {
  return x |> NAME: Linear(n, n) |> NAME_: Linear(n, n)
}
block Outer(n = 4)(x [batch, n]) -> [batch, n] {
  return x |> NAME: NAME()
}
model "NAME" = Outer()
"""


def test_long_names_stay_inside_their_boxes(opened: Callable[..., Page], tmp_path: Path) -> None:
    spec = tmp_path / "long.arch"
    spec.write_text(LONG.replace("NAME", "m" * 200))
    shown = opened(str(spec))
    outside = """[...document.querySelectorAll('.node')].filter((node) => {
      const shape = node.querySelector('.shape').getBoundingClientRect();
      return [...node.querySelectorAll('text')].some((text) => {
        const box = text.getBoundingClientRect();
        return box.left < shape.left - 1 || box.right > shape.right + 1;
      });
    }).map((node) => node.outerHTML)"""
    for key in ("", "-", "-"):
        if key:
            shown.key(key)
        assert shown.run(outside) == []


# Opening and closing


@pytest.mark.parametrize("name", [LAYER, f"{LAYER}.attention.self", QUERY])
def test_a_block_opens_and_closes_in_place(opened: Callable[..., Page], name: str) -> None:
    shown = opened()
    shown.click(*shows.middle(shown, name))
    assert shows.selected(shown) == name
    before, entry = shows.box(shown, name), shows.entry_x(shown, name)
    shown.key("Enter")
    after = shows.box(shown, name)
    assert after["width"] != before["width"] and after["y"] == pytest.approx(before["y"], abs=0.6)
    assert shows.entry_x(shown, name) == pytest.approx(entry, abs=1)
    shown.key("Enter")
    assert shows.box(shown, name) == pytest.approx(before, abs=0.6)


def test_the_triangle_opens_with_one_click(opened: Callable[..., Page]) -> None:
    shown = opened()
    count = shown.run("document.querySelectorAll('.node').length")
    id = shows.ids(shown)[QUERY]
    place = f"document.querySelector('#node-{id} .toggle path').getBoundingClientRect()"
    x, y, w, h = shown.run(f"(() => {{ const b = {place}; return [b.x, b.y, b.width, b.height] }})()")
    shown.click(x + w / 2, y + h / 2)
    assert shown.run("document.querySelectorAll('.node').length") > count


def test_levels(opened: Callable[..., Page]) -> None:
    shown = opened()
    count = "document.querySelectorAll('.node').length"
    counts = [shown.run(count)]
    for _ in range(6):
        shown.key("+")
        counts.append(shown.run(count))
    assert counts == sorted(counts) and counts[-1] > 2 * counts[0]
    for _ in range(8):
        shown.key("-")
    assert shown.run(count) < counts[0] and LAYER in shows.ids(shown) and QUERY not in shows.ids(shown)


# Keys


def test_everything_has_a_key(opened: Callable[..., Page]) -> None:
    shown = opened()
    shown.key("ArrowDown")
    first = shows.selected(shown)
    assert first
    for _ in range(4):
        shown.key("ArrowDown")
    assert shows.selected(shown) not in (None, first)
    shown.key("ArrowUp")
    shown.key("Escape")
    assert shows.selected(shown) is None

    shown.key("/")
    assert shown.run("document.activeElement.id") == "query"
    shown.type("encoder.layer.7.attention.self.query.weight")
    shown.key("Enter")
    assert shows.selected(shown) == QUERY and shown.run("document.activeElement.id") == "view"
    shown.key("Backspace")
    assert shows.selected(shown) == f"{LAYER}.attention.self"
    shown.key("Enter")
    assert QUERY not in shows.ids(shown)

    scale = "document.querySelector('#view > svg').style.transform"
    before = shown.run(scale)
    shown.key("i")
    assert shown.run(scale) != before
    shown.key("f")
    shown.key("ArrowLeft", modifiers=8)
    assert "translate" in shown.run(scale)
    shown.key("c")
    assert shown.run("document.getElementById('color').value") == "params"
    assert "share of parameters" in shown.run("document.getElementById('legend').innerText")
    shown.key("d")
    assert shown.run("document.documentElement.className") == "dark"
    shown.key("p")
    assert shown.run("document.activeElement.id") == "panel"
    shown.key("?")
    assert shown.run("document.getElementById('keys').open")
    shown.key("Escape")
    assert not shown.run("document.getElementById('keys').open")


def test_all_controls_are_reached_with_tab(opened: Callable[..., Page]) -> None:
    shown = opened()
    reached = []
    for _ in range(14):
        shown.key("Tab")
        reached.append(shown.run("document.activeElement.id"))
    assert {"query", "color", "less", "more", "fit", "theme", "svg", "png", "help", "view"} <= set(reached)


def test_search_by_type_with_the_arrows(opened: Callable[..., Page]) -> None:
    shown = opened()
    shown.key("/")
    shown.type("LayerNorm")
    hits = shown.run("[...document.querySelectorAll('#hits li > span')].map(e => e.textContent)")
    assert len(hits) == 3
    shown.key("ArrowDown")
    shown.key("Enter")
    assert shows.selected(shown) == hits[1]
    shown.key("/")
    shown.type("zzz")
    assert "nothing found" in shown.run("document.getElementById('hits').innerText")


# Pointers and fingers


def test_dragging_and_the_wheel(opened: Callable[..., Page]) -> None:
    shown = opened()
    x, y, k = shows.transform(shown)
    shown.mouse("mousePressed", 100, 400, button="left", clickCount=1)
    shown.mouse("mouseMoved", 130, 420, button="left", buttons=1)
    shown.mouse("mouseMoved", 150, 430, button="left", buttons=1)
    shown.mouse("mouseReleased", 150, 430, button="left", clickCount=1)
    assert shows.transform(shown) == pytest.approx((x + 50, y + 30, k), abs=0.6)
    shown.mouse("mouseWheel", 300, 400, deltaX=0, deltaY=120)
    assert shows.transform(shown)[1] == pytest.approx(y + 30 - 120, abs=0.6)
    name = f"{LAYER}.attention.output.dense"
    before = shows.box(shown, name)
    shown.mouse("mouseWheel", before["x"], before["y"], deltaX=0, deltaY=-100, modifiers=2)
    assert shows.transform(shown)[2] > k
    assert shows.box(shown, name)["x"] == pytest.approx(before["x"], abs=1)


def test_fingers(opened: Callable[..., Page]) -> None:
    shown = opened(touch=True, width=420, height=800)
    x, y, k = shows.transform(shown)
    shown.touch("touchStart", (200, 300))
    for step in range(1, 6):
        shown.touch("touchMove", (200 + 10 * step, 300 + 6 * step))
    shown.touch("touchEnd")
    moved = shows.transform(shown)
    assert moved[0] > x + 30 and moved[1] > y + 15 and moved[2] == k
    shown.touch("touchStart", (150, 300), (250, 300))
    for step in range(1, 6):
        shown.touch("touchMove", (150 - 10 * step, 300), (250 + 10 * step, 300))
    shown.touch("touchEnd")
    assert shows.transform(shown)[2] > 1.5 * k
    shown.key("f")
    at = shows.middle(shown, LAYER)[0], shows.box(shown, LAYER)["y"] + 3
    shown.touch("touchStart", at)
    shown.touch("touchEnd")
    assert shows.selected(shown) == LAYER
    count = shown.run("document.querySelectorAll('.node').length")
    shown.touch("touchStart", at)
    shown.touch("touchEnd")
    assert shown.run("document.querySelectorAll('.node').length") != count


def test_a_phone_shows_the_picture_on_two_thirds_of_its_height(opened: Callable[..., Page]) -> None:
    shown = opened(touch=True, width=390, height=844)
    assert shown.run("document.getElementById('view').clientHeight") >= 844 * 2 / 3
    assert shown.run("document.documentElement.scrollWidth") == 390


def test_another_window_size_fits_the_picture_again(opened: Callable[..., Page]) -> None:
    shown = opened()
    shown.key("f")
    before = shows.transform(shown)
    shown.resize(900, 500)
    shown.wait(f"!document.querySelector('#view > svg').style.transform.includes('scale({before[2]})')")
    size = json.loads(shown.run("JSON.stringify(document.querySelector('#view > svg').getBoundingClientRect())"))
    room = json.loads(shown.run("JSON.stringify(document.getElementById('view').getBoundingClientRect())"))
    assert size["width"] <= room["width"] and size["height"] <= room["height"]


# Links and files


def test_a_link_shows_the_same(opened: Callable[..., Page]) -> None:
    shown = opened()
    shown.click(*shows.middle(shown, QUERY), times=2)
    for key in ("c", "c", "d", "f"):
        shown.key(key)
    fragment = shown.run("location.hash")
    picture = shown.run("document.getElementById('view').innerHTML")
    other = opened(fragment=fragment)
    other.key("f")
    assert other.run("document.getElementById('view').innerHTML") == picture
    assert shows.selected(other) == QUERY and shows.panel(other) == shows.panel(shown)
    assert other.run("location.hash") == fragment


def test_a_link_to_what_is_not_there(opened: Callable[..., Page]) -> None:
    shown = opened(fragment="#at=none&open=x&open=&color=red&theme=1&size-seq=%00&shut=__proto__")
    assert shows.selected(shown) is None and "positive integer" in shows.panel(shown)


def test_files_are_what_is_shown(opened: Callable[..., Page], browser: Browser, tmp_path: Path) -> None:
    shown = opened()
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    shown.key("c")
    shown.key("d")
    shown.key("s")
    svg = waited(tmp_path / "bert-base-uncased.svg")
    root = ElementTree.fromstring(svg.decode())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "query" in texts and "share of parameters" in texts and "bert-base-uncased" in texts
    shown.run("document.getElementById('png').click()")
    png = waited(tmp_path / "bert-base-uncased.png")
    assert png.startswith(b"\x89PNG")
    size = [2 * float(root.attrib[side]) for side in ("width", "height")]
    assert struct.unpack(">II", png[16:24]) == pytest.approx(size, abs=2.1)


def waited(path: Path) -> bytes:
    """The contents of a file that is being downloaded."""
    for _ in range(200):
        if path.exists() and path.stat().st_size:
            return path.read_bytes()
        time.sleep(0.05)
    raise TimeoutError(path)


# Screenshots


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bert-base-uncased", {}),
        ("transformer-base", {"dark": True}),
        ("modernbert-base", {"fragment": "#color=flops"}),
        ("albert-base-v2", {"width": 420, "height": 800}),
    ],
)
def test_a_screenshot(
    opened: Callable[..., Page],
    golden: Callable[[str, str], None],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    name: str,
    options: dict[str, Any],
) -> None:
    shown = opened(name, **options)
    path = tmp_path / "shot.png"
    shown.screenshot(path)
    found = shows.mosaic(shown, path.read_bytes())
    file = GOLDEN / f"page-{name}.txt"
    if request.config.getoption("--update-golden"):
        golden(file.name, found)
    pairs = list(zip(found.split(), file.read_text().split(), strict=True))
    far = [pair for pair in pairs if shows.distance(*pair) > 48]
    assert len(far) <= 0.04 * len(pairs), f"{len(far)} of {len(pairs)} tiles differ"
