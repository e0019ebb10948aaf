"""The pages of the bundled families: text and facts from the compiler."""

from __future__ import annotations

import re

from family_table import Family, families

import archspec
from archspec.core import resources
from archspec.core.reports.page import Page, render_markdown
from archspec.core.reports.results import Displayable, page_of
from archspec.drawing.api import picture

DEPTH = 2
WIDTHS = ("3.3in", "6.9in")
LARGEST_PICTURE = 120_000
"""The limit on the size of a picture in bytes: beyond it, blocks are closed."""


def names() -> list[str]:
    return [*families()]


def files() -> dict[str, str]:
    """Return the files of all families by path: a page, and a picture for each color scheme."""
    found: dict[str, str] = {}
    for name, family in families().items():
        found[f"families/{name}.md"] = _page(name, family)
        for theme in ("light", "dark"):
            found[f"families/{name}-{theme}.svg"] = _picture(family.models[0], theme)
        for model in family.models:
            for width in WIDTHS:
                found[f"families/{model}-{width}.svg"] = str(archspec.figure(model, width))
    return found


def _page(name: str, family: Family) -> str:
    model = archspec.load(family.models[0])
    parts = [f"# {name}", _escaped(family.about), *_relatives(name, family)]
    parts += [f"![{model.name}]({model.name}-{width}.svg)" for width in WIDTHS]
    parts += [f"![{model.name}]({name}-{theme}.svg#only-{theme})" for theme in ("light", "dark")]
    parts += ["## Models", _models(family), "## Parameters", _report(model.count(depth=DEPTH))]
    parts += ["## Costs", _report(archspec.cost(model, depth=1))]
    for parent in family.parents:
        other = families()[parent].models[0]
        parts += [f"## Differences from {parent}", _report(archspec.diff(other, model))]
        parts += [_report(archspec.compare(other, model))]
    others = [f"![{other}]({other}-{width}.svg)" for other in family.models[1:] for width in WIDTHS]
    parts += ["## Figures of the other models", *others] if others else []
    parts += [
        "## Spec",
        f"`specs/{resources.bundled_path(resources.specs_root(), name)}`:",
        f"```arch\n{family.text.rstrip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _relatives(name: str, family: Family) -> list[str]:
    children = [other for other, each in families().items() if name in each.parents]
    lines = [("Imports definitions from", family.parents), ("Definitions are imported by", children)]
    return [f"{text} {', '.join(f'[{other}]({other}.md)' for other in others)}." for text, others in lines if others]


def _models(family: Family) -> str:
    lines = ["| Model | Parameters |", "|---|---:|"]
    lines += [f"| `{name}` | {archspec.load(name).params.total:,} |" for name in family.models]
    return "\n".join(lines)


def _report(result: Displayable) -> str:
    """Return a report as markdown; its heading is the caption of the tables."""
    page = page_of(result, "markdown")
    return f"**{_escaped(page.heading)}**\n\n" + render_markdown(Page("", page.blocks))


def _picture(name: str, theme: str) -> str:
    model = archspec.load(name)
    shown = picture(model, theme=theme)
    depth = 3
    while len(shown) > LARGEST_PICTURE and depth:
        shown, depth = picture(model, "block", depth, theme=theme), depth - 1
    return shown


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>|])", r"\\\1", text) if "`" not in text else text
