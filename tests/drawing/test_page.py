"""The text of the page of a model. `test_page_browser.py` opens pages in a browser."""

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pages
import pytest

import archspec
from archspec.drawing.api import build_plan
from archspec.drawing.page.page import SCRIPTS, page, page_of, sources_of
from archspec.pipeline.model import get_compilation

SCRIPTS_FOLDER = Path(archspec.__file__).parent / "drawing" / "page" / "scripts"


@pytest.fixture(scope="module")
def bert() -> str:
    return page("bert-base-uncased")


def policy_of(text: str) -> dict[str, list[str]]:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert found
    return {name: sources for name, *sources in (part.split() for part in unescape(found[1]).split(";"))}


def without_plan(text: str) -> str:
    return re.sub('id="plan">[^<]*<', "", text)


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_what_the_page_holds_and_nothing_else(bert: str) -> None:
    policy = policy_of(bert)
    script = bert.rpartition("<script>")[2].partition("</script>")[0]
    style = bert.partition("<style>")[2].partition("</style>")[0]
    assert policy == {
        "default-src": ["'none'"],
        "style-src": [hashed(style)],
        "script-src": [hashed(script)],
        "img-src": ["data:", "blob:"],
    }
    assert bert.count("<script") == 2 and bert.count("</script") == 2
    assert not re.search(r"\bsrc=|@import|url\(", bert.replace("url(#", ""))


def test_only_a_served_page_may_ask_for_changes() -> None:
    served = page("bert-base-uncased", version=3)
    assert policy_of(served)["connect-src"] == ["'self'"]
    assert '<html lang="en" data-version="3">' in served


def test_a_page_has_the_files_of_all_definitions_that_are_applied() -> None:
    model = archspec.loads(
        "import std { FeedForward }\ndim b\nblock A(n = 4)(x [b, n]) -> [b, n] {\n"
        '  return x |> f: FeedForward(n, n)\n}\nmodel "a" = A()\n'
    )
    found = sources_of(get_compilation(model).body)
    assert [*found] == sorted(found) and "<text>" in found
    for node in build_plan(model).nodes:
        file, _, line = node.source.rpartition(":")
        assert not node.source or int(line) <= len(found[file].splitlines())
    assert {node.source.rpartition(":")[0] for node in build_plan(model).nodes if node.source} == {*found}


def test_the_plan_is_complete(bert: str) -> None:
    plan = pages.plan_in(bert)
    assert plan["model"] == "bert-base-uncased" and plan["total"] == 109_482_240
    assert plan["sizes"] == {"batch": [1, None], "seq": [512, 512]}
    assert any(node.get("address") == "encoder.layer.*.attention.self.query" for node in plan["nodes"])


def test_the_same_bytes_each_time(bert: str) -> None:
    assert page(archspec.load("bert-base-uncased")) == bert


@pytest.mark.parametrize("name", ["bert-base-uncased", "modernbert-base", "bart-base"])
def test_a_page_is_small(name: str) -> None:
    assert len(page(name).encode()) < 250_000


@pytest.mark.parametrize("name", pages.HOSTILE)
def test_names_cannot_leave_the_plan(bert: str, name: str) -> None:
    plan = pages.renamed(pages.plan_in(bert), name)
    text = page_of(plan)
    assert pages.plan_in(text) == plan
    title = text.partition("<title>")[2].partition("</title>")[0]
    assert "<" not in title and unescape(title).isprintable() and len(unescape(title)) == len(name)
    assert text.encode()
    assert without_plan(text.replace(title, "")) == without_plan(bert.replace("bert-base-uncased", "", 1))


def test_scripts_are_short_and_all_are_used() -> None:
    files = {path.stem: path.read_text() for path in SCRIPTS_FOLDER.glob("*.js")}
    assert set(files) == set(SCRIPTS)
    assert all(text.count("\n") < 400 and text.startswith("// ") for text in files.values())
    assert all("innerHTML" not in text or name in ("start", "legend") for name, text in files.items())
