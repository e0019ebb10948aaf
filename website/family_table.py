"""The bundled families: what the site and docs/models.md list of their specs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from archspec.core.diagnostics import Report, Source
from archspec.core.resources import bundled_files, bundled_path, specs_root
from archspec.language.syntax import tree
from archspec.pipeline.files import parse_cached


class Family(NamedTuple):
    """A bundled spec with models: its text, its first paragraph, and what it imports from other families by file."""

    name: str
    text: str
    about: str
    models: list[str]
    parents: dict[str, list[str]]


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
            found[name] = Family(name, text, _first_paragraph(text), models, parents)
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
