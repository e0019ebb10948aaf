"""Graphs as text: as sources that other programs draw, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.graph.dot import dot
from archspec.graph.exchange import gexf_text, graphml_text
from archspec.graph.mermaid import mermaid
from archspec.graph.nodelink import nodelink
from archspec.reporting.documents import json

if TYPE_CHECKING:
    from archspec.graph.network import Graph


def text_of(graph: Graph, format: str, name: str) -> str:
    """Return the graph of a model as "dot", "mermaid", "graphml", "gexf" or "json"."""
    match format:
        case "dot":
            return dot(graph, name)
        case "mermaid":
            return mermaid(graph, name)
        case "graphml":
            return graphml_text(graph)
        case "gexf":
            return gexf_text(graph)
        case _:
            return json(nodelink(graph))
