"""Layout shared by all graph pictures: nested boxes for blocks, and readable labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from archspec.addresses import is_inside, relative


class Node(NamedTuple):
    """A node to draw: an alphanumeric `id`, its kind, and its lines of text (the first is its name)."""

    id: str
    kind: str
    lines: tuple[str, ...]


class Box(NamedTuple):
    """A box for a block: an `id`, a title (empty for the whole picture), and its direct contents in program order."""

    id: str
    title: str
    items: list[Node | Box]


class Edge(NamedTuple):
    """An arrow between two ids."""

    source: str
    target: str


class Picture(NamedTuple):
    """A picture: the outermost box and the edges, in the order of the graph."""

    box: Box
    edges: tuple[Edge, ...]


def arrange(graph: Any) -> Picture:
    """Return the picture of a networkx graph from `Model.graph`."""
    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)}
    drawing = _Drawing(graph)
    for name, facts in graph.nodes(data=True):
        drawing.frame(facts["path"]).box.items.append(Node(ids[name], facts["kind"], tuple(drawing.lines(name, facts))))
    return Picture(drawing.frame(()).box, tuple(Edge(ids[a], ids[b]) for a, b in graph.edges))


class _Frame(NamedTuple):
    """A box, the number of applications that it represents (`repeat`), and the copies of its parameters (`copies`)."""

    box: Box
    repeat: int
    copies: int


class _Drawing:
    """The boxes of a graph, created on demand."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.types: Mapping[str, str] = graph.graph.get("blocks", {})
        self.frames: dict[tuple[str, ...], _Frame] = {(): _Frame(Box("b0", "", []), 1, 1)}
        self.repeats: dict[tuple[str, ...], int] = {}
        for _, facts in graph.nodes(data=True):
            path, repeat = facts["path"], facts.get("repeat", 1)
            for end in range(1, len(path) + 1):
                self.repeats[path[:end]] = min(repeat, self.repeats.get(path[:end], repeat))

    def frame(self, path: tuple[str, ...]) -> _Frame:
        """Return the frame for an application of a block; create it and the enclosing ones if necessary."""
        frame = self.frames.get(path)
        if frame is None:
            around = self.frame(path[:-1])
            name, repeat = _within(path[-1], path[:-1]), self.repeats[path]
            times = repeat // around.repeat
            copies, label = _times(name, times, self.types.get(path[-1], ""))
            box = Box(f"b{len(self.frames)}", visible(f"{name}   {label}".rstrip()), [])
            around.box.items.append(box)
            frame = self.frames[path] = _Frame(box, repeat, around.copies * copies)
        return frame

    def lines(self, name: str, facts: Any) -> Iterator[str]:
        """Yield the lines of a node's label."""
        kind, path = facts["kind"], facts["path"]
        is_operation = kind == "op"
        if is_operation:
            yield visible(facts["type"])
        elif kind in ("input", "output"):
            yield visible(name.partition(":")[2])
        else:
            yield visible(_within(name, path))
            yield visible(self._type(name, facts))
        for other in facts.get("shared_with", ()):
            yield visible(f"shares with {other}")
        shape = _shape(facts)
        if shape and not (is_operation and self._repeats_input_shape(name, shape)):
            yield visible(shape)

    def _type(self, name: str, facts: Any) -> str:
        around = self.frame(facts["path"])
        times = facts.get("repeat", 1) // around.repeat
        own, label = _times(_within(name, facts["path"]), times, facts["type"])
        copies = own * around.copies
        params, frozen = facts["params"], facts.get("frozen", 0)
        note = "" if not frozen else "  frozen" if frozen == params else f"  {frozen:,} frozen"
        if copies > 1 and params % copies == 0 and params:  # the copies are shown with the parameter count
            label = facts["type"] if own > 1 else label
            return f"{label}  {copies} x {params // copies:,}{note}"
        return f"{label}  {params:,}{note}" if params else label

    def _repeats_input_shape(self, name: str, shape: str) -> bool:
        """Whether the shape of an operation is equal to that of one of its inputs."""
        return any(_shape(self.graph.nodes[before]) == shape for before in self.graph.predecessors(name))


def visible(text: str) -> str:
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


def _shape(facts: Any) -> str:
    shape = facts.get("shape")
    return " x ".join(map(str, shape)) if shape else ""


def _within(name: str, path: tuple[str, ...]) -> str:
    """Return a name without the address of the nearest enclosing block that is a prefix of it."""
    for block in reversed(path):
        address = block.partition("@")[0]
        if name != address and is_inside(name, address):
            return relative(name, address)
    return name
