"""Common parts of DOT and Mermaid: nested boxes for blocks, readable labels, shares of the parameters by role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.core.addresses import is_inside, relative
from archspec.core.reports.tables import percent
from archspec.core.reports.text import beside, parameters
from archspec.drawing.graph.sheet import STORED

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph
    from archspec.drawing.graph.sheet import NodeData


class Node(NamedTuple):
    """A node to draw: an alphanumeric `id`, its kind, and its lines of text (the first is its name).

    `role` is that of its tensors, "" for none or several; `frozen` is whether all of them are.
    """

    id: str
    kind: str
    lines: tuple[str, ...]
    role: str = ""
    frozen: bool = False


class Box(NamedTuple):
    """A box for a block: an `id`, a title (empty for the whole picture), and its direct contents in program order.

    `repeat` is the number of applications that it represents, and `copies` that of its parameters.
    """

    id: str
    title: str
    items: list[Node | Box]
    repeat: int = 1
    copies: int = 1


class Picture(NamedTuple):
    """A picture: the outermost box, its nodes and edges (pairs of ids) in program order, and texts above it.

    `total` says how many parameters the model has, and `roles` pairs roles with their shares; both may be empty.
    """

    box: Box
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    total: str
    roles: tuple[tuple[str, str], ...]


def build_picture(graph: AnyGraph) -> Picture:
    """Return the picture of a networkx graph from `Model.graph`."""
    ids = {name: f"n{number}" for number, name in enumerate(graph)}
    drawing = _Drawing(graph)
    nodes: list[Node] = []
    for name, data in drawing.nodes.items():
        frozen = 0 < data["params"] == data.get("frozen")
        node = Node(ids[name], data["kind"], tuple(drawing.lines(name, data)), data.get("role", ""), frozen)
        drawing.box(data["path"]).items.append(node)
        nodes.append(node)
    edges = tuple((ids[a], ids[b]) for a, b in graph.edges)
    roles: dict[str, int] = graph.graph.get("roles", {})
    shares = tuple((role, drawing.share(params)) for role, params in roles.items() if params)
    total = f"{drawing.total:,} parameters{beside(parameters(drawing.total))}" if drawing.total else ""
    return Picture(drawing.box(()), tuple(nodes), edges, total, shares)


class _Drawing:
    """The boxes of a graph, created on demand. `total` is the number of the model's parameters, 0 if unknown."""

    def __init__(self, graph: AnyGraph) -> None:
        self.graph = graph
        self.total: int = graph.graph.get("params", 0)
        self.nodes = {name: cast("NodeData", graph.nodes[name]) for name in graph}
        self.inside: dict[tuple[str, ...], int] = {}
        self.types: dict[str, str] = graph.graph.get("blocks", {}) | graph.graph.get("labels", {})
        self.boxes: dict[tuple[str, ...], Box] = {(): Box("b0", "", [])}
        self.repeats: dict[str, int] = graph.graph.get("repeats", {})
        for data in self.nodes.values():
            path = data["path"]
            for end in range(1, len(path) + 1):
                self.inside[path[:end]] = self.inside.get(path[:end], 0) + data["params"]

    def box(self, path: tuple[str, ...]) -> Box:
        """Return the box for an application of a block; create it and the enclosing ones if necessary."""
        box = self.boxes.get(path)
        if box is None:
            around = self.box(path[:-1])
            name, repeat = _local_name(path[-1], path[:-1]), self.repeats.get(path[-1], 1)
            copies, label = _times(name, repeat // around.repeat, self.types.get(path[-1], ""))
            title = replace_unprintable(
                "   ".join(part for part in (name, label, self.share(self.inside[path])) if part)
            )
            box = self.boxes[path] = Box(f"b{len(self.boxes)}", title, [], repeat, around.copies * copies)
            around.items.append(box)
        return box

    def lines(self, name: str, data: NodeData) -> Iterator[str]:
        """Yield the lines of a node's label."""
        kind, shape = data["kind"], _shape(data)
        if kind == "op":
            yield replace_unprintable(data["type"])
        elif kind in ("input", "output"):
            yield replace_unprintable(data.get("label", name.partition(":")[2]))
        else:
            shown = _local_name(name, data["path"])
            yield replace_unprintable(shown)
            yield replace_unprintable(self._type(shown, data))
        for other in data.get("shared_with", ()):
            yield replace_unprintable(f"shares with {other}")
        before = self.graph.predecessors(name) if kind == "op" else ()
        if shape and all(_shape(self.nodes[node]) != shape for node in before):  # an operation often keeps the shape
            yield replace_unprintable(shape)

    def _type(self, name: str, data: NodeData) -> str:
        around = self.box(data["path"])
        applied = around.copies if data["kind"] in STORED else around.repeat
        type = data.get("label", data["type"])
        own, label = _times(name, max(data.get("repeat", 1) // applied, 1), type)
        copies = own * around.copies
        params, frozen = data["params"], data.get("frozen", 0)
        note = "" if not frozen else "  frozen" if frozen == params else f"  {frozen:,} frozen"
        if copies > 1 and params % copies == 0 and params:  # the copies are shown with the parameter count
            label = type if own > 1 else label
            return f"{label}  {copies} x {params // copies:,}{note}  {self.share(params)}".rstrip()
        return f"{label}  {params:,}{note}  {self.share(params)}".rstrip() if params else label

    def share(self, params: int) -> str:
        """Return a share of all parameters; "" for nothing, and where their number is unknown."""
        return percent(params / self.total) if params and self.total else ""


def replace_unprintable(text: str) -> str:
    """Replace all characters that are not printable."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _times(name: str, times: int, type: str) -> tuple[int, str]:
    """Return the number of copies that a box or node represents, and its type with that number.

    If the address has a varying number, there are `times` copies; otherwise, there is one copy, applied `times` times.
    """
    if times == 1:
        return 1, type
    if any(sign in name for sign in "*,-"):  # `layer.*`, or the numbers meant: `layer.0,3`, `layer.0-2`
        return times, f"{times} x {type}".rstrip()
    return 1, f"{type}, applied {times} times".lstrip(", ")


def _shape(data: NodeData) -> str:
    return " x ".join(map(str, data["shape"] or ()))


def _local_name(name: str, path: tuple[str, ...]) -> str:
    """Return a name without the address of the nearest enclosing block that is a prefix of it."""
    for block in reversed(path):
        address = block.partition("@")[0]
        if name != address and is_inside(name, address):
            return relative(name, address)
    return name
