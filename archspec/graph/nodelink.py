"""Graphs as node-link data, which `networkx.node_link_graph(data, edges="edges")` converts back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def nodelink(graph: Any) -> dict[str, Any]:
    """Convert a graph to plain data for JSON: tuples to lists, symbolic dimensions to strings."""
    import networkx

    return _plain(cast(Any, networkx).node_link_data(graph, edges="edges"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Sequence[Any], value)]
    return str(value)
