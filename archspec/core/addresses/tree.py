"""A tree of addresses, in which equal numbered components (`layer.0`, `layer.1`, ...) can be collapsed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from archspec.core.addresses import ANY_INDEX, format_ranges, is_index, join, last_segment, parent
from archspec.core.record import Record

MAX_RANGES = 6
"""Maximum number of index ranges in a label."""

Content = TypeVar("Content")
Total = TypeVar("Total")


class Node(Generic[Content, Total]):
    """A node of the tree; `segment` is its address relative to its parent.

    `type` is the name of the definition; `own` has the values of the node itself, `total` their sum including all
    nested nodes. `times` is the number of equal components that the node represents; `numbered` is whether its segment
    is an index or represents several. `like` is another node, whose contents this node shares.
    """

    __slots__ = ("children", "kind", "like", "numbered", "own", "segment", "times", "total", "type")

    def __init__(self, segment: str, total: Total) -> None:
        self.segment = segment
        self.numbered = is_index(segment)
        self.type = ""
        self.own: list[Content] = []
        self.children: dict[str, Node[Content, Total]] = {}
        self.times = 1
        self.total = total
        self.kind: int | None = None
        self.like: Node[Content, Total] | None = None


class TreeRow(Record, Generic[Content, Total]):
    """A row of the tree, `level` 0 outermost: a node, or a chain of nodes of which only the last has content.

    `label` is its address relative to the parent row, `address` the full address. A collapsed index is `*`, or a list
    of ranges if siblings differ (`0,3,6`). The row represents `times` equal components, in `copies` repetitions of its
    parents.
    """

    node: Node[Content, Total]
    level: int
    label: str
    address: str
    times: int
    copies: int


class AddressTree(Generic[Content, Total]):
    """A tree of addresses with values; `empty_total` is the sum of none."""

    def __init__(self, empty_total: Total) -> None:
        self._empty_total = empty_total
        self.root: Node[Content, Total] = Node("", empty_total)
        self._nodes: dict[str, Node[Content, Total]] = {"": self.root}

    def get_or_create(self, address: str) -> Node[Content, Total]:
        """Return the node at an address; create it and its parents if necessary."""
        missing: list[str] = []
        while (node := self._nodes.get(address)) is None:
            missing.append(address)
            address = parent(address)
        for missing_address in reversed(missing):
            child: Node[Content, Total] = Node(last_segment(missing_address), self._empty_total)
            node.children[child.segment] = self._nodes[missing_address] = child
            node = child
        return node

    def repeat(self, address: str, original: str) -> None:
        """Create a node that shares the contents of the node at `original`."""
        self.get_or_create(address).like = self.get_or_create(original)

    def find(self, address: str) -> Node[Content, Total] | None:
        """Return the node at an address if it exists."""
        return self._nodes.get(address)

    def compute_sums(self, add: Callable[[Node[Content, Total]], Hashable], fold: bool) -> None:
        """Compute the sum of each node with `add`, from the leaves up; with `fold`, join equal numbered siblings first.

        `add` returns equal values for nodes with equal contents.
        """
        kinds: dict[tuple[object, ...], int] = {}
        stack = [self.root]
        while stack:
            node, like = stack[-1], stack[-1].like
            unfinished = [child for child in ([like] if like else node.children.values()) if child.kind is None]
            if unfinished:
                stack += unfinished
                continue
            stack.pop()
            if like is not None:
                node.type, node.own, node.children = like.type, like.own, like.children
                node.total, node.kind = like.total, like.kind
            elif node.kind is None:
                if fold and node.children:
                    _collapse_children(node)
                own = add(node)
                children = tuple([(child.segment, child.times, child.kind) for child in node.children.values()])
                node.kind = kinds.setdefault((node.type, own, children), len(kinds))

    def rows(self, depth: int | None) -> Iterator[TreeRow[Content, Total]]:
        """Return the rows in order, with the root if it has content, down to `depth`; at depth 0, only the root."""
        root = self.root
        if depth == 0:
            yield TreeRow(root, 0, root.segment, "", 1, 1)
            return
        stack = [(child, 0, "", 1) for child in reversed(root.children.values())]
        if root.own:
            stack.append((root, 0, "", 1))
        while stack:
            node, level, prefix, copies = stack.pop()
            label, times = node.segment, node.times
            while not node.type and not node.own and len(node.children) == 1:
                (node,) = node.children.values()
                label = join(label, node.segment)
                times *= node.times
            address = join(prefix, label)
            yield TreeRow(node, level, label, address, times, copies)
            if node is not root and (depth is None or level + 1 < depth):
                children = [(child, level + 1, address, copies * times) for child in node.children.values()]
                stack.extend(reversed(children))


def _collapse_children(node: Node[Content, Total]) -> None:
    """Keep the first of equal numbered children, and count the others in its `times`."""
    numbered: dict[int | None, list[str]] = {}
    for segment, child in node.children.items():
        if child.numbered:
            numbered.setdefault(child.kind, []).append(segment)
    is_single_kind = len(numbered) == 1
    for equal in numbered.values():
        if len(equal) > 1:
            first = node.children[equal[0]]
            first.times = len(equal)
            first.segment = ANY_INDEX if is_single_kind else format_ranges([*map(int, equal)], MAX_RANGES)
            for segment in equal[1:]:
                del node.children[segment]
