"""The ports of a node: the main one on its axis, others at the top, masks on the right, streams on the left."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.drawing.plan.plan import Contents, Node, Plan, Side, Use


def set_sides(plan: Plan, node: Node, weighs: Sequence[bool], nearness: Sequence[int]) -> None:
    """Set the side of each input, and the main input.

    `weighs` says which values have parameters behind them, and `nearness` how near their producers are.
    """
    contents = node.contents
    if not node.inputs:
        return
    is_block = node.kind in ("block", "period")
    if is_block and contents is not None:
        lengths, aside = longest_paths(plan, contents), _inputs_aside(plan, contents)
        ranked = [(own not in aside, lengths.get(own, 0), nearness[own], -own) for own in range(len(node.inputs))]
        node.main = ranked.index(max(ranked))
    elif weighs.count(True) == 1 or len(weighs) == 1:
        node.main = weighs.index(True) if True in weighs else 0
    for own, port in enumerate(node.inputs):
        side: Side = "top"
        if own != node.main:
            if is_block and weighs[own]:
                side = "left"
            elif is_block and contents is not None:
                side = "top" if _is_looked_up(plan, contents, own) else "right"
            elif any(weighs) and not weighs[own]:
                side = "right"
        node.inputs[own] = port._replace(side=side)


def longest_paths(plan: Plan, contents: Contents) -> dict[int, int]:
    """Return, for each input, the number of nodes on the longest way from it through the contents of its node."""
    after: dict[int, list[int]] = {}
    for value in contents.values:
        if value.source is not None:
            after.setdefault(value.source, []).extend(use.to for use in value.uses if use.to is not None)
    known: dict[int, int] = {}

    def way(id: int) -> int:
        if id not in known:
            known[id] = _depth(plan, plan.nodes[id]) + max(map(way, after.get(id, ())), default=0)
        return known[id]

    for id in reversed(contents.children):
        way(id)
    ways: dict[int, int] = {}
    for value in contents.values:
        if value.source is None:
            longest = max([way(use.to) for use in value.uses if use.to is not None], default=0)
            ways[value.output] = max(ways.get(value.output, 0), longest)
    return ways


def _depth(plan: Plan, node: Node) -> int:
    """Return the number of nodes on the longest way through a node; functions and layers are single ones."""
    if node.contents is None or node.kind not in ("block", "period"):
        return 1
    return max(longest_paths(plan, node.contents).values(), default=1)


def _inputs_aside(plan: Plan, contents: Contents) -> set[int]:
    """Return the inputs that only enter children from the right, directly or through operations without parameters."""
    uses: dict[int | None, list[Use]] = {}
    for value in contents.values:
        uses.setdefault(value.source, []).extend(value.uses)
    aside: set[int] = set()

    def is_aside(use: Use) -> bool:
        return use.to is not None and (use.to in aside or plan.nodes[use.to].inputs[use.port].side == "right")

    for id in reversed(contents.children):
        if plan.nodes[id].kind in ("op", "fn") and uses.get(id) and all(map(is_aside, uses[id])):
            aside.add(id)
    own = {value.output for value in contents.values if value.source is None}
    used = {value.output for value in contents.values if value.source is None and not all(map(is_aside, value.uses))}
    return own - used


def _is_looked_up(plan: Plan, contents: Contents, own: int) -> bool:
    """Whether an input is only used by layers, as ids and positions are."""
    for value in contents.values:
        if value.source is None and value.output == own:
            for use in value.uses:
                if use.to is None:
                    return False
                target = plan.nodes[use.to]
                inner = target.contents if target.kind in ("block", "period") else None
                if target.kind != "layer" and (inner is None or not _is_looked_up(plan, inner, use.port)):
                    return False
    return True
