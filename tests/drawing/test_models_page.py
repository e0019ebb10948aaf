"""docs/models.md: the bundled families with their models, papers and parents; and the pictures of pages.

`pytest tests/drawing/test_models_page.py --update-golden` renews them.
"""

import re
import sys
from itertools import groupby

import pytest
from paths import ROOT

import archspec
from archspec.analysis.compare.pictures import picture as side_by_side
from archspec.core.reports.text import parameters
from archspec.core.resources import KINDS

sys.path.append(str(ROOT / "website"))

from family_table import Family, families, sizes

PAGE = ROOT / "docs" / "models.md"
PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"

COMPARED = ("bert-base-uncased", "gpt2")

INTRODUCTION = """# Bundled models

For readers who look for a model: the families that archspec ships, one file of `specs/` each. `archspec show NAME`
prints the spec of a model, and `archspec figure NAME -o FILE` draws its [figure](pictures.md#figures-for-papers).

This page is generated from the specs (`pytest tests/drawing/test_models_page.py --update-golden`).
"""


def figure_of_readme() -> str:
    (text,) = re.findall(r"```arch\n(# gpt\.arch\n.*?)```", README.read_text(), re.DOTALL)
    return str(archspec.figure(archspec.loads(text)))


def comparison() -> str:
    return side_by_side([archspec.load(name) for name in COMPARED])


DRAWN = {"gpt.svg": figure_of_readme, "bert-and-gpt2.svg": comparison}
"""The pictures of README.md and docs/compare.md."""


def row(family: Family) -> str:
    """The row of a family: its models with their sizes, its paper, and the families of which it imports parts."""
    models = ", ".join(f"`{model}` {parameters(sizes()[model])}" for model in family.models)
    parents = ", ".join(family.parents)
    return f"| [{family.name}](../specs/{family.kind}/{family.name}.arch) | {models} | {family.about} | {parents} |"


def whole_page() -> str:
    lines = [INTRODUCTION]
    ordered = sorted(families().values(), key=lambda family: KINDS.index(family.kind))
    for kind, members in groupby(ordered, key=lambda family: family.kind):
        lines += [
            f"## {kind}",
            "",
            "| Family | Models | About | Built on |",
            "|---|---|---|---|",
            *map(row, members),
            "",
        ]
    return "\n".join(lines)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == whole_page()
    assert sorted(name for family in families().values() for name in family.models) == sorted(archspec.models())
    assert all(family.about for family in families().values())


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_of_pages_are_current(name: str) -> None:
    assert (PICTURES / name).read_text() == DRAWN[name]()


def test_there_are_no_other_pictures() -> None:
    assert {path.name for path in PICTURES.iterdir()} == {*DRAWN}


@pytest.fixture(scope="module", autouse=True)
def updated_page(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if request.config.getoption("update_golden"):
        for name, draw in DRAWN.items():
            (PICTURES / name).write_text(draw())
        PAGE.write_text(whole_page())
