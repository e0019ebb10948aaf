"""Graphs in which blocks are closed: one node for all that is applied in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from networkx import DiGraph

    from archspec.drawing.graph.sheet import NodeData


def max_block_depth(graph: DiGraph[str]) -> int:
    """Return how many blocks are around the innermost nodes of a graph from `Model.graph`."""
    return max((len(path) for _, path in graph.nodes(data="path")), default=0)


def close_blocks(graph: DiGraph[str], depth: int) -> DiGraph[str]:
    """Return a graph in which the blocks with `depth` blocks around them are nodes; its `params` have the same sum."""
    blocks: dict[str, str] = graph.graph.get("blocks", {})
    shown: dict[str, str] = {}
    repeats: dict[str, int] = graph.graph.get("repeats", {})
    made = graph.__class__()
    made.graph.update(graph.graph)
    for name in graph:
        data = cast("NodeData", graph.nodes[name])
        path = data["path"]
        if len(path) <= depth:
            shown[name] = name
            made.add_node(name, **data)
            continue
        block = shown[name] = path[depth]
        if block in made:
            _merge_into_block(cast("NodeData", made.nodes[block]), data)
        else:
            made.add_node(block, **data)
            made.nodes[block].update(kind="block", type=blocks.get(block, ""), path=path[:depth], address=block)
            made.nodes[block].pop("shared_with", None)
            made.nodes[block].pop("repeat", None)
            if block in repeats:
                made.nodes[block]["repeat"] = repeats[block]
    for source, target, data in graph.edges(data=True):
        a, b = shown[source], shown[target]
        if a != b and not made.has_edge(a, b):
            made.add_edge(a, b, **data)
        if a != b and a != source:
            made.nodes[a]["shape"] = data["shape"]
    return made


def _merge_into_block(block: NodeData, inner: NodeData) -> None:
    """Add what is inside a block to its node."""
    role = inner.get("role")
    if inner["params"] and role != block.get("role"):
        block.pop("role", None)
        if role is not None and not block["params"]:
            block["role"] = role
    block["params"] += inner["params"]
    if "frozen" in block or "frozen" in inner:
        block["frozen"] = block.get("frozen", 0) + inner.get("frozen", 0)
