"""Several models in one picture: what corresponds is level, what differs is marked, nothing overlaps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cases import marked
from paths import GOLDEN
from pictured import HOSTILE
from sections import compare_section

from archspec.testing import main

Picture = Callable[..., str]
SIZES = ("vocab=20", "hidden=8", "layers=2", "heads=2", "ffn=16", "positions=10")
SMALL = [word for size in SIZES for word in ("--set", size)]
NET = """
import std {{ Linear, LayerNorm, {activation} }}
dim batch
block Layer(hidden, inner)(x [batch, hidden]) -> [batch, hidden] {{
  return x |> norm: LayerNorm(hidden) |> up: Linear(hidden, inner) |> {activation} |> down: Linear(inner, hidden) |> + x
}}
block Net(hidden = 8, inner = {inner}, layers = {layers})(x [batch, hidden]) -> [batch, hidden] {{
  return x |> layers[i]: Layer(hidden, inner) for i in 0..layers |> {last}: Linear(hidden, hidden)
}}
model "{name}" = Net()
"""


@pytest.fixture
def net(tmp_path: Path) -> Callable[..., str]:
    """Writes a spec of a name, and returns its path."""

    def write(name: str, activation: str = "gelu", inner: int = 16, layers: int = 2, last: str = "out") -> str:
        text = NET.format(name=name, activation=activation, inner=inner, layers=layers, last=last)
        (tmp_path / f"{name}.arch").write_text(text)
        return str(tmp_path / f"{name}.arch")

    return write


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    """Returns the picture that a command writes of models."""

    def draw(command: str, *arguments: str) -> str:
        assert main([command, *arguments, "--svg", str(tmp_path / "it.svg"), "--force"]) < 2
        return (tmp_path / "it.svg").read_text(encoding="utf-8")

    return draw


def test_panels_are_apart(picture: Picture) -> None:
    shown = ElementTree.fromstring(picture("compare", "gpt2", "t5-small"))
    width = float(shown.attrib["width"])
    xs = [float(re.findall(r"-?[\d.]+", group.attrib["transform"])[0]) for group in shown.iterfind("{*}g")]
    assert "".join(shown.itertext()).count("\N{HORIZONTAL ELLIPSIS}") == 0
    assert xs[0] == xs[2] < xs[1] + 1 and xs[2] + 500 < xs[3] == xs[5] < width - 500  # title, model and legend of each


def test_equal_models_have_no_marks(picture: Picture, net: Callable[..., str]) -> None:
    for command, count in (("compare", 3), ("diff", 2)):
        shown = picture(command, *["transformer-base"] * count)
        assert marked(shown) == [] and "no differences" in shown
        assert "no differences" not in picture(command, net("a"), net("b", inner=32))


MARKED = [
    ["compare", "bert-base-uncased", "roberta-base"],
    ["compare", "bert-base-uncased", "gpt2", "albert-base-v2"],
    ["diff", "bert-base-uncased", "bert-base-uncased", "--set", "2:eps=1e-5"],
    ["diff", "bert-base-uncased-nopooler", "bert-base-uncased-mlm", *SMALL],
    ["diff", "bert-base-uncased-mlm", "bert-base-uncased-nopooler", *SMALL],
]


@pytest.mark.parametrize("arguments", MARKED, ids=lambda words: " ".join(words[:4]))
def test_marks_of_bundled_models(arguments: list[str], picture: Picture, request: pytest.FixtureRequest) -> None:
    """Those of small specs are in specs/marks.txt."""
    text = "\n".join(marked(picture(*arguments)))
    update = request.config.getoption("--update-golden")
    compare_section(
        GOLDEN / "compare" / "marks.txt", " ".join(arguments[:4]), text, [" ".join(a[:4]) for a in MARKED], update
    )


def test_a_changed_layer_says_what_differs(picture: Picture) -> None:
    assert picture("diff", "bert-base-uncased", "roberta-base").count(">eps = 1e-05 (A: 1e-12)<") == 3


def test_models_have_letters(picture: Picture, net: Callable[..., str]) -> None:
    title = re.findall("<title>(.*?)</title>", picture("compare", *[net("a")] * 28))[0]
    assert re.findall(r"(\w+): a", title) == [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A1", "B1"]


@pytest.mark.parametrize(("length", "shown"), [(394, 400), (395, 400), (500, 400)])
def test_long_texts_of_marks_are_cut(length: int, shown: int, picture: Picture, tmp_path: Path) -> None:
    text = "layer Mix()(x [4]) -> [4] {\n  w: param [4]MORE\n  return x * .w\n}\n"
    text += 'block Net()(x [4]) -> [4] {\n  return x |> mix: Mix()\n}\nmodel "net" = Net()\n'
    for name, more in (("a", ""), ("b", f"\n  {'x' * (length - len('mix.'))}: unused param [4]")):
        (tmp_path / f"{name}.arch").write_text(text.replace("MORE", more))
    *_, last = marked(picture("diff", str(tmp_path / "a.arch"), str(tmp_path / "b.arch")))
    mark = last.partition("; changed: ")[2]
    assert len(mark) == shown and mark.endswith("..." if length > 394 else "x")


def test_small_pictures_are_as_they_were_looked_at(
    picture: Picture, net: Callable[..., str], golden: Callable[[str, str], None]
) -> None:
    models = net("a"), net("b", "relu", inner=32, layers=3, last="end")
    golden("compare/pictures.svg", picture("compare", *models))
    golden("compare/diff-pictures.svg", picture("diff", *models))


def test_svg_is_self_contained(picture: Picture) -> None:
    root = ElementTree.fromstring(picture("compare", "bert-base-uncased", "transformer-base", "gpt2"))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "rect", "g", "path", "text", "circle"}
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if "href" in name or name.startswith("on") or name in ("id", "style")]


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


def test_compare_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page = tmp_path / "models.svg", tmp_path / "models.html"
    words = ["compare", "bert-base-uncased", "albert-base-v2", "--svg", str(svg), "--html", str(page)]
    assert main([*words, "--depth", "2"]) == 0
    table = capsys.readouterr().out
    assert main([*words[:3], "--depth", "2"]) == 0 and capsys.readouterr().out == table
    seen, light = Seen(page.read_text()), svg.read_text()
    assert light in page.read_text() and not seen.tags & {"script", "img", "iframe", "object", "form"}
    assert not {"style", "src", "onclick"} & {*seen.attributes} and seen.attributes["href"] == {"data:,"}
    (policy,) = [value for value in seen.attributes["content"] if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    numbers = {*re.findall(r"\d+(?:,\d{3})+", table)}
    assert len(numbers) > 10 and not [number for number in numbers if number not in seen.text]
    assert main(words) == 2 and "already exists" in capsys.readouterr().err
    assert main([*words, "--force", "--dark"]) == 0
    assert svg.read_text() != light and svg.read_text() in page.read_text()


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
