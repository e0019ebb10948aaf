"""The documentation site: its pages, and the playground in a real browser."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urljoin, urlparse
from zlib import compressobj

import pytest
from browser import Browser, Page, executable
from paths import FAMILIES, ROOT

import archspec
from archspec import testing

sys.path.append(str(ROOT / "website"))

from examples import agrees, blocks

BERT = (ROOT / "specs" / "text" / "bert.arch").read_text()

PROJECTION = (
    "import std { Linear }\ndim batch\nblock B(n = 2)(x [batch, n]) -> [batch, n] { return x |> a: Linear(n, n) }\n"
)

LONGEST_START = 60
"""The limit on the seconds from opening the playground to the first count: idle machines need less than a tenth."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("material") is None, reason="the extra `docs` is not installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed"),
]


POLICY = "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' data: blob:; report-uri /violations"


class Server(ThreadingHTTPServer):
    """Serves the site with a policy by which browsers report all requests of pages and workers to other servers."""

    def __init__(self, site: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(site)))
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.violations: list[str] = []


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        super().do_GET()

    def do_POST(self) -> None:
        self.server.violations.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


class Elements(HTMLParser):
    """The addresses in a page, and the classes of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.classes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                (self.links if tag == "a" else self.loaded).append(value)
            if name == "id" and value:
                self.ids.add(value)
            if name == "class" and value:
                self.classes += value.split()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / "website" / "build.py", "-o", folder], check=True, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[Server]:
    started = Server(site)
    Thread(target=started.serve_forever, daemon=True).start()
    yield started
    started.shutdown()
    started.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.skip("no Chromium is installed")
    started = Browser(path)
    yield started
    started.close()


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Callable[[str], Page]]:
    """Open a page of the site; at the end, nothing was asked for elsewhere, and no page has failed."""
    pages: list[Page] = []

    def open_page(path: str) -> Page:
        pages.append(browser.page(f"{server.address}/{path}"))
        return pages[-1]

    yield open_page
    assert not server.violations
    for page in pages:
        requests = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
        assert not [url for url in requests if not url.startswith((f"{server.address}/", "data:", "blob:"))]
        assert not page.events("Runtime.exceptionThrown")
        assert not page.events("Log.entryAdded")
        page.close()


def wait(page: Page, condition: str) -> None:
    """Wait until an expression is true, at most for as long as Python may take to start."""
    deadline = time.monotonic() + LONGEST_START
    while not page.run(condition):
        assert time.monotonic() < deadline, (condition, page.run("document.querySelector('article').innerText"))
        time.sleep(0.02)


def shows(text: str, where: str) -> str:
    return f"document.querySelector('{where}').textContent.includes({text!r})"


def spec_in(page: Page) -> str:
    """The text in the editor, of which the page has only the lines in view."""
    lines = "[...document.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\\n')"
    return page.run(lines)


def test_counting_breaking_and_sharing(opened: Callable[[str], Page], server: Server, tmp_path: Path) -> None:
    start = time.monotonic()
    page = opened("playground/")
    wait(page, shows("109,482,240", "#counts"))
    print(f"BERT is counted after {time.monotonic() - start:.1f} s")  # which `pytest -s` shows
    assert page.run("document.querySelector('#status').textContent") == "109,482,240 parameters"
    assert page.run("document.querySelector('#diagnostics').textContent") == ""
    assert "/playground/pyodide/pyodide.asm.wasm" in server.asked
    wait(page, "document.querySelector('#picture').naturalWidth > 100")

    models = page.run("[...document.querySelectorAll('#model option')].map((option) => option.value)")
    assert models[0] == "bert-base-uncased" and "bert-large-uncased" in models
    page.run("""(() => {
        const select = document.querySelector('#model');
        select.value = 'bert-large-uncased';
        select.dispatchEvent(new Event('change'));
    })()""")
    wait(page, shows(f"{archspec.load('bert-large-uncased').params.total:,}", "#status"))

    added = "dim unused\n"
    page.run("document.querySelector('.cm-content').focus()")
    page.type(added + "model ")
    wait(page, shows("error[", "#diagnostics"))
    broken = added + "model " + BERT
    assert page.run("document.querySelector('#diagnostics').textContent").strip() == findings(broken, tmp_path)
    wait(page, "document.querySelector('.cm-lintRange-error') !== null")

    page.run("document.querySelector('#share').click()")
    wait(page, "location.hash.length > 100")
    link = page.run("location.href")
    again = opened(link.split("/", 3)[3])
    wait(again, shows("error[", "#diagnostics"))
    assert again.run("document.querySelector('#diagnostics').textContent").strip() == findings(broken, tmp_path)
    assert spec_in(again).startswith(broken[:300])


def findings(text: str, folder: Path) -> str:
    """The diagnostics of `archspec check`."""
    (folder / "playground.arch").write_text(text)
    with contextlib.chdir(folder):
        return "\n\n".join(d.render() for d in testing.check("playground.arch"))


def test_examples_open_in_the_playground(opened: Callable[[str], Page], site: Path) -> None:
    elements = Elements((site / "language" / "index.html").read_text())
    link = next(link for link in elements.links if "playground/#" in link)
    page = opened(link.removeprefix("../"))
    small = (ROOT / "docs" / "language.md").read_text().split("```arch\n")[1].split("```")[0]
    wait(page, "document.querySelectorAll('#model option').length > 0")
    wait(page, shows(f"{archspec.loads(small).params.total:,} parameters", "#status"))
    assert spec_in(page).startswith(small[:200])


def output_of(page: Page, number: int) -> str:
    """Click a button, and wait for what the example prints."""
    button = f"document.querySelector('[data-example=\"{number}\"]')"
    page.run(f"{button}.click()")
    wait(page, f"!{button}.disabled")
    return page.run(f"{button}.nextElementSibling.textContent")


@pytest.mark.parametrize("name", ["costs", "language", "extending"])
def test_examples_run_in_the_page(opened: Callable[[str], Page], name: str) -> None:
    """The last ones first: they need files and names of those before."""
    page = opened(f"{name}/")
    assert page.run("[...document.querySelectorAll('.run pre')].every((output) => output.offsetHeight === 0)")
    examples = json.loads(page.run("document.querySelector('#examples').textContent"))
    numbers = [number for number, example in enumerate(examples) if example["kind"] in ("console", "pycon")]
    assert {examples[number]["kind"] for number in numbers} == {"console", "pycon"}
    for number in [*reversed(numbers[-2:]), *numbers]:
        shown = examples[number]["text"]
        real = output_of(page, number)
        if examples[number]["kind"] == "console":
            assert agrees(shown, real)
        elif "..." not in shown:
            assert real == shown


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_buttons_have_enough_contrast(opened: Callable[[str], Page], scheme: str) -> None:
    page = opened("costs/")
    page.run(f"document.body.setAttribute('data-md-color-scheme', '{scheme}')")
    wait(page, "document.querySelector('.run button').getAnimations().length === 0")
    text = brightness(page.run("getComputedStyle(document.querySelector('.run button')).color"))
    behind = brightness(page.run("getComputedStyle(document.body).backgroundColor"))
    assert (max(text, behind) + 0.05) / (min(text, behind) + 0.05) > 4.5


def brightness(color: str) -> float:
    """The relative luminance of a color, as the guidelines for accessibility define it."""
    values = [int(value) / 255 for value in re.findall(r"[0-9]+", color)[:3]]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_examples_that_need_more_have_no_button(site: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    page = Elements((site / "tutorial" / "index.html").read_text())
    with_button = page.classes.count("run")
    assert 0 < with_button <= sum(block.kind in ("console", "pycon") and not block.mark for block in blocks(text))
    assert "run" not in Elements((site / "verify" / "index.html").read_text()).classes


def test_a_damaged_link_opens_the_example(opened: Callable[[str], Page]) -> None:
    page = opened("playground/#damaged")
    wait(page, shows("109,482,240", "#counts"))


def test_names_are_text(opened: Callable[[str], Page]) -> None:
    name = "<img src=x onerror=alert(1)>"
    text = f'{PROJECTION}model "{name}" = B()\n'
    page = opened(f"playground/#{urlsafe_b64encode(deflated(text)).decode()}")
    wait(page, shows("6 parameters", "#status"))
    assert page.run("document.querySelector('#counts img')") is None
    assert page.run("document.querySelector('#counts').textContent").startswith(name)


def deflated(text: str) -> bytes:
    stream = compressobj(wbits=-15)
    return stream.compress(text.encode()) + stream.flush()


def test_a_text_can_be_replaced(opened: Callable[[str], Page]) -> None:
    page = opened("playground/")
    wait(page, shows("109,482,240", "#counts"))
    page.run("document.querySelector('.cm-content').focus()")
    page.key("a", 2)
    wait(page, "getSelection().toString().includes('BertLayer')")
    page.type(PROJECTION)
    wait(page, shows("No model to count", "#status"))
    page.type('model "b" = B(n = 3)\n')
    wait(page, shows("12 parameters", "#status"))


def test_requests_elsewhere_would_be_noticed(browser: Browser, server: Server, site: Path) -> None:
    (site / "asking.js").write_text("fetch('http://127.0.0.1:1/')")
    page = browser.page(f"{server.address}/404.html")
    page.run("(window.asking = new Worker('/asking.js'), 0)")
    deadline = time.monotonic() + LONGEST_START
    while not server.violations:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "http://127.0.0.1:1/" in server.violations[0]
    server.violations.clear()
    page.close()


def test_pages(site: Path) -> None:
    """Every link leads to a page and heading, and no page loads anything from elsewhere."""
    pages = {path.relative_to(site).as_posix(): Elements(path.read_text()) for path in site.rglob("*.html")}
    missing: list[tuple[str, str]] = []
    for name, page in pages.items():
        assert not [url for url in page.loaded if urlparse(url).netloc], name
        base = "/" if name == "404.html" else f"/{name}"
        for url in [*page.links, *page.loaded]:
            if urlparse(url).scheme:
                continue
            target = urlparse(urljoin(base, url))
            path = unquote(target.path.lstrip("/"))
            path = f"{path}index.html" if path.endswith("/") or not path else path
            there = (site / path).is_file()
            if path in pages and path != "playground/index.html" and target.fragment:
                there = target.fragment in pages[path].ids
            if not there:
                missing.append((name, url))
    assert not missing
    assert "exact parameter counts" in (site / "index.html").read_text()


def test_pages_of_families(site: Path) -> None:
    names = {path.stem for path in FAMILIES if "\nmodel " in path.read_text()}
    assert names == {path.parent.name for path in site.glob("families/*/index.html")}
    for name in names:
        text = (site / "families" / name / "index.html").read_text()
        assert all((site / "families" / f"{name}-{theme}.svg").exists() for theme in ("light", "dark"))
        assert all(f'id="{heading}"' in text for heading in ("models", "parameters", "costs", "spec")), name
    text = (site / "families" / "roberta" / "index.html").read_text()
    assert "124,645,632" in text and 'id="differences-from-bert"' in text and "15,163,392" in text
    assert '<span class="kd">block</span>' in text


def test_examples_have_links(site: Path) -> None:
    text = (ROOT / "docs" / "language.md").read_text()
    examples = text.count("\n```arch\n") + text.count("\n```arch more\n") + text.count("\n```arch wrong\n")
    page = Elements((site / "language" / "index.html").read_text())
    importing_files = text.count('\nimport "')
    assert page.classes.count("open-in-playground") == examples - importing_files > 20
    assert "```" not in (site / "language" / "index.html").read_text()
