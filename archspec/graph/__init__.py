"""Construction of networkx graphs from compiled bodies, at the level of layers, blocks or operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from archspec.graph.walk import OPENS, traverse
from archspec.ir import Body, uncollected
from archspec.source import fail

if TYPE_CHECKING:
    from networkx import DiGraph

LARGEST_GRAPH = 400_000
_MUTABLE = {"hyperparameters", "constants"}
"""The attributes of nodes that are dictionaries."""


def graph_of(body: Body, level: str = "layer", depth: int | None = None, fold: bool = False) -> DiGraph[str]:
    """Return the graph of a model's body; see `Model.graph`. Raises ArchError if it exceeds LARGEST_GRAPH nodes."""
    import networkx

    size = _size(body, OPENS[level], None if level != "block" else depth, {})
    if size > LARGEST_GRAPH:
        message = f"too many graph nodes: about {size:,}, the limit is {LARGEST_GRAPH:,}"
        raise fail("budget", message, help="use level `block` with a smaller depth")
    with uncollected():
        walker = traverse(body, level, depth, fold)
        graph: DiGraph[str] = networkx.DiGraph(blocks=dict(walker.blocks))
        graph.add_nodes_from(cast("dict[str, dict[str, object]]", walker.sheet.nodes).items())  # copied by networkx
        for _, data in graph.nodes(data=True):
            for key in data.keys() & _MUTABLE:
                data[key] = {**data[key]}
        graph.add_edges_from(
            [
                (a, b, {**data, "uses": [*data["uses"]], "positions": [*data["positions"]]})
                for (a, b), data in walker.sheet.edges.items()
            ]
        )
    return graph


def _size(body: Body, opens: set[str], depth: int | None, known: dict[tuple[Body, int | None], int]) -> int:
    """Estimate the number of nodes for the applications in a body and the tensors that it reads."""
    if (body, depth) in known:
        return known[body, depth]
    left = None if depth is None else depth - 1
    size = len(body.weights)
    for call in body.calls:
        opened = call.body is not None and call.kind in opens and (call.kind != "block" or left is None or left > 0)
        size += _size(call.body, opens, left, known) if opened and call.body is not None else 1
    known[body, depth] = size
    return size
