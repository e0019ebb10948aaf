"""Graphs as Mermaid flowcharts, for documents that render them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archspec.graph.picture import Box, Node, arrange, visible

if TYPE_CHECKING:
    from networkx import DiGraph

_CLASSES = {
    "input": "fill:#eeeeee,stroke:#aaaaaa,color:#222222",
    "output": "fill:#eeeeee,stroke:#aaaaaa,color:#222222",
    "layer": "fill:#dbe9f6,stroke:#7ba3c9,color:#222222",
    "block": "fill:#c3d9ee,stroke:#7ba3c9,stroke-width:2px,color:#222222",
    "param": "fill:#fbeecb,stroke:#cdb36a,color:#222222",
    "buffer": "fill:#fbeecb,stroke:#cdb36a,stroke-dasharray:4,color:#222222",
    "const": "fill:#ffffff,stroke:#cdb36a,stroke-dasharray:4,color:#222222",
    "op": "fill:#ffffff,stroke:#bbbbbb,color:#222222",
}
_ROUNDED = ("input", "output", "op")


def mermaid(graph: DiGraph[str], title: str) -> str:
    """Format the graph as a Mermaid flowchart, with blocks as subgraphs and `title` in a comment."""
    picture = arrange(graph)
    lines = [
        f"%% {_escaped(title)}",
        "flowchart TB",
        *_items(picture.box, "  "),
        *(f"  {source} --> {target}" for source, target in picture.edges),
        *(f"  classDef {kind}_ {_CLASSES[kind]}" for kind in picture.kinds),
    ]
    return "\n".join(lines) + "\n"


def _items(box: Box, indent: str) -> Iterator[str]:
    for item in box.items:
        if isinstance(item, Node):
            opening, closing = ("(", ")") if item.kind in _ROUNDED else ("[", "]")
            label = "<br/>".join(map(_escaped, item.lines))
            yield f'{indent}{item.id}{opening}"{label}"{closing}:::{item.kind}_'
        else:
            yield f'{indent}subgraph {item.id}["{_escaped(item.title)}"]'
            yield from _items(item, indent + "  ")
            yield f"{indent}end"


def _escaped(text: str) -> str:
    """Escape all characters that could act as markup."""
    return "".join(c if c.isalnum() or c in " .,_:/" else f"#{ord(c)};" for c in visible(text))
