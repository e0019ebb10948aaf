"""Graphs in DOT format, for Graphviz: `archspec graph SPEC | dot -Tsvg`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archspec.core.reports.roles import style_of
from archspec.drawing.graph.boxes import Box, Node, Picture, build_picture, replace_unprintable

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph

_STYLES = {
    "input": 'style="rounded,filled", fillcolor="#eef1f5", color="#aab3c0"',
    "output": 'style="rounded,filled", fillcolor="#eef1f5", color="#aab3c0"',
    "block": "peripheries=2",
    "buffer": 'style="filled,dashed"',
    "const": 'fillcolor="#ffffff", style="filled,dashed"',
    "op": 'fillcolor="#ffffff", color="#aab3c0", style="rounded,filled", height=0.25, margin="0.08,0.03"',
}
"""The attributes of kinds of nodes, in addition to the colors of their role."""


def to_dot(graph: AnyGraph, title: str) -> str:
    """Format the graph as a DOT digraph, with blocks as clusters, under a title and the shares of the roles."""
    picture = build_picture(graph)
    lines = [
        "digraph {",
        f"  label=<{_heading(picture, title)}>;",
        '  labelloc=t; fontsize=16; fontname="Helvetica"; compound=true;',
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
            yield f"{indent}{item.id} [{', '.join([f'label=<{_label(item)}>', *_style_attributes(item)])}];"
        else:
            yield f"{indent}subgraph cluster_{item.id} {{"
            yield f'{indent}  label=<{_escaped(item.title)}>; labeljust=l; fontsize=12; fontcolor="#444444";'
            yield f'{indent}  style="rounded,filled"; fillcolor="#00000008"; color="#aaaaaa";'
            yield from _items(item, indent + "  ")
            yield f"{indent}}}"


def _heading(picture: Picture, title: str) -> str:
    """Return the title with the total, above a legend of the roles."""
    heading = _escaped(", ".join(part for part in (title, picture.total) if part))
    if not picture.roles:
        return heading
    legend = "".join(_legend(role, share) for role, share in picture.roles)
    above = f'<TR><TD COLSPAN="{len(picture.roles)}">{heading}</TD></TR>'
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4">{above}<TR>{legend}</TR></TABLE>'


def _legend(role: str, share: str) -> str:
    shade = style_of(role).light
    text = f'<FONT POINT-SIZE="11">{_escaped(role or "no role")} {_escaped(share)}</FONT>'
    return f'<TD BORDER="1" COLOR="{shade.line}" BGCOLOR="{shade.fill}">{text}</TD>'


def _style_attributes(node: Node) -> Iterator[str]:
    """Yield the attributes of a node's looks; later ones take precedence."""
    if node.kind not in ("input", "output", "op"):
        shade = style_of(node.role).light
        yield f'fillcolor="{shade.fill}", color="{shade.line}"'
    if node.kind in _STYLES:
        yield _STYLES[node.kind]
    if node.frozen:
        yield 'style="filled,dashed"'


def _label(node: Node) -> str:
    name, *rest = map(_escaped, node.lines)
    small = (f'<BR/><FONT POINT-SIZE="9" COLOR="#555555">{line}</FONT>' for line in rest)
    return (name if node.kind == "op" else f"<B>{name}</B>") + "".join(small)


def _escaped(text: str) -> str:
    """Escape text for an HTML-like label."""
    text = (
        replace_unprintable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    )
    return text or " "
