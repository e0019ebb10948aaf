"""The pages of the bundled families, and the gallery that leads to them: text and facts from the compiler."""

from __future__ import annotations

import re
from functools import cache
from html import escape

import yaml
from family_table import Family, families, sizes

import archspec
from archspec.core import resources
from archspec.core.diagnostics import Report, Source
from archspec.core.reports.page import Page, render_markdown
from archspec.core.reports.results import Displayable, page_of
from archspec.core.reports.text import parameters
from archspec.language.syntax import tree
from archspec.pipeline.files import parse_cached

DEPTH = 2
COLUMN_DETAIL = 3
"""The detail of a figure that is its main column alone, as in the gallery."""
UNSEARCHED = "---\nsearch:\n  exclude: true\n---"
"""The gallery has a filter of its own, and every page of the site loads the index of the search."""
SHORT = 60
"""A spec of so many lines is shown as a whole; of a longer one, first the layer."""


def names() -> list[str]:
    return [*families()]


def files() -> dict[str, str]:
    """Return the files of all families by path: a page, its figure, and that of the gallery."""
    content: dict[str, str] = {}
    for name, family in families().items():
        model = archspec.load(family.models[0])
        content[f"families/{name}.md"] = _page(name, family)
        content[f"families/{name}.svg"] = str(archspec.figure(model))
        content[f"families/{name}-column.svg"] = _column(model)
    return content


def _column(model: archspec.Model) -> str:
    """Return the figure of a model without what stands beside its columns, as narrow as it can be."""
    try:
        return str(archspec.figure(model, "2in", detail=COLUMN_DETAIL))
    except archspec.ArchError:  # no room for two columns
        return str(archspec.figure(model, detail=COLUMN_DETAIL))


def gallery(folder: str) -> str:
    """Return the cards of all families, whose pages are in `folder`, with their filter."""
    kinds = "".join(f'<option value="{kind}">{kind}</option>' for kind in resources.KINDS)
    controls = (
        '<form class="gallery-controls" role="search">'
        '<input type="search" placeholder="Filter: name, paper, model" aria-label="Filter families">'
        f'<select aria-label="Kind"><option value="">all kinds</option>{kinds}</select>'
        '<select aria-label="Order"><option value="name">by name</option><option value="year">newest first</option>'
        '<option value="size">largest first</option></select><output></output></form>'
    )
    cards = "".join(_card(family, folder) for family in families().values())
    return f'{controls}<div class="gallery">{cards}</div>'


def _card(family: Family, folder: str) -> str:
    most = max(sizes()[model] for model in family.models)
    text = escape(" ".join([family.name, family.about, *family.models]).lower())
    size = parameters(most) if len(family.models) == 1 else f"up to {parameters(most)}"
    return (
        f'<a href="{folder}{family.name}/" data-kind="{family.kind}" data-year="{family.year}" data-size="{most}" '
        f'data-text="{text}">'
        f'<span class="figure"><img loading="lazy" src="{folder}{family.name}-column.svg" alt=""></span>'
        f"<strong>{family.name}</strong><span>{family.year or ''} · {size}</span></a>"
    )


def _page(name: str, family: Family) -> str:
    model = archspec.load(family.models[0])
    figure = f"![Figure of {model.name}]({name}.svg){{ .family-figure }}"
    parts = [UNSEARCHED, f"# {name}", _escaped(family.about), *_relatives(name, family)]
    parts += ['<div class="family" markdown>', figure, "<div markdown>", _models(family)]
    parts += [f"```sh\narchspec count {model.name}\n```", "</div></div>", *_layer(family)]
    for parent in family.parents:
        parts += [f"## Differences from {parent}", _report(archspec.diff(families()[parent].models[0], model))]
    parts += ["## Parameters", _report(model.count(depth=DEPTH)), "## Costs", _report(archspec.cost(model, depth=1))]
    parts += [
        "## Spec",
        f"`specs/{family.kind}/{name}.arch`:",
        f"```arch\n{family.text.rstrip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _relatives(name: str, family: Family) -> list[str]:
    children = [other for other, each in families().items() if name in each.parents]
    lines = [("Imports definitions from", family.parents), ("Definitions are imported by", children)]
    return [f"{text} {', '.join(f'[{other}]({other}.md)' for other in others)}." for text, others in lines if others]


@cache
def _hub_names() -> dict[str, str]:
    """Return the name on the hub of each bundled model that has one."""
    with open(f"{resources.specs_root()}/hub.yaml", encoding="utf-8") as file:
        return {model: name for name, model in yaml.safe_load(file)["bundled"].items()}


def _models(family: Family) -> str:
    lines = ["| Model | Parameters | Published as |", "|---|---:|---|"]
    for name in family.models:
        hub = _hub_names().get(name)
        lines.append(f"| `{name}` | {sizes()[name]:,} | {f'[{hub}](https://huggingface.co/{hub})' if hub else ''} |")
    return "\n".join(lines)


def _layer(family: Family) -> list[str]:
    """Return the layer of a family as a section; nothing if the spec is short, or has no layer of its own."""
    if family.text.count("\n") <= SHORT:
        return []
    items = parse_cached(Source(family.name, family.text), Report()).items
    layers = [item for item in items if isinstance(item, tree.Definition) and item.name.text.endswith("Layer")]
    if not layers:
        return []
    return ["## The layer", f"```arch =part\n{family.text[layers[0].start : layers[0].end]}\n```"]


def _report(result: Displayable) -> str:
    """Return a report as markdown; its heading is the caption of the tables."""
    page = page_of(result, "markdown")
    return f"**{_escaped(page.heading)}**\n\n" + render_markdown(Page("", page.blocks))


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>|])", r"\\\1", text) if "`" not in text else text
