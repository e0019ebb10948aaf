"""Graphs as node-link data, which `networkx.node_link_graph(data, edges="edges")` converts back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph


class NodeLink(TypedDict):
    """A graph as plain data, with the attributes of the graph, of its nodes and of its edges."""

    directed: bool
    multigraph: bool
    graph: dict[str, object]
    nodes: list[dict[str, object]]
    edges: list[dict[str, object]]


def to_node_link(graph: AnyGraph) -> NodeLink:
    """Convert a graph to plain data for JSON: tuples to lists, symbolic dimensions to strings."""
    return {
        "directed": True,
        "multigraph": False,
        "graph": _attributes(graph.graph),
        "nodes": [_attributes({**graph.nodes[name], "id": name}) for name in graph],
        "edges": [_attributes({**graph.edges[a, b], "source": a, "target": b}) for a, b in graph.edges],
    }


def _attributes(values: Mapping[str, object]) -> dict[str, object]:
    return {str(name): _plain(value) for name, value in values.items()}


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return _attributes(cast("dict[str, object]", value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return value if isinstance(value, float) and abs(value) < float("inf") else str(value)
