"""The layout of a picture: each open node is laid out alone; its parent sees a box with ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from archspec.drawing.layout.block import Block
from archspec.drawing.layout.frames import Frame, closed_frame
from archspec.drawing.layout.horizontal import (
    measure_rows,
    order_entries,
    place_columns,
    place_lanes,
    place_ports,
    place_rows,
)
from archspec.drawing.layout.paths import framed
from archspec.drawing.layout.vertical import find_nets, place_beside, place_vertically
from archspec.drawing.plan.plan import Node, Plan

IsOpen: TypeAlias = Callable[[Node], bool]


def layout(plan: Plan, is_open: IsOpen, floors: Mapping[int, float] = {}) -> Frame:
    """Return the frame of the root, with the contents of open nodes laid out.

    `floors` are the least y of nodes in the frames around them, by id.
    """
    return _frame(plan, plan.nodes[0], is_open, floors)


def _frame(plan: Plan, node: Node, is_open: IsOpen, floors: Mapping[int, float]) -> Frame:
    if node.contents is None or not (node.kind in ("root", "group") or is_open(node)):
        return closed_frame(node)
    block = Block(node, {id: _frame(plan, plan.nodes[id], is_open, floors) for id in node.contents.children})
    place_rows(block)
    place_ports(block)
    order_entries(block)
    measure_rows(block)
    place_lanes(block)
    place_columns(block)
    find_nets(block)
    place_vertically(block, floors)
    place_beside(block)
    return framed(block)
