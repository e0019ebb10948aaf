"""Graphs as Mermaid flowcharts, for documents that render them."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from typing import TYPE_CHECKING

from archspec.core.reports.roles import ROLES, style_of
from archspec.drawing.graph.boxes import Box, Node, Picture, build_picture, replace_unprintable
from archspec.drawing.graph.walk import close_blocks, max_block_depth

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph

MAX_EDGES = 500
MAX_CHARACTERS = 50_000
"""The limits of Mermaid, which documents cannot change."""

_INK = "color:#1c2330"
_ROUNDED = ("input", "output", "op")


def to_mermaid(graph: AnyGraph, title: str) -> str:
    """Format the graph as a Mermaid flowchart, with blocks as subgraphs, under a title.

    Blocks are closed, the innermost first, until the flowchart is within Mermaid's limits; its title then says so. It
    also does if that is not enough.
    """
    text = _flowchart(build_picture(graph), title)
    if _fits(graph, text):
        return text
    for depth in reversed(range(max_block_depth(graph))):
        smaller = close_blocks(graph, depth)
        note = f"blocks closed at depth {depth}, because Mermaid draws at most {MAX_EDGES} edges"
        text = _flowchart(build_picture(smaller), title, f"{note} and {MAX_CHARACTERS:,} characters")
        if _fits(smaller, text):
            return text
    note = f"too large for Mermaid, which draws at most {MAX_EDGES} edges and {MAX_CHARACTERS:,} characters"
    return _flowchart(build_picture(graph), title, note)


def _fits(graph: AnyGraph, text: str) -> bool:
    return graph.number_of_edges() <= MAX_EDGES and len(text) <= MAX_CHARACTERS


def _flowchart(picture: Picture, title: str, note: str = "") -> str:
    heading = "; ".join(part for part in (", ".join(part for part in (title, picture.total) if part), note) if part)
    looks = {_class(node): _class_style(node) for node in picture.nodes}
    legend = [
        f'    legend{i}["{_escaped(role or "no role")} {_escaped(share)}"]:::{_role_class(role)}'
        for i, (role, share) in enumerate(picture.roles)
    ]
    looks |= {_role_class(role): _colors(role) for role, _ in picture.roles}
    lines = [
        *("---", f"title: {dumps(replace_unprintable(heading))}", "---"),
        "flowchart TB",
        *(f"  {source} --> {target}" for source, target in picture.edges),  # first, or Mermaid reverses more rows
        *_items(picture.box, "  "),
        *((['  subgraph legend["parameters by role"]', "    direction TB", *legend, "  end"]) if legend else ()),
        *(f"  classDef {name} {look}" for name, look in looks.items()),
        *_frames([*_boxes(picture.box), *(["legend"] if legend else [])]),
    ]
    return "\n".join(lines) + "\n"


def _frames(ids: list[str]) -> Iterator[str]:
    """Yield the look of subgraphs."""
    if ids:
        yield f"  classDef frame_ fill:#f7f8fa,stroke:#c4ccd8,{_INK}"
        yield f"  class {','.join(ids)} frame_"


def _boxes(box: Box) -> Iterator[str]:
    for item in box.items:
        if isinstance(item, Box):
            yield item.id
            yield from _boxes(item)


def _items(box: Box, indent: str) -> Iterator[str]:
    for item in box.items:
        if isinstance(item, Node):
            opening, closing = ("(", ")") if item.kind in _ROUNDED else ("[", "]")
            label = "<br/>".join(map(_escaped, item.lines))
            yield f'{indent}{item.id}{opening}"{label}"{closing}:::{_class(item)}'
        else:
            yield f'{indent}subgraph {item.id}["{_escaped(item.title)}"]'
            yield from _items(item, indent + "  ")
            yield f"{indent}end"


def _class(node: Node) -> str:
    """Return the class of a node; it ends in `_`, because Mermaid has reserved words."""
    if node.kind in _ROUNDED:
        return f"{node.kind}_"
    role = node.role if node.role in ROLES else ""
    return "_".join([node.kind, *([role] if role else []), *(["frozen"] if node.frozen else []), ""])


def _role_class(role: str) -> str:
    return f"layer_{role}_" if role in ROLES else "layer_"


def _class_style(node: Node) -> str:
    if node.kind in _ROUNDED:
        fill = "#ffffff" if node.kind == "op" else "#eef1f5"
        return f"fill:{fill},stroke:#aab3c0,{_INK}"
    dashed = ",stroke-dasharray:4" if node.frozen or node.kind in ("buffer", "const") else ""
    return _colors(node.role) + ",stroke-width:2px" * (node.kind == "block") + dashed


def _colors(role: str) -> str:
    shade = style_of(role).light
    return f"fill:{shade.fill},stroke:{shade.line},{_INK}"


def _escaped(text: str) -> str:
    """Escape all characters that could act as markup."""
    return "".join(c if c.isalnum() or c in " .,_:/" else f"#{ord(c)};" for c in replace_unprintable(text))
