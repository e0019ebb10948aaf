"""The bundled families: what the site and docs/models.md list of their specs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from archspec.core.diagnostics import Report, Source
from archspec.core.resources import KINDS, specs_root
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
    paths = [path for kind in KINDS for path in Path(specs_root(), kind).glob("*.arch")]
    for path in sorted(paths, key=lambda path: path.stem):
        text = path.read_text(encoding="utf-8")
        items = parse_cached(Source(str(path), text), Report()).items
        models = [str(item.name.value) for item in items if isinstance(item, tree.Model)]
        parents: dict[str, list[str]] = {}
        for item in items:
            if isinstance(item, tree.Import) and item.source.partition("/")[0] != "std":
                parents.setdefault(item.source, []).extend(imported.name for imported in item.names)
        if models:
            found[path.stem] = Family(path.stem, text, _first_paragraph(text), models, parents)
    with_models = {name: family.parents for name, family in found.items()}  # others have no page
    for name, parents in with_models.items():
        shown = {parent: imported for parent, imported in parents.items() if parent in found}
        found[name] = found[name]._replace(parents=shown)
    return found


def _first_paragraph(text: str) -> str:
    """Return the first paragraph of the comment at the beginning of a spec."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return " ".join(lines)
