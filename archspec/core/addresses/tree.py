"""A tree of addresses, in which equal numbered components (`layer.0`, `layer.1`, ...) can be joined."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from archspec.core.addresses import ANY_INDEX, format_ranges, is_index, join, last_segment, parent

MAX_RANGES = 6
"""The limit on ranges of indices in a label."""

Content = TypeVar("Content")
Total = TypeVar("Total")


class Node(Generic[Content, Total]):
    """A node of the tree; `segment` is its address relative to its parent.

    `type` is the name of the definition; `own` has the values of the node itself, `each` their sum including all nested
    nodes. `times` is the number of equal components that the node represents; `numbered` is whether its segment is an
    index, or represents several. `like` is the node with the same contents that these are taken from.
    """

    __slots__ = ("children", "each", "kind", "like", "numbered", "own", "segment", "times", "type")

    def __init__(self, segment: str, each: Total) -> None:
        self.segment = segment
        self.numbered = is_index(segment)
        self.type = ""
        self.own: list[Content] = []
        self.children: dict[str, Node[Content, Total]] = {}
        self.times = 1
        self.each = each
        self.kind: int | None = None
        self.like: Node[Content, Total] | None = None


class TreeRow(NamedTuple, Generic[Content, Total]):
    """A row of the tree, `level` 0 outermost: a node, or a chain of nodes of which only the last has content.

    `label` is its address relative to the parent row, `address` the full one; a collapsed number is `*`, or the numbers
    if others differ (`0,3,6`). It represents `times` equal components, in `copies` repetitions of its parents.
    """

    node: Node[Content, Total]
    level: int
    label: str
    address: str
    times: int
    copies: int


class AddressTree(Generic[Content, Total]):
    """The tree. `nothing` is an empty sum."""

    def __init__(self, nothing: Total) -> None:
        self._nothing = nothing
        self.root: Node[Content, Total] = Node("", nothing)
        self._nodes: dict[str, Node[Content, Total]] = {"": self.root}

    def at(self, address: str) -> Node[Content, Total]:
        """Return the node at an address, which is created if necessary."""
        missing: list[str] = []
        while (node := self._nodes.get(address)) is None:
            missing.append(address)
            address = parent(address)
        for inner in reversed(missing):
            made: Node[Content, Total] = Node(last_segment(inner), self._nothing)
            node.children[made.segment] = self._nodes[inner] = made
            node = made
        return node

    def repeat(self, address: str, of: str) -> None:
        """Create a node with the contents of another one, which exists."""
        self.at(address).like = self.at(of)

    def find(self, address: str) -> Node[Content, Total] | None:
        """Return the node at an address if it exists."""
        return self._nodes.get(address)

    def compute_sums(self, add: Callable[[Node[Content, Total]], Hashable], fold: bool) -> None:
        """Compute the sum of each node with `add`, from the leaves up; with `fold`, join equal numbered siblings first.

        `add` returns equal values for nodes with equal contents.
        """
        kinds: dict[tuple[object, ...], int] = {}
        waiting = [self.root]
        while waiting:
            node, like = waiting[-1], waiting[-1].like
            needed = [other for other in ([like] if like else node.children.values()) if other.kind is None]
            if needed:
                waiting += needed
                continue
            waiting.pop()
            if like is not None:
                node.type, node.own, node.children = like.type, like.own, like.children
                node.each, node.kind = like.each, like.kind
            elif node.kind is None:
                if fold and node.children:
                    _collapse(node)
                own = add(node)
                below = tuple([(child.segment, child.times, child.kind) for child in node.children.values()])
                node.kind = kinds.setdefault((node.type, own, below), len(kinds))

    def rows(self, depth: int | None) -> Iterator[TreeRow[Content, Total]]:
        """Return the rows in order, with the root if it has content, down to `depth`; at depth 0, only the root."""
        root = self.root
        if depth == 0:
            yield TreeRow(root, 0, root.segment, "", 1, 1)
            return
        waiting = [(child, 0, "", 1) for child in reversed(root.children.values())]
        if root.own:
            waiting.append((root, 0, "", 1))
        while waiting:
            node, level, around, copies = waiting.pop()
            label, times = node.segment, node.times
            while not node.type and not node.own and len(node.children) == 1:
                (node,) = node.children.values()
                label = join(label, node.segment)
                times *= node.times
            address = join(around, label)
            yield TreeRow(node, level, label, address, times, copies)
            if node is not root and (depth is None or level + 1 < depth):
                below = [(child, level + 1, address, copies * times) for child in node.children.values()]
                waiting.extend(reversed(below))


def _collapse(node: Node[Content, Total]) -> None:
    numbered: dict[int | None, list[str]] = {}
    for segment, child in node.children.items():
        if child.numbered:
            numbered.setdefault(child.kind, []).append(segment)
    together = len(numbered) == 1
    for equal in numbered.values():
        if len(equal) > 1:
            first = node.children[equal[0]]
            first.times = len(equal)
            first.segment = ANY_INDEX if together else format_ranges([*map(int, equal)], MAX_RANGES)
            for segment in equal[1:]:
                del node.children[segment]
