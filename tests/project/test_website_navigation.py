"""The navigation of the documentation site."""

import re

from paths import ROOT


def test_every_page_is_listed() -> None:
    listed = re.findall(r"^ +- (?:.*: )?([\w-]+\.md)$", (ROOT / "website" / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len({*listed})
    elsewhere = {"index.md", "start.md", "overview.md", "playground.md", "benchmarks.md", "changelog.md"}
    assert {*listed} == elsewhere | {path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"}


def test_the_start_page_links_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    table = (ROOT / "docs" / "README.md").read_text().split("## All pages")[1]
    assert pages <= {*re.findall(r"\]\(([\w-]+\.md)\)", table)}
