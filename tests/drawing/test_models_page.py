"""docs/models.md and docs/pictures/: the bundled families with their figures, models, papers and parents.

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

sys.path.append(str(ROOT / "website"))

from family_table import Family, families

PAGE = ROOT / "docs" / "models.md"
PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"

DRAWN = {"transformer": "transformer-base"}
"""The models of figures that are not the first ones of their files."""

IN_README = ("transformer", "bert")
"""The families whose figures the README shows."""

COMPARED = ("bert-base-uncased", "gpt2")
COMPARISON = "bert-and-gpt2.svg"
"""The picture of two models in docs/compare.md."""

WIDTHS = {"": "3.3in", "-page": "6.9in"}
"""The widths of figures, by the end of their names."""

LARGEST = 60_000

EVERYDAY = ("bert", "gpt2", "longformer", "transformer")

INTRODUCTION = """# Bundled models

The families of models that archspec ships, one file of `specs/` each, with the
[figures](pictures.md#figures-for-papers) of one model, in the widths of a column and of a page. `archspec show NAME`
prints the spec of a model, and `archspec figure NAME` writes its figure.

This page is generated from the specs (`pytest tests/drawing/test_models_page.py --update-golden`).
"""


def drawn(family: Family) -> str:
    """The model of a family's figures."""
    return DRAWN.get(family.name, family.models[0])


def drawings(family: Family) -> dict[str, str]:
    """The figures of a family by file."""
    model = archspec.load(drawn(family))
    return {f"{family.name}{end}.svg": str(archspec.figure(model, width)) for end, width in WIDTHS.items()}


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
    lines += ["", *[f"![{drawn(family)}](pictures/{family.name}{end}.svg)" for end in WIDTHS], ""]
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
    assert {file: (PICTURES / file).read_text() for file in drawings(family)} == drawings(family)


@pytest.mark.parametrize("name", EVERYDAY)
def test_sections_and_figures_are_current(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in families() if name not in EVERYDAY])
def test_all_sections_and_figures_are_current(name: str) -> None:
    check(name)


def test_the_picture_of_two_models_is_current() -> None:
    assert (PICTURES / COMPARISON).read_text() == comparison()


def test_every_family_is_on_the_page_with_figures() -> None:
    page = PAGE.read_text()
    assert (
        page.startswith(INTRODUCTION)
        and {f"](#{name})" in page for name in families()} == {True}
        and [*sections(page)] == [*families()]
    )
    files = {f"{name}{end}.svg" for name in families() for end in WIDTHS}
    assert {path.name for path in PICTURES.iterdir()} == {COMPARISON, *files}
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
        assert path.stat().st_size <= LARGEST, path.name


@pytest.fixture(scope="module", autouse=True)
def updated_page(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if not request.config.getoption("update_golden"):
        return
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for family in families().values():
        for file, text in drawings(family).items():
            (PICTURES / file).write_text(text)
    (PICTURES / COMPARISON).write_text(comparison())
    PAGE.write_text(whole_page())
