"""Several models in one picture: what corresponds is level, what differs is marked, nothing overlaps."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pictured import HOSTILE

from archspec.testing import main

# Geometry


# Marks of comparisons


# Marks of differences


# How they look


# The commands


class Seen(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_diff_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page = tmp_path / "two.svg", tmp_path / "two.html"
    words = ["diff", "bert-base-uncased", "bert-base-uncased", "--set", "2:layers=6"]
    assert main([*words, "--svg", str(svg), "--html", str(page)]) == 1
    table = capsys.readouterr().out
    assert main(words) == 1 and capsys.readouterr().out == table
    assert "12 times" in svg.read_text() and svg.read_text() in page.read_text()
    assert "bert-base-uncased, with layers = 6" in Seen(page.read_text()).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dark"], "--dark requires --svg"),
        (["--svg", "x", "--html", "x"], "name the same file"),
        (["--svg", "missing/x.svg"], "cannot write"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("compare", "diff"):
        assert main([command, "bert-base-uncased", "roberta-base", *options]) == 2
        assert message in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_names_are_escaped_on_a_page(tmp_path: Path) -> None:
    spec, page = tmp_path / "odd.arch", tmp_path / "odd.html"
    text = "block It(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"
    name = json.dumps(HOSTILE[0])
    spec.write_text(f'{text}model {name} = It()\nmodel "c" = It(n = 5)\n')
    assert main(["compare", f"{spec}:{HOSTILE[0]}", f"{spec}:c", "--html", str(page)]) == 0
    seen = Seen(page.read_text())
    assert "script" not in seen.tags and HOSTILE[0] in seen.text


def test_a_page_makes_no_requests(tmp_path: Path) -> None:
    browser = pytest.importorskip("browser")
    if browser.executable() is None:
        pytest.skip("no browser")
    page = tmp_path / "two.html"
    assert main(["compare", "bert-base-uncased", "gpt2", "--html", str(page)]) == 0
    running = browser.Browser(browser.executable())
    try:
        for dark in (False, True):
            opened = running.page(page.as_uri(), dark=dark)
            assert opened.events("Log.entryAdded") == []
            assert [event["request"]["url"] for event in opened.events("Network.requestWillBeSent")] == [page.as_uri()]
            shown = "getComputedStyle(document.querySelector('.{}')).display"
            assert [opened.run(shown.format(name)) for name in ("dark", "light")] == (
                ["block", "none"] if dark else ["none", "block"]
            )
    finally:
        running.close()
