"""Which blocks of a picture are open at first: as many levels as a reader takes in at once."""

from __future__ import annotations

from archspec.drawing.plan.plan import Node, Plan

MIN_LEVELS = 2
"""Levels of blocks that are open in any case."""

MAX_BOXES = 48
"""Further levels are open while the picture has at most this number of boxes."""


def opened_nodes(plan: Plan) -> list[int]:
    """Return the ids of the periods and blocks that are open at first, in order.

    Of the blocks of one type that are together, the one with the most parameters is open.
    """
    opened: list[int] = []
    level, depth = _openable(plan, plan.nodes[0]), 0
    boxes = _boxes_in(plan, plan.nodes[0])
    while level:
        boxes += sum([_boxes_in(plan, node) - 1 for node in level])
        if depth >= MIN_LEVELS and boxes > MAX_BOXES:
            break
        opened += [node.id for node in level]
        level, depth = [inner for node in level for inner in _openable(plan, node)], depth + 1
    return sorted(opened)


def _openable(plan: Plan, node: Node) -> list[Node]:
    """Return the periods and blocks in a node to open with it: in place of periods, with them what is in them."""
    periods: list[Node] = []
    blocks: dict[str, Node] = {}
    waiting = plan.children(node)
    while waiting:
        child = waiting.pop(0)
        if child.contents is None or not child.contents.children:
            continue
        if child.kind in ("period", "group"):
            periods += [child] if child.kind == "period" else []
            waiting = [*plan.children(child), *waiting]
        elif child.kind == "block" and child.params > (blocks[child.type].params if child.type in blocks else -1):
            blocks[child.type] = child
    return [*periods, *blocks.values()]


def _boxes_in(plan: Plan, node: Node) -> int:
    """Return the number of boxes in an open node; sums and products of tensors are none."""
    children = plan.children(node)
    return sum([_boxes_in(plan, child) if child.kind == "group" else child.form != "circle" for child in children])
