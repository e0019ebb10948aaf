"""docs/models.md and docs/pictures/: the bundled families with their pictures, models, papers and parents.

`pytest tests/drawing/test_models_page.py --update-golden` writes them anew.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from paths import ROOT

import archspec
from archspec.analysis.compare.pictures import picture as side_by_side
from archspec.core.reports.text import listed, parameters
from archspec.drawing.api import picture

sys.path.append(str(ROOT / "website"))

from family_table import Family, families

PAGE = ROOT / "docs" / "models.md"
PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"

DRAWN = {"transformer": "transformer-base"}
"""The models of pictures that are not the first ones of their files."""

IN_README = ("transformer", "bert")
"""The families whose pictures the README shows."""

COMPARED = ("bert-base-uncased", "gpt2")
COMPARISON = "bert-and-gpt2.svg"
"""The picture of two models in docs/compare.md."""

LEVELS = (("layer", None), ("block", 2), ("block", 1))
LARGEST = 40_000
"""The limit on the size of a picture in bytes: beyond it, blocks are closed."""

EVERYDAY = ("bert", "gpt2", "longformer", "transformer")

INTRODUCTION = """# Bundled models

The families of models that archspec ships, one file of `specs/` each, with the picture of one model. `archspec show
NAME` prints the spec of a model, and [pictures.md](pictures.md) explains how to read a picture. In pictures of large
models, blocks are closed: `archspec graph NAME -o FILE.svg` opens all.

This page is generated from the specs (`pytest tests/drawing/test_models_page.py --update-golden`).
"""


def drawn(family: Family) -> str:
    """The model of a family's picture."""
    return DRAWN.get(family.name, family.models[0])


def drawing(family: Family) -> str:
    """The picture of a family: the most detailed one within the limit."""
    model = archspec.load(drawn(family))
    shown = [picture(model, *LEVELS[0])]
    while len(shown[-1]) > LARGEST and len(shown) < len(LEVELS) and family.name not in IN_README:
        shown.append(picture(model, *LEVELS[len(shown)]))
    return shown[-1]


def comparison() -> str:
    return side_by_side([archspec.load(name) for name in COMPARED])


def section(family: Family) -> str:
    """What the page says of a family."""
    built = [
        f"Built on {link(parent)}, from which it imports {listed([f'`{name}`' for name in names])}."
        for parent, names in family.parents.items()
    ]
    children = [other.name for other in families().values() if family.name in other.parents]
    if children:
        built.append(
            f"{listed(list(map(link, children)))} {'imports' if len(children) == 1 else 'import'} parts of it."
        )
    lines = [f"## {family.name}", "", filled(escaped(family.about)), ""]
    lines += [filled(" ".join(built)), ""] if built else []
    lines += ["| Model | Parameters | |", "|---|---:|---:|"]
    for model in family.models:
        total = archspec.load(model).params.total
        lines.append(f"| `{model}` | {total:,} | {parameters(total)} |")
    lines += ["", f"![{drawn(family)}](pictures/{family.name}.svg)", ""]
    return "\n".join(lines)


def link(family: str) -> str:
    return f"[{family}](#{family})"


def filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def whole_page() -> str:
    contents = filled(", ".join(map(link, families())))
    return "\n".join([INTRODUCTION, f"{contents}\n", *map(section, families().values())])


def escaped(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>|])", r"\\\1", text) if "`" not in text else text


def sections(page: str) -> dict[str, str]:
    """The sections of a page by heading."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    return {part[3 : part.index("\n")]: part for part in parts[1:]}


def links(page: str) -> Iterator[str]:
    yield from re.findall(r"(?:\]\(|src=\")([^)\"#]+\.(?:svg|md))", page)


def check(name: str) -> None:
    family = families()[name]
    assert sections(PAGE.read_text())[name].rstrip() == section(family).rstrip()
    assert (PICTURES / f"{name}.svg").read_text() == drawing(family)


@pytest.mark.parametrize("name", EVERYDAY)
def test_sections_and_pictures_are_current(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in families() if name not in EVERYDAY])
def test_all_sections_and_pictures_are_current(name: str) -> None:
    check(name)


def test_the_picture_of_two_models_is_current() -> None:
    assert (PICTURES / COMPARISON).read_text() == comparison()


def test_every_family_is_on_the_page_with_a_picture() -> None:
    page = PAGE.read_text()
    assert (
        page.startswith(INTRODUCTION)
        and {f"](#{name})" in page for name in families()} == {True}
        and [*sections(page)] == [*families()]
    )
    assert {path.name for path in PICTURES.iterdir()} == {COMPARISON, *(f"{name}.svg" for name in families())}
    assert sorted(name for family in families().values() for name in family.models) == sorted(archspec.models())
    for name, family in families().items():
        assert family.about and f"](pictures/{name}.svg)" in sections(page)[name]
        assert all(f"`{model}`" in sections(page)[name] for model in family.models)


def test_links_lead_to_files() -> None:
    for page in (PAGE, README, PAGE.with_name("compare.md")):
        assert not [link for link in links(page.read_text()) if not (page.parent / link).exists()]
    assert {f"docs/pictures/{name}.svg" for name in IN_README} <= {*links(README.read_text())}


def test_pictures_are_small_and_inert() -> None:
    for path in PICTURES.iterdir():
        root = ElementTree.fromstring(path.read_text())
        assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
            *("svg", "title", "rect", "g", "path", "text", "circle")
        }
        assert path.stat().st_size <= 1.6 * LARGEST, path.name


@pytest.fixture(scope="module", autouse=True)
def updated_page(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if not request.config.getoption("update_golden"):
        return
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for family in families().values():
        (PICTURES / f"{family.name}.svg").write_text(drawing(family))
    (PICTURES / COMPARISON).write_text(comparison())
    PAGE.write_text(whole_page())
