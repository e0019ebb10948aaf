"""A model's layers as a tree of addresses, with equal numbered parts (`layer.0`, `layer.1`, ...) drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.analyses.select import Selection
from archspec.table import Table, Tensor


class Branch(NamedTuple):
    """One line of the tree, `level` 0 outermost.

    `label` is the address within the line above, `address` the whole; a folded number is `*`, or the numbers meant
    where others differ (`0,3,6`). `times` says how many equal parts the line stands for. `each` is the parameters of
    one of them, `total` of all, in all the repetitions around it. `shapes` are those of the tensors owned here and
    counted here; `frozen` and `tied` say whether some of the tensors owned here are.
    """

    level: int
    label: str
    address: str
    type: str
    times: int
    each: int
    total: int
    shapes: tuple[tuple[int, ...], ...]
    frozen: bool
    tied: bool


def tree(table: Table, selection: Selection, depth: int | None = None) -> list[Branch]:
    """The lines of the tree from the top, down to layers and to tensors that blocks own themselves.

    `depth` leaves out what is nested deeper. The outermost lines' `total` sum to the selection's.
    """
    nodes = _grow(table, selection)
    _fold(nodes)
    return _lines(nodes[0], depth)


class _Node:
    __slots__ = ("children", "each", "kind", "numbers", "own", "segment", "times", "type")

    def __init__(self, segment: str) -> None:
        self.segment = segment
        self.type = ""
        self.own: list[tuple[Tensor, int, str]] = []
        self.children: dict[str, _Node] = {}
        self.times = 1
        self.each = 0
        self.kind = 0


def _grow(table: Table, selection: Selection) -> list[_Node]:
    """Every node of the tree, each after the one that it is in; the root is first."""
    root = _Node("")
    nodes = [root]
    layers = {module.address for module in table.modules if module.kind == "layer"}
    homes: dict[str, _Node] = {}

    def at(address: str) -> _Node:
        node = homes.get(address)
        if node is None:
            node = root
            for segment in address.split(".") if address else ():
                below = node.children.get(segment)
                if below is None:
                    below = node.children[segment] = _Node(segment)
                    nodes.append(below)
                node = below
            homes[address] = node
        return node

    for tensor, chosen, params in zip(table.tensors, selection.chosen, selection.params, strict=True):
        if chosen:
            in_layer = tensor.layer in layers
            home = tensor.layer if in_layer else tensor.name
            at(home).own.append((tensor, params, tensor.name[len(home) :]))
    for module in table.modules:
        node = root
        for segment in module.address.split(".") if module.address else ():
            below = node.children.get(segment)
            if below is None:
                break
            node = below
        else:
            node.type = module.type
    return nodes


def _fold(nodes: list[_Node]) -> None:
    """Sums the parameters and joins equal numbered siblings, from the leaves up. `kind` numbers what is equal."""
    kinds: dict[tuple[object, ...], int] = {}
    for node in reversed(nodes):
        _join(node)
        node.each = sum(params for _, params, _ in node.own)
        node.each += sum(child.each * child.times for child in node.children.values())
        own = tuple(
            (name, tensor.shape, params, tensor.trainable, tensor.tied_to is None, tensor.role)
            for tensor, params, name in node.own
        )
        below = tuple((child.segment, child.times, child.kind) for child in node.children.values())
        node.kind = kinds.setdefault((node.type, own, below), len(kinds))


def _join(node: _Node) -> None:
    numbered: dict[int, list[str]] = {}
    for segment, child in node.children.items():
        if _is_number(segment):
            numbered.setdefault(child.kind, []).append(segment)
    together = len(numbered) == 1
    for equal in numbered.values():
        if len(equal) > 1:
            first = node.children[equal[0]]
            first.times = len(equal)
            first.segment = "*" if together else _ranges(equal)
            for segment in equal[1:]:
                del node.children[segment]


def _is_number(segment: str) -> bool:
    return segment.isascii() and segment.isdigit() and len(segment) < 19


def _ranges(segments: Sequence[str]) -> str:
    """`0-2,5` of 0, 1, 2, 5; with more than six ranges the middle is left out."""
    ranges: list[list[str]] = []
    for segment in segments:
        if ranges and segment == str(int(ranges[-1][-1]) + 1):
            ranges[-1][1:] = [segment]
        else:
            ranges.append([segment])
    texts = ["-".join(ends) for ends in ranges]
    return ",".join(texts if len(texts) <= 6 else [*texts[:4], "...", texts[-1]])


def _lines(root: _Node, depth: int | None) -> list[Branch]:
    branches: list[Branch] = []
    waiting = [(child, 0, "", 1) for child in reversed(root.children.values())]
    if root.own:
        waiting.append((root, 0, "", 1))
    while waiting:
        node, level, around, copies = waiting.pop()
        label, times = node.segment, node.times
        while not node.type and not node.own and len(node.children) == 1:
            (node,) = node.children.values()
            label = f"{label}.{node.segment}"
            times *= node.times
        address = f"{around}.{label}" if around else label
        branches.append(_branch(node, level, label, address, times, copies))
        if node is not root and (depth is None or level + 1 < depth):
            below = [(child, level + 1, address, copies * times) for child in node.children.values()]
            waiting.extend(reversed(below))
    return branches


def _branch(node: _Node, level: int, label: str, address: str, times: int, copies: int) -> Branch:
    own = [(tensor, params) for tensor, params, _ in node.own]
    return Branch(
        level=level,
        label=label,
        address=address,
        type=node.type or ("parameter" if own else ""),
        times=times,
        each=node.each,
        total=node.each * times * copies,
        shapes=tuple(tensor.shape for tensor, params in own if params or not tensor.tied_to),
        frozen=any(not tensor.trainable for tensor, _ in own),
        tied=any(tensor.tied_to is not None for tensor, _ in own),
    )
