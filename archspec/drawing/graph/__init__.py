"""Construction of networkx graphs from compiled bodies, at the level of layers, blocks or operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from archspec.core.addresses import prefixes
from archspec.core.diagnostics import make_error, missing_package_error
from archspec.drawing.graph.plain import PlainGraph
from archspec.drawing.graph.sheet import GraphBuilder
from archspec.drawing.graph.walk import EXPANDED_KINDS, traverse
from archspec.ir.module import Body, gc_paused
from archspec.ir.table import Table

if TYPE_CHECKING:
    from archspec.drawing.graph.network import Graph

G = TypeVar("G", "Graph", PlainGraph)

MAX_GRAPH_NODES = 400_000
_MUTABLE = ("hyperparameters", "constants")
"""The attributes of nodes that are dictionaries."""


def build_graph(body: Body, table: Table, level: str = "layer", depth: int | None = None, fold: bool = False) -> Graph:
    """Return the graph of a model's body; see `Model.graph`. Raises ArchError if it is too large."""
    try:
        from archspec.drawing.graph.network import Graph  # which imports networkx
    except ImportError:
        raise missing_package_error("networkx is required for `Model.graph`, but not installed", "graph") from None

    return _build(Graph, body, table, level, depth, fold)


def build_plain_graph(body: Body, table: Table, level: str, depth: int | None, fold: bool) -> PlainGraph:
    """Return the same without networkx, for formats."""
    return _build(PlainGraph, body, table, level, depth, fold)


def check_level(level: str, depth: int | None) -> int | None:
    """Return the depth of a level, by default 1 for blocks. Raises ValueError if there is none like it."""
    if level not in ("layer", "block", "op"):
        raise ValueError(f"level is 'layer', 'block' or 'op', not {level!r}")
    if level == "block":
        depth = 1 if depth is None else depth
    elif depth is not None:
        raise ValueError("depth goes with level 'block'")
    if depth is not None and depth < 0:
        raise ValueError(f"depth is 0 or more, not {depth}")
    return depth


def _build(make: type[G], body: Body, table: Table, level: str, depth: int | None, fold: bool) -> G:
    size = _estimate_nodes(body, EXPANDED_KINDS[level], None if level != "block" else depth, {})
    if size > MAX_GRAPH_NODES:
        message = f"too many graph nodes: about {size:,}, the limit is {MAX_GRAPH_NODES:,}"
        raise make_error("budget", message, help="use level `block` with a smaller depth")
    with gc_paused():
        walker = traverse(body, level, depth, fold)
        if not walker.sheet.has_tensors:
            _add_tensors(walker.sheet, table)
        roles: dict[str, int] = {}
        distinct = table.tensors.distinct
        for role, params in table.tensors.column([(tensor.role or "", tensor.params) for tensor in distinct]):
            roles[role] = roles.get(role, 0) + params
        graph = make(blocks=dict(walker.blocks), model=table.model, params=table.params.total, roles=roles)
        if walker.repeats:
            graph.graph["repeats"] = dict(walker.repeats)
        graph.add_nodes_from(cast("dict[str, dict[str, object]]", walker.sheet.nodes).items())  # copied by networkx
        for node, data in walker.sheet.nodes.items():
            for key in _MUTABLE:
                if key in data:
                    graph.nodes[node][key] = dict(graph.nodes[node][key])
        labels = {name: label for name, label in walker.labels.items() if label is not None}
        if labels:
            graph.graph["labels"] = labels
        for node in labels.keys() & walker.sheet.nodes.keys():
            graph.nodes[node]["label"] = labels[node]
        graph.add_edges_from(
            [
                (a, b, {**data, "uses": [*data["uses"]], "positions": [*data["positions"]]})
                for (a, b), data in walker.sheet.edges.items()
            ]
        )
    return graph


def _add_tensors(sheet: GraphBuilder, table: Table) -> None:
    """Set the `tensors` that are counted on each node, and the `role` that all of them have.

    The role of a node whose tensors are all counted elsewhere is that of their names at its address.
    """
    tensors = table.tensors
    role_of = dict(zip(tensors.names(), tensors.column([tensor.role for tensor in tensors.distinct]), strict=True))
    names: dict[str, list[str]] = {}
    for name, node in sheet.counted.items():
        names.setdefault(node, []).append(name)
    at: dict[str, set[str | None]] | None = None
    for node, data in sheet.nodes.items():
        own = names.get(node)
        roles: set[str | None] = set()
        if own:
            data["tensors"] = tuple(own)
            roles = {role_of[name] for name in own}
        elif "address" in data:
            at = _roles_by_address(role_of) if at is None else at
            roles = at.get(data["address"], roles)
        (role,) = roles if len(roles) == 1 else (None,)
        if role is not None:
            data["role"] = role
    sheet.has_tensors = True


def _roles_by_address(role_of: Mapping[str, str | None]) -> dict[str, set[str | None]]:
    """The roles of the tensors at each address, or inside it."""
    found: dict[str, set[str | None]] = {}
    for name, role in role_of.items():
        for address in prefixes(name):
            found.setdefault(address, set()).add(role)
    return found


def _estimate_nodes(body: Body, opens: set[str], depth: int | None, known: dict[tuple[Body, int | None], int]) -> int:
    """Estimate the number of nodes for the applications in a body and the tensors that it reads."""
    if (body, depth) in known:
        return known[body, depth]
    left = None if depth is None else depth - 1
    size = len(body.weights)
    for call in body.calls:
        opened = call.body if call.kind in opens and (call.kind != "block" or left is None or left > 0) else None
        size += _estimate_nodes(opened, opens, left, known) if opened is not None else 1
    known[body, depth] = size
    return size
