"""Steps of the code that the tests of docs cannot reach through public names."""

import re
import tempfile
from pathlib import Path

import pytest
from documented import LANGUAGE, PAGES, ROOT
from examples import blocks
from test_docs import TABLES, renewed, session_in, tutorial_picture

import archspec
from archspec.compiler.elaborate.ownership import INITIALIZERS

TUTORIAL_PICTURE = ROOT / "docs" / "tutorial" / "deep.svg"


UPDATE = "run `pytest tests/project/test_docs.py --update-golden`"


DECODER: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (1000, 64), "scale": ()}


DECODER |= {"norm.weight": (64,), "head.weight": (1000, 64)}


def table(header: str) -> str:
    return "\n".join([header, "|---|---|", *TABLES[header][1]()]) + "\n\n"


@pytest.mark.parametrize("header", TABLES)
def test_tables_are_those_of_the_code(header: str) -> None:
    page = TABLES[header][0].read_text()
    start = page.index(header)
    assert page[start : page.index("\n\n", start) + 2] == table(header), UPDATE


def test_initial_distributions_are_listed() -> None:
    row = re.compile(r"^\| `~ (\w+)", re.MULTILINE)
    assert row.findall(LANGUAGE.read_text()) == list(INITIALIZERS)


def test_the_picture_shown_is_the_real_one() -> None:
    from archspec.drawing.graph.mermaid import to_mermaid

    shown = [block.text for block in blocks(LANGUAGE.read_text()) if block.kind == "mermaid"]
    model = archspec.load("bert-base-uncased")
    assert shown == [to_mermaid(model.graph("block", fold=True), model.name)], UPDATE


@pytest.fixture(scope="module", autouse=True)
def updated_pages(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if not request.config.getoption("update_golden"):
        return
    for path in PAGES.values():
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(renewed(path.read_text(), session_in(Path(folder))))
    with tempfile.TemporaryDirectory() as folder:
        TUTORIAL_PICTURE.write_text(tutorial_picture(Path(folder)))
