"""What tests of pictures share: names that must be escaped, and which nodes are open."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from archspec.drawing.api import find_open_nodes
from archspec.drawing.plan.plan import Node, Plan

HOSTILE = ["</script><script>alert(1)</script>", "a\"b'c", "\u202eright to left", "שלום עולם", "x" * 200, "語" * 60]

State = Callable[[Node], bool]


def states(plan: Plan) -> Iterator[tuple[str, State]]:
    """Yield different ways of opening a plan: the levels of the command, everything closed, and some at random."""
    ways: dict[str, State] = {"closed": lambda node: False}
    for level, depth in (("layer", None), ("op", None), ("block", 1), ("block", 2), ("block", 3)):
        ways[f"{level} {depth}"] = find_open_nodes(plan, level, depth)
    for seed in range(3):
        chosen = random.Random(seed)
        flags = {node.id: chosen.random() < 0.6 for node in plan.nodes}
        ways[f"seed {seed}"] = lambda node, flags=flags: flags[node.id]
    seen: set[tuple[int, ...]] = set()
    for name, is_open in ways.items():
        open_ids = tuple(node.id for node in plan.nodes if node.contents is not None and is_open(node))
        if open_ids not in seen:
            seen.add(open_ids)
            yield name, is_open


def named(plan: Plan, name: str) -> Node:
    return next(node for node in plan.nodes if node.name == name)
