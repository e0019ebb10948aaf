"""Elements of a figure, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archspec.ir.structure.parts import Part


class Element:
    """An element of a figure: a box, a circle, or a pill.

    `kind` is "attention", "core", "feed_forward", "experts", "state_space", "norm", "embedding", "linear",
    "convolution", "layer", "closed", "parameter", "function", "add", "multiply", "input" or "output". `title` and
    `details` are its text.
    `unit` is the address of the layer that it is in, "" for none, `repeat` the number of such layers, and `block`
    the address of the block that it is in, with its label. `nodes` are those of the graph, and `tensors` the names of
    its parameters. `shape` is that of its result.
    """

    def __init__(self, kind: str, title: str, details: str, nodes: Sequence[str]) -> None:
        self.kind = kind
        self.title = title
        self.details = details
        self.nodes = list(nodes)
        self.unit = ""
        self.block = self.block_label = ""
        self.repeat = 1
        self.tensors: list[str] = []
        self.shape: tuple[object, ...] = ()
        self.part: Part | None = None

    @property
    def facts(self) -> object:
        return self.part.facts if self.part is not None else None


class Flow:
    """Elements in program order, and the edges between them, each once.

    `shifted` are the addresses of the layers that shift windows.
    """

    def __init__(
        self, elements: Sequence[Element], edges: Iterable[tuple[Element, Element]], shifted: Iterable[str] = ()
    ) -> None:
        self.elements = list(elements)
        self.shifted = frozenset(shifted)
        self.edges = list(dict.fromkeys(edges))

    def sources(self, element: Element) -> list[Element]:
        return [a for a, b in self.edges if b is element]

    def users(self, element: Element) -> list[Element]:
        return [b for a, b in self.edges if a is element]

    def remove(self, element: Element, *, bridge: bool = False) -> None:
        """Remove an element; with `bridge`, what it takes goes to what uses it."""
        added = [(a, b) for a in self.sources(element) for b in self.users(element)] if bridge else []
        self.elements.remove(element)
        others = [edge for edge in self.edges if element not in edge]
        self.edges = list(dict.fromkeys([*others, *added]))

    def merge(self, elements: Sequence[Element], element: Element) -> None:
        """Replace elements by one, at the place of the last."""
        place = self.elements.index(elements[-1])
        self.elements[place] = element
        self.elements = [e for e in self.elements if e not in elements]
        renamed = [(element if a in elements else a, element if b in elements else b) for a, b in self.edges]
        self.edges = list(dict.fromkeys([(a, b) for a, b in renamed if a is not b]))
