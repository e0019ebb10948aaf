"""The bundled families: what the site and docs/models.md list of their specs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from archspec.core.diagnostics import Report, Source
from archspec.core.resources import bundled_files, bundled_kind, bundled_path, specs_root
from archspec.language.syntax import tree
from archspec.pipeline.files import parse_cached
from archspec.pipeline.index import read_index


class Family(NamedTuple):
    """A bundled spec with models: its text, its first paragraph, and what it imports from other families by file.

    `year` is the first that the first paragraph names, 0 for none.
    """

    name: str
    kind: str
    text: str
    about: str
    year: int
    models: list[str]
    parents: dict[str, list[str]]


@cache
def sizes() -> dict[str, int]:
    """Return the parameters of the bundled models by name."""
    models = read_index()
    assert models is not None, "specs/index.json is not current"
    return {model.name: model.params.total for model in models}


@cache
def families() -> dict[str, Family]:
    """Return the families by name."""
    found: dict[str, Family] = {}
    for name in bundled_files(specs_root()):
        path = Path(specs_root(), bundled_path(specs_root(), name))
        text = path.read_text(encoding="utf-8")
        items = parse_cached(Source(str(path), text), Report()).items
        models = [str(item.name.value) for item in items if isinstance(item, tree.Model)]
        parents: dict[str, list[str]] = {}
        for item in items:
            if isinstance(item, tree.Import) and item.source.partition("/")[0] != "std":
                parents.setdefault(item.source, []).extend(imported.name for imported in item.names)
        if models:
            about = _first_paragraph(text)
            years = re.findall(r"\b(?:19|20)\d\d\b", about)
            kind = bundled_kind(specs_root(), name)
            found[name] = Family(name, kind, text, about, int(years[0]) if years else 0, models, parents)
    for family in found.values():
        for parent in family.parents.keys() - found.keys():  # which has no page
            del family.parents[parent]
    return found


def _first_paragraph(text: str) -> str:
    """Return the first paragraph of the comment at the beginning of a spec."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return " ".join(lines)
