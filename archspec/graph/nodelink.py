"""Graphs as node-link data, which `networkx.node_link_graph(data, edges="edges")` converts back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from networkx import DiGraph


def nodelink(graph: DiGraph[str]) -> dict[str, object]:
    """Convert a graph to plain data for JSON: tuples to lists, symbolic dimensions to strings."""
    return {
        "directed": True,
        "multigraph": False,
        "graph": _plain(graph.graph),
        "nodes": [_plain({**graph.nodes[name], "id": name}) for name in graph],
        "edges": [_plain({**graph.edges[a, b], "source": a, "target": b}) for a, b in graph.edges],
    }


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return value if isinstance(value, float) and abs(value) < float("inf") else str(value)
