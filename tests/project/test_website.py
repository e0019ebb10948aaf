"""The documentation site: its pages, and the playground in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse
from zlib import compressobj

import pytest
from browser import Browser, Page, executable
from paths import FAMILIES, ROOT
from serving import Server

import archspec
from archspec import testing

sys.path.append(str(ROOT / "website"))

from examples import agrees, blocks

PROJECTION = (
    "import std { Linear }\ndim batch\nblock B(n = 2)(x [batch, n]) -> [batch, n] { return x |> a: Linear(n, n) }\n"
)

LONGEST_START = 60
"""The limit on the seconds from opening the playground to the first count: idle machines need less than a tenth."""

LONGEST_BUILD = 1800
"""The limit on the seconds that a process waits for the site that another one builds."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("material") is None, reason="the extra `docs` is not installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed"),
]


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
    """The site, which one process builds for all; the variable SITE_FOR_TESTS names one that has been built."""
    if built := os.environ.get("SITE_FOR_TESTS"):
        return Path(built)
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, status = shared / "site", shared / "site-status"
    try:
        folder.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + LONGEST_BUILD
        while not status.exists() and time.monotonic() < deadline:
            time.sleep(1)
    else:
        build = subprocess.run([sys.executable, ROOT / "website" / "build.py", "-o", folder], cwd=folder)
        (shared / "site-ended").write_text(str(build.returncode))
        (shared / "site-ended").replace(status)
    assert status.read_text() == "0"
    return folder


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[Server]:
    started = Server(site)
    yield started
    started.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from running()


@pytest.fixture
def fresh() -> Iterator[Browser]:
    """A browser that has seen no page of the site."""
    yield from running()


def running() -> Iterator[Browser]:
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


LIVE = "document.querySelector('#workbench').dataset.start !== undefined"
TOTAL = ".total b"


def test_counting_breaking_and_sharing(opened: Callable[[str], Page], server: Server) -> None:
    page = opened("playground/")
    wait(page, LIVE)
    assert page.run("document.querySelector('#workbench').dataset.start") == "restored"
    assert not [path for path in server.asked if path.endswith((".wasm", "archspec.zip"))]
    choose(page, "#example", "bert")
    wait(page, shows("109,482,240", TOTAL))
    wait(page, "document.querySelector('#state').textContent === 'Live'")
    assert page.run("document.querySelector('.message')") is None
    wait(page, "document.querySelector('#figure svg').textContent.includes('30,522')")
    assert not page.run("document.querySelector('#results').classList.contains('waiting')")

    models = page.run("[...document.querySelectorAll('#model option')].map((option) => option.value)")
    assert models[0] == "bert-base-uncased" and "bert-large-uncased" in models
    choose(page, "#model", "bert-large-uncased")
    wait(page, shows(f"{archspec.load('bert-large-uncased').params.total:,}", TOTAL))

    added = "dim unused\nmodel "
    page.run("document.querySelector('.cm-content').focus()")
    page.type(added)
    wait(page, "document.querySelector('.message.error') !== null")
    wait(page, "document.querySelector('#results').classList.contains('outdated')")
    broken = added + spec_in(page).removeprefix(added)
    (first,) = [each for each in testing.check_text(broken) if each.severity == "error"][:1]
    assert page.run("document.querySelector('.message.error').textContent").startswith(
        f"error[{first.code}]: {first.message}"
    )
    page.run("document.querySelector('#share').click()")
    wait(page, "location.hash.length > 100")
    link = page.run("location.href")
    again = opened(link.split("/", 3)[3])
    wait(again, "document.querySelector('.message.error') !== null")
    assert spec_in(again).startswith(added)


def choose(page: Page, select: str, value: str) -> None:
    page.run(f"""(() => {{
        const select = document.querySelector({select!r});
        select.value = {value!r};
        select.dispatchEvent(new Event('change'));
    }})()""")


def test_examples_open_in_the_playground(opened: Callable[[str], Page], site: Path) -> None:
    elements = Elements((site / "language" / "index.html").read_text())
    link = next(link for link in elements.links if "playground/#" in link)
    page = opened(link.removeprefix("../"))
    small = (ROOT / "docs" / "language.md").read_text().split("```arch\n")[1].split("```")[0]
    wait(page, shows(f"{archspec.loads(small).params.total:,}", TOTAL))
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
    wait(page, LIVE)
    wait(page, shows("124,439,808", TOTAL))


def test_names_are_text(opened: Callable[[str], Page]) -> None:
    name = "<img src=x onerror=alert(1)>"
    text = f'{PROJECTION}model "{name}" = B()\n'
    page = opened(f"playground/#{urlsafe_b64encode(deflated(text)).decode()}")
    wait(page, "document.querySelector('.total b').textContent === '6'")
    assert page.run("document.querySelector('#results img')") is None
    assert page.run("document.querySelector('#model').value") == name


def deflated(text: str) -> bytes:
    stream = compressobj(wbits=-15)
    return stream.compress(text.encode()) + stream.flush()


def test_a_text_can_be_replaced(opened: Callable[[str], Page]) -> None:
    page = opened("playground/")
    wait(page, LIVE)
    page.run("document.querySelector('.cm-content').focus()")
    page.key("a", 2)
    wait(page, "getSelection().toString().includes('Layer')")
    page.type(PROJECTION)
    wait(page, shows("No model to count", "#state"))
    assert page.run("document.querySelector('#results').classList.contains('outdated')")
    page.type('model "b" = B(n = 3)\n')
    wait(page, "document.querySelector('.total b').textContent === '12'")


def test_a_configuration_can_be_pasted(opened: Callable[[str], Page]) -> None:
    page = opened("playground/")
    wait(page, LIVE)
    page.run("""(() => {
        const clipboardData = new DataTransfer();
        clipboardData.setData('text', '{"model_type": "bert", "num_hidden_layers": 2}');
        const event = new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true});
        document.querySelector('.cm-content').dispatchEvent(event);
    })()""")
    total = archspec.load({"model_type": "bert", "num_hidden_layers": 2}).params.total
    wait(page, f"document.querySelector('.total b').textContent === '{total:,}'")
    assert "import bert" in spec_in(page)


def test_a_spec_can_be_dropped(opened: Callable[[str], Page]) -> None:
    page = opened("playground/")
    wait(page, LIVE)
    text = f'{PROJECTION}model "b" = B(n = 4)\n'
    page.run(f"""(() => {{
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([{json.dumps(text)}], 'b.arch'));
        dispatchEvent(new DragEvent('drop', {{dataTransfer, cancelable: true}}));
    }})()""")
    wait(page, "document.querySelector('.total b').textContent === '20'")


def test_the_keyboard_leaves_the_editor(opened: Callable[[str], Page]) -> None:
    page = opened("")
    wait(page, LIVE)
    page.run("document.querySelector('.cm-content').focus()")
    page.key("Escape")
    page.key("Tab")
    assert page.run("document.activeElement.textContent") == "24 layers"
    page.key("Enter")
    wait(page, "document.querySelector('.total b').textContent === '209,494,272'")


def test_views(opened: Callable[[str], Page]) -> None:
    page = opened("playground/")
    wait(page, LIVE)
    page.run("document.querySelector('[data-view=code]').click()")
    wait(page, shows("class GPT(nn.Module)", "#code"))
    page.run("document.querySelector('[data-view=page]').click()")
    wait(page, "document.querySelector('#page').contentDocument?.querySelector('svg') !== null")


def test_home_page(opened: Callable[[str], Page]) -> None:
    """It has results before any script has run; a change and a mistake show theirs."""
    page = opened("")
    wait(page, "document.querySelector('.cm-content') !== null")
    total = "document.querySelector('.total b').textContent"
    click = "[...document.querySelectorAll('.try button')].find((each) => each.textContent === '{}').click()"
    page.run(click.format("24 layers"))
    assert page.run(total) == "209,494,272"
    page.run(click.format("Make a mistake"))
    wait(page, shows("error[dimension]", ".message"))
    assert page.run("document.querySelector('#results').classList.contains('outdated')")
    page.run(click.format("Undo"))
    wait(page, f"{total} === '124,439,808'")
    wait(page, LIVE)
    wait(page, f"{total} === '124,439,808' && document.querySelector('#state').textContent === 'Live'")
    page.run(click.format("d = 1536"))
    wait(page, f"{total} === '418,748,928'")


@pytest.mark.parametrize("scheme", ["default", "slate"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_home_page_fits(opened: Callable[[str], Page], width: int, scheme: str) -> None:
    page = opened("")
    page.resize(width, 900)
    page.run(f"document.body.setAttribute('data-md-color-scheme', '{scheme}')")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelector('.total').getBoundingClientRect().bottom") < 500
    text = brightness(page.run("getComputedStyle(document.querySelector('.total b')).color"))
    behind = brightness(page.run("getComputedStyle(document.querySelector('.workbench')).backgroundColor"))
    assert (max(text, behind) + 0.05) / (min(text, behind) + 0.05) > 4.5


def test_starting_anew(fresh: Browser, server: Server) -> None:
    """Without a snapshot, Python starts in the plain way."""
    server.blocked = ".zst"
    page = fresh.page(f"{server.address}/playground/")
    wait(page, "document.querySelector('#workbench').dataset.start === 'anew'")
    server.blocked = ""
    page.run("document.querySelector('.cm-content').focus()")
    page.type("dim more\n")
    wait(page, "document.querySelector('.message.warning') !== null")


def test_without_a_network(fresh: Browser, site: Path) -> None:
    server = Server(site)
    page = fresh.page(f"{server.address}/")
    wait(page, LIVE)
    page.run("navigator.serviceWorker.ready.then(() => 0)")
    page.close()
    server.close()
    for name in ("", "playground/"):
        page = fresh.page(f"{server.address}/{name}")
        wait(page, LIVE)
        page.run("document.querySelector('.cm-content').focus()")
        page.type("dim more\n")
        wait(page, "document.querySelector('.message.warning') !== null")
        page.close()


def test_start_at_a_limited_rate(fresh: Browser, site: Path) -> None:
    """The home page is complete long before the compiler, and all that it loads is at most 9 MB."""
    server = Server(site, rate=20e6 / 8)
    page = fresh.page(f"{server.address}/")
    assert page.run("document.querySelector('.total b').textContent") == "124,439,808"
    assert "starting" in page.run("document.querySelector('#state').textContent")
    wait(page, "document.querySelector('.cm-content') !== null")
    page.run("""(() => {
        document.querySelector('.cm-content').focus();
        const numbers = [...document.querySelectorAll('.cm-line span')];
        getSelection().selectAllChildren(numbers.find((each) => each.textContent === '12'));
    })()""")
    page.type("13")
    wait(page, shows("by its formula", "#state"))
    text = (ROOT / "website" / "playground" / "gpt.arch").read_text()
    total = f"{archspec.loads(text, layers=13).params.total:,}"
    assert page.run("document.querySelector('.total b').textContent") == total
    wait(page, LIVE)
    wait(page, "document.querySelector('#state').textContent === 'Live'")
    assert page.run("document.querySelector('.total b').textContent") == total
    assert server.sent <= 9_000_000
    server.close()


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
    assert "124,439,808" in (site / "index.html").read_text()


def test_pages_of_families(site: Path) -> None:
    names = {path.stem for path in FAMILIES if "\nmodel " in path.read_text()}
    assert names == {path.parent.name for path in site.glob("families/*/index.html")}
    for name in names:
        text = (site / "families" / name / "index.html").read_text()
        assert all((site / "families" / f"{name}{end}.svg").exists() for end in ("", "-column"))
        assert all(f'id="{heading}"' in text for heading in ("parameters", "costs", "spec")), name
    text = (site / "families" / "roberta" / "index.html").read_text()
    assert "124,645,632" in text and 'id="differences-from-bert"' in text
    assert '<span class="kd">block</span>' in text
    cards = re.findall(r'families/([^/]+)/" data-kind=', (site / "models" / "index.html").read_text())
    assert sorted(cards) == sorted(names)


def test_examples_have_links(site: Path) -> None:
    text = (ROOT / "docs" / "language.md").read_text()
    examples = text.count("\n```arch\n") + text.count("\n```arch more\n") + text.count("\n```arch wrong\n")
    page = Elements((site / "language" / "index.html").read_text())
    importing_files = text.count('\nimport "')
    assert page.classes.count("open-in-playground") == examples - importing_files > 20
    assert "```" not in (site / "language" / "index.html").read_text()
