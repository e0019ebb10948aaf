"""The page of a spec that is watched, in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import shows
from browser import Browser, executable
from paths import read_spec

from archspec.drawing.page import view


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = executable()
    assert path
    started = Browser(path)
    yield started
    started.close()


PARTS = read_spec("page_browser_internals_parts")


def test_the_page_follows_its_spec(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view.webbrowser, "open", lambda url: True)
    spec = tmp_path / "small.arch"
    spec.write_text(PARTS)
    versions = view.watch(str(spec), {})
    url, _ = next(versions)
    shown = browser.page(url)
    shown.wait("document.querySelector('#view > svg')")
    shown.click(*shows.middle(shown, "b"))
    shown.key("Enter")
    shown.click(*shows.middle(shown, "a"))
    shown.key("Enter")
    before = set(shows.ids(shown))
    assert "a.two" not in before and "b.two" in before and shows.selected(shown) == "a"

    spec.write_text("block")
    next(versions)
    shown.wait("!document.getElementById('notice').hidden")
    assert "error[syntax]" in shown.run("document.getElementById('notice').innerText")

    spec.write_text(PARTS.replace("two", "other"))
    next(versions)
    shown.wait("document.querySelector('#view')?.innerHTML.includes('b.other')")
    assert set(shows.ids(shown)) == {name.replace("two", "other") for name in before}
    assert shows.selected(shown) == "a" and shown.run("document.getElementById('notice').hidden")
    shown.close()
    versions.close()
