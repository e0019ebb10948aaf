"""Graphs as text: as sources that other programs draw, and as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.core.reports.documents import json
from archspec.drawing.graph import build_plain_graph, check_level
from archspec.drawing.graph.dot import to_dot
from archspec.drawing.graph.exchange import gexf_text, graphml_text
from archspec.drawing.graph.mermaid import to_mermaid
from archspec.drawing.graph.nodelink import to_node_link
from archspec.drawing.graph.sheet import Shape
from archspec.drawing.graph.viewers import to_model_explorer, to_netron
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph


def format_model(model: Model, format: str, level: str, depth: int | None, fold: bool) -> str:
    """Return the graph of a model in a format of `format_graph`; see `Model.graph`."""
    compilation, depth = get_compilation(model), check_level(level, depth)
    graph = build_plain_graph(compilation.body, compilation.table, level, depth, fold)
    shapes = {tensor.name: tensor.shape for tensor in (*model.tensors, *model.buffers)}
    return format_graph(graph, format, model.name, shapes)


def format_graph(graph: AnyGraph, format: str, name: str, shapes: Mapping[str, Shape]) -> str:
    """Return the graph of a model as "dot", "mermaid", "graphml", "gexf", "netron", "model-explorer" or "json".

    `shapes` are those of the stored tensors of the model.
    """
    match format:
        case "dot":
            return to_dot(graph, name)
        case "mermaid":
            return to_mermaid(graph, name)
        case "graphml":
            return graphml_text(graph)
        case "gexf":
            return gexf_text(graph)
        case "netron":
            return json(to_netron(graph, name, shapes))
        case "model-explorer":
            return json(to_model_explorer(graph, name, shapes))
        case _:
            return json({**to_node_link(graph)})
