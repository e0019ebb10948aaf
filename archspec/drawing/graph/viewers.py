"""Graphs as data for interactive viewers: Netron and Model Explorer. Neither needs weights.

Netron shows a flat graph of operations with the tensors that they read, Model Explorer a hierarchy of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from archspec.core.addresses import join, relative, segments
from archspec.core.reports.roles import style_of
from archspec.drawing.graph.sheet import STORED, Shape

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph
    from archspec.drawing.graph.sheet import EdgeData, NodeData

_CATEGORIES = {"norm": "Normalization", "attention": "Attention"}
"""Netron's categories of layers, by role; it colors nodes by them."""


def to_netron(graph: AnyGraph, name: str, shapes: Mapping[str, Shape]) -> dict[str, object]:
    """Return a graph in Netron's own format; `shapes` are those of stored tensors."""
    return {
        "signature": "netron:archspec",  # which must be first
        "format": "archspec",
        "description": name,
        "metadata": [{"name": "parameters", "value": f"{graph.graph['params']:,}"}],
        "graphs": [_NetronGraph(graph, shapes).data()],
    }


class _NetronGraph:
    """A graph with numbered values: the outputs of nodes, and stored tensors."""

    def __init__(self, graph: AnyGraph, shapes: Mapping[str, Shape]) -> None:
        self.graph = graph
        self.shapes = shapes
        self.values: list[Mapping[str, object]] = []
        self.numbers: dict[tuple[str, int], int] = {}
        self.tensors: dict[str, int] = {}

    def data(self) -> dict[str, object]:
        """Return the inputs, outputs, nodes and values."""
        inputs: list[dict[str, object]] = []
        outputs: list[dict[str, object]] = []
        nodes: list[dict[str, object]] = []
        for name in self.graph:
            data = _node(self.graph, name)
            if data["kind"] == "input":
                inputs.append(_argument(name.partition(":")[2], [self.output(name, 0)]))
            elif data["kind"] == "output":
                read = [number for _, numbers in self.arguments(name) for number in numbers]
                outputs.append(_argument(name.partition(":")[2], read))
            elif data["kind"] not in STORED:
                nodes.append(self.node(name, data))
        return {"inputs": inputs, "outputs": outputs, "nodes": nodes, "values": self.values}

    def node(self, name: str, data: NodeData) -> dict[str, object]:
        """Return a node: its inputs, then the tensors that it has."""
        inputs = [_argument(argument, numbers) for argument, numbers in self.arguments(name)]
        for tensor, first in _tensors(data).items():
            number = self.tensor(tensor, self.shapes.get(first))
            inputs.append(_argument(relative(tensor, data.get("address", "")), [number]))
        results = range(len(_shapes(data)))
        return {
            "name": name,
            "type": {"name": data["type"], "category": _category(data)},
            "inputs": inputs,
            "outputs": [_argument("output" if i == 0 else str(i), [self.output(name, i)]) for i in results],
            "attributes": [{"name": key, "value": value} for key, value in _details(data)],
        }

    def arguments(self, name: str) -> list[tuple[str, list[int]]]:
        """Return the arguments of a node in order, with the values that are given."""
        found: list[tuple[int, str, int]] = []
        for before in self.graph.predecessors(name):
            edge = cast("EdgeData", self.graph.edges[before, name])
            for position, (output, argument) in zip(edge["positions"], edge["uses"], strict=True):
                found.append((position, argument, self.output(before, output)))
        arguments: dict[str, list[int]] = {}
        for _, argument, number in sorted(found):
            arguments.setdefault(argument, []).append(number)
        return list(arguments.items())

    def output(self, name: str, output: int) -> int:
        """Return the number of an output of a node, or of the tensor that a node stands for."""
        data = _node(self.graph, name)
        if data["kind"] in STORED:
            return self.tensor(name, data["shape"], data["type"])
        if (name, output) not in self.numbers:
            shape = _shapes(data)[output]
            value = {"name": f"{name}:{output}" if output else name, "type": _type(self.dtype(name, output), shape)}
            self.numbers[name, output] = self.add(value)
        return self.numbers[name, output]

    def dtype(self, name: str, output: int) -> str:
        """Return the type of the elements of an output, if an edge has it: that of an edge is that of its first use."""
        for _, _, data in self.graph.out_edges(name, data=True):
            if data["uses"][0][0] == output:
                return data["dtype"]
        return ""

    def tensor(self, name: str, shape: Shape | None, dtype: str = "real") -> int:
        """Return the number of a stored tensor."""
        if name not in self.tensors:
            self.tensors[name] = self.add({"name": name, "initializer": {"type": _type(dtype, shape)}})
        return self.tensors[name]

    def add(self, value: Mapping[str, object]) -> int:
        """Add a value, and return its number."""
        self.values.append(value)
        return len(self.values) - 1


def to_model_explorer(graph: AnyGraph, name: str, shapes: Mapping[str, Shape]) -> dict[str, object]:
    """Return a graph in the format of Model Explorer, with the segments of addresses as groups."""
    nodes = [_explorer_node(graph, node, shapes) for node in graph]
    groups = {"": {"model": name, "parameters": f"{graph.graph['params']:,}"}, **_groups(graph)}
    return {"label": name, "graphs": [{"id": name, "nodes": nodes, "groupNodeAttributes": groups}]}


def _explorer_node(graph: AnyGraph, name: str, shapes: Mapping[str, Shape]) -> dict[str, object]:
    data = _node(graph, name)
    incoming: list[dict[str, str]] = []
    for before in graph.predecessors(name):
        edge = cast("EdgeData", graph.edges[before, name])
        for position, (output, _) in zip(edge["positions"], edge["uses"], strict=True):
            ids = {"sourceNodeOutputId": str(output), "targetNodeInputId": str(position)}
            incoming.append({"sourceNodeId": before, **ids})
    tensors = [(tensor, _sizes(shapes.get(first))) for tensor, first in _tensors(data).items()]
    return {
        "id": name,
        "label": _label(name, data),
        "namespace": _namespace(data["path"]),
        "attrs": [{"key": key, "value": value} for key, value in (*_details(data), *tensors)],
        "incomingEdges": incoming,
        "outputsMetadata": [
            {"id": str(i), "attrs": [{"key": "tensor_shape", "value": _sizes(shape)}]}
            for i, shape in enumerate(_shapes(data))
        ],
        **_style(data),
    }


def _label(name: str, data: NodeData) -> str:
    """Return the last segment of an address with the type, the type of an operation, or the name of an input."""
    if data["kind"] in ("input", "output"):
        return name.partition(":")[2]
    if data["kind"] == "op":
        return data["type"]
    return f"{segments(name)[-1]}: {data['type']}"


def _namespace(path: Iterable[str]) -> str:
    """Return the groups around a node, from the applications of blocks around it; each is named within the last."""
    groups: list[str] = []
    around = ""
    for block in path:
        groups += segments(relative(block, around))
        around = block.partition("@")[0]
    return "/".join(groups)


def _groups(graph: AnyGraph) -> dict[str, dict[str, str]]:
    """Return the types of blocks and the parameters of groups."""
    types: dict[str, str] = graph.graph["blocks"]
    found: dict[str, dict[str, str]] = {}
    parameters: dict[str, int] = {}
    for name in graph:
        data = _node(graph, name)
        path = data["path"]
        for end in range(1, len(path) + 1):
            found.setdefault(_namespace(path[:end]), {"type": types[path[end - 1]]})
        words = _namespace(path).split("/")
        for end in range(1, len(words) + 1):
            group = "/".join(words[:end])
            parameters[group] = parameters.get(group, 0) + data["params"]
    return {
        group: {**found.get(group, {}), "parameters": f"{params:,}"} for group, params in parameters.items() if group
    }


def _style(data: NodeData) -> dict[str, object]:
    """Return the color of the role that a node's tensors have."""
    if "role" not in data:
        return {}
    shade = style_of(data["role"]).light
    return {"style": {"backgroundColor": shade.fill, "borderColor": shade.line}}


def _node(graph: AnyGraph, name: str) -> NodeData:
    return cast("NodeData", graph.nodes[name])


def _details(data: NodeData) -> list[tuple[str, str]]:
    """Return the attributes of a node for its description."""
    found: dict[str, object] = {"address": data["address"]} if "address" in data else {}
    if data["params"]:
        found["parameters"] = f"{data['params']:,}"
    if "role" in data:
        found["role"] = data["role"]
    if "label" in data:
        found["label"] = data["label"]
    if "repeat" in data:
        found["repeat"] = data["repeat"]
    found |= {key: data[key] for key in ("macs", "elementwise") if data[key]}
    found |= {**data.get("hyperparameters", {}), **data.get("constants", {})}
    if "shared_with" in data:
        found["shares tensors with"] = ", ".join(data["shared_with"])
    return [(key, str(value)) for key, value in found.items()] + [("source", data["source"])]


def _tensors(data: NodeData) -> dict[str, str]:
    """Return the tensors counted on a node. Those of a node for several layers have one name with its address, and the
    first of them is the value.
    """
    address = segments(data.get("address", ""))
    found: dict[str, str] = {}
    for name in data.get("tensors", ()):
        found.setdefault(join(*address, *segments(name)[len(address) :]) if "repeat" in data else name, name)
    return found


def _shapes(data: NodeData) -> tuple[Shape | None, ...]:
    """Return the shapes of a node's outputs."""
    return data.get("shapes", (data["shape"],))


def _category(data: NodeData) -> str:
    return _CATEGORIES.get(data.get("role", ""), "Layer") if data["kind"] in ("layer", "block") else ""


def _argument(name: str, numbers: list[int]) -> dict[str, object]:
    return {"name": name, "value": numbers}


def _type(dtype: str, shape: Shape | None) -> dict[str, object]:
    dimensions = [size if isinstance(size, int) else str(size) for size in shape or ()]
    return {"dataType": dtype, "shape": {"dimensions": dimensions}}


def _sizes(shape: Shape | None) -> str:
    return f"[{', '.join(map(str, shape or ()))}]"
