"""The navigation of the documentation site."""

import re

from paths import ROOT


def test_every_page_is_listed() -> None:
    listed = re.findall(r"^ +- (?:.*: )?([\w-]+\.md)$", (ROOT / "website" / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len({*listed})
    elsewhere = {"index.md", "playground.md", "benchmarks.md", "changelog.md"}
    assert {*listed} == elsewhere | {path.name for path in (ROOT / "docs").glob("*.md")}
