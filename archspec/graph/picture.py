"""What every picture of a graph has: boxes within boxes for the blocks, and labels that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from archspec.addresses import is_inside, relative


class Node(NamedTuple):
    """A node to draw: an `id` of letters and digits, its kind, and its lines of text (the first is its name)."""

    id: str
    kind: str
    lines: tuple[str, ...]


class Box(NamedTuple):
    """An enclosing block: an `id`, a title (none for the whole picture), what is directly in it, in program order."""

    id: str
    title: str
    items: list[Node | Box]


class Edge(NamedTuple):
    """An arrow between two ids."""

    source: str
    target: str


class Picture(NamedTuple):
    """Everything to draw, in the graph's order."""

    box: Box
    edges: tuple[Edge, ...]


def arrange(graph: Any) -> Picture:
    """The picture of a networkx graph whose nodes carry what `Model.graph` gives them."""
    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)}
    drawing = _Drawing(graph)
    for name, facts in graph.nodes(data=True):
        drawing.place(facts["path"]).box.items.append(Node(ids[name], facts["kind"], tuple(drawing.lines(name, facts))))
    return Picture(drawing.place(()).box, tuple(Edge(ids[a], ids[b]) for a, b in graph.edges))


class _Place(NamedTuple):
    """A box with how often all in it is drawn once for (`repeat`), and how often what it owns is there (`copies`)."""

    box: Box
    repeat: int
    copies: int


class _Drawing:
    """The boxes of a graph, made as nodes in them are met."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.types: Mapping[str, str] = graph.graph.get("blocks", {})
        self.places: dict[tuple[str, ...], _Place] = {(): _Place(Box("b0", "", []), 1, 1)}
        self.repeats: dict[tuple[str, ...], int] = {}
        for _, facts in graph.nodes(data=True):
            path, repeat = facts["path"], facts.get("repeat", 1)
            for end in range(1, len(path) + 1):
                self.repeats[path[:end]] = min(repeat, self.repeats.get(path[:end], repeat))

    def place(self, path: tuple[str, ...]) -> _Place:
        """The box of an application of a block; boxes around it are made as well."""
        place = self.places.get(path)
        if place is None:
            around = self.place(path[:-1])
            name, repeat = _within(path[-1], path[:-1]), self.repeats[path]
            times = repeat // around.repeat
            copies, what = _times(name, times, self.types.get(path[-1], ""))
            box = Box(f"b{len(self.places)}", visible(f"{name}   {what}".rstrip()), [])
            around.box.items.append(box)
            place = self.places[path] = _Place(box, repeat, around.copies * copies)
        return place

    def lines(self, name: str, facts: Any) -> Iterator[str]:
        """What a node's label says."""
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
        if shape and not (is_operation and self._is_seen_before(name, shape)):
            yield visible(shape)

    def _type(self, name: str, facts: Any) -> str:
        around = self.place(facts["path"])
        times = facts.get("repeat", 1) // around.repeat
        copies, what = _times(_within(name, facts["path"]), times, facts["type"])
        if copies > 1:  # the parameters will say so
            what = facts["type"]
        copies *= around.copies
        params = facts["params"]
        if copies > 1 and params % copies == 0 and params:
            return f"{what}  {copies} x {params // copies:,}"
        return f"{what}  {params:,}" if params else what

    def _is_seen_before(self, name: str, shape: str) -> bool:
        """Whether an operation's shape is that of something it takes."""
        return any(_shape(self.graph.nodes[before]) == shape for before in self.graph.predecessors(name))


def visible(text: str) -> str:
    """The text with everything that is no character to look at replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _times(name: str, times: int, type: str) -> tuple[int, str]:
    """How many copies a repeated block or layer is drawn once for, and its type with that.

    Where the number changes there are as many; where the address stays it is one, applied so often.
    """
    if times == 1:
        return 1, type
    return (
        (times, f"{times} x {type}".rstrip())
        if "*" in name or "," in name
        else (1, f"{type}, applied {times} times".lstrip(", "))
    )


def _shape(facts: Any) -> str:
    shape = facts.get("shape")
    return " x ".join(map(str, shape)) if shape else ""


def _within(name: str, path: tuple[str, ...]) -> str:
    """A name without what the name of the nearest enclosing block, whichever its application, has already said."""
    for block in reversed(path):
        address = block.partition("@")[0]
        if name != address and is_inside(name, address):
            return relative(name, address)
    return name
