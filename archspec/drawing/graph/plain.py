"""A directed graph with the methods of networkx that the formats use, for commands: they need no networkx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from networkx import DiGraph


class _Nodes(dict[str, dict[str, Any]]):
    """Attributes by node; called with the name of an attribute, pairs of a node and its value."""

    def __call__(self, data: str) -> Iterator[tuple[str, Any]]:
        return ((name, attributes.get(data)) for name, attributes in self.items())


class _Edges:
    """Attributes by edge, in the order of their first nodes."""

    def __init__(self, successors: dict[str, dict[str, dict[str, Any]]]) -> None:
        self._successors = successors

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((a, b) for a, targets in self._successors.items() for b in targets)

    def __getitem__(self, edge: tuple[str, str]) -> dict[str, Any]:
        return self._successors[edge[0]][edge[1]]

    def __call__(self, data: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
        return ((a, b, self[a, b]) for a, b in self)


class PlainGraph:
    """Nodes and edges with attributes, in the order of networkx."""

    def __init__(self, **attributes: Any) -> None:
        self.graph: dict[str, Any] = attributes
        self.nodes = _Nodes()
        self._successors: dict[str, dict[str, dict[str, Any]]] = {}
        self._predecessors: dict[str, dict[str, None]] = {}
        self.edges = _Edges(self._successors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    def add_node(self, name: str, **data: Any) -> None:
        self._successors.setdefault(name, {})
        self._predecessors.setdefault(name, {})
        self.nodes.setdefault(name, {}).update(data)

    def add_edge(self, a: str, b: str, **data: Any) -> None:
        self.add_node(a)
        self.add_node(b)
        self._successors[a].setdefault(b, {}).update(data)
        self._predecessors[b][a] = None

    def add_nodes_from(self, nodes: Iterable[tuple[str, dict[str, Any]]]) -> None:
        for name, data in nodes:
            self.add_node(name, **data)

    def add_edges_from(self, edges: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
        for a, b, data in edges:
            self.add_edge(a, b, **data)

    def has_edge(self, a: str, b: str) -> bool:
        return b in self._successors.get(a, ())

    def number_of_edges(self) -> int:
        return sum(map(len, self._successors.values()))

    def predecessors(self, name: str) -> Iterator[str]:
        return iter(self._predecessors[name])

    def out_edges(self, name: str, data: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
        return ((name, b, attributes) for b, attributes in self._successors[name].items())


AnyGraph: TypeAlias = "DiGraph[str] | PlainGraph"
