"""Graphs in DOT format, for Graphviz: `archspec graph SPEC | dot -Tsvg`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archspec.graph.picture import Box, Node, arrange, visible

if TYPE_CHECKING:
    from networkx import DiGraph

_STYLES = {
    "input": 'shape=box, style="rounded,filled", fillcolor="#eeeeee", color="#aaaaaa"',
    "output": 'shape=box, style="rounded,filled", fillcolor="#eeeeee", color="#aaaaaa"',
    "layer": 'fillcolor="#dbe9f6", color="#7ba3c9"',
    "block": 'fillcolor="#c3d9ee", color="#7ba3c9", peripheries=2',
    "param": 'fillcolor="#fbeecb", color="#cdb36a"',
    "buffer": 'fillcolor="#fbeecb", color="#cdb36a", style="filled,dashed"',
    "const": 'fillcolor="#ffffff", color="#cdb36a", style="filled,dashed"',
    "op": 'fillcolor="#ffffff", color="#bbbbbb", style="rounded,filled", height=0.25, margin="0.08,0.03"',
}


def dot(graph: DiGraph[str], title: str) -> str:
    """Format the graph as a DOT digraph titled `title`, with blocks as clusters."""
    picture = arrange(graph)
    lines = [
        "digraph {",
        f'  label=<{_escaped(title)}>; labelloc=t; fontsize=16; fontname="Helvetica"; compound=true;',
        "  rankdir=TB; nodesep=0.25; ranksep=0.3;",
        '  node [shape=box, style=filled, fontname="Helvetica", fontsize=11, margin="0.12,0.06", height=0.3];',
        '  edge [color="#777777", arrowsize=0.6];',
        *_items(picture.box, "  "),
        *(f"  {source} -> {target};" for source, target in picture.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _items(box: Box, indent: str) -> Iterator[str]:
    for item in box.items:
        if isinstance(item, Node):
            yield f"{indent}{item.id} [label=<{_label(item)}>, {_STYLES[item.kind]}];"
        else:
            yield f"{indent}subgraph cluster_{item.id} {{"
            yield f'{indent}  label=<{_escaped(item.title)}>; labeljust=l; fontsize=12; fontcolor="#444444";'
            yield f'{indent}  style="rounded,filled"; fillcolor="#00000008"; color="#aaaaaa";'
            yield from _items(item, indent + "  ")
            yield f"{indent}}}"


def _label(node: Node) -> str:
    name, *rest = map(_escaped, node.lines)
    small = (f'<BR/><FONT POINT-SIZE="9" COLOR="#555555">{line}</FONT>' for line in rest)
    return (name if node.kind == "op" else f"<B>{name}</B>") + "".join(small)


def _escaped(text: str) -> str:
    """Escape text for an HTML-like label."""
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text or " "
