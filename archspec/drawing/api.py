"""Plans and pictures of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archspec.drawing.layout.layout import IsOpen
from archspec.drawing.plan.expand import expand
from archspec.drawing.plan.labels import annotate
from archspec.drawing.plan.opening import collapse_plan, opened_nodes
from archspec.drawing.plan.plan import Node, Plan, RoleShare
from archspec.drawing.svg.paint import Coloring, Paint
from archspec.drawing.svg.svg import svg
from archspec.drawing.svg.theme import THEMES
from archspec.ir.index_ranges import dimensions
from archspec.ir.module import gc_paused
from archspec.ir.structure.parts import ExpertsFacts, Part
from archspec.pipeline.model import Model, get_compilation


def build_plan(model: Model, *, fold: bool = True) -> Plan:
    """Return the plan of a model's picture; with `fold`, layers that repeat are drawn once."""
    compilation = get_compilation(model)
    params = model.params
    plan = Plan(model.name, model.doc, params.total, params.trainable)
    plan.hyperparameters = model.hyperparameters
    module = compilation.body.module
    entry_labels = module.entry_labels if module is not None else {}
    plan.labels = {name: label for name, label in entry_labels.items() if name in plan.hyperparameters}
    plan.dimensions = dimensions(compilation.body.inputs)
    counts: dict[str | None, int] = {}
    for tensor in model.tensors:
        counts[tensor.role] = counts.get(tensor.role, 0) + tensor.params
    plan.roles = [RoleShare(role, count) for role, count in counts.items()]
    with gc_paused():
        expand(plan, compilation.body, compilation.table, fold)
        if compilation.table.active is not None:
            _describe_experts(plan, model.parts)
    plan.opened = opened_nodes(plan)
    return plan


def _describe_experts(plan: Plan, parts: Iterable[Part]) -> None:
    """Add to each block with routed experts how many they are, and how many of them a token uses."""
    facts = {part.address: part.facts for part in parts if isinstance(part.facts, ExpertsFacts)}
    for node in plan.nodes:
        experts = next((facts[address] for address in node.addresses or () if address in facts), None)
        if experts is not None and node.kind == "block":
            shared = f", shared: {experts.shared} wide" if experts.shared else ""
            annotate(node, f"router: {experts.chosen} of {experts.total} experts{shared}")


def picture(
    model: Model,
    level: str | None = None,
    depth: int | None = None,
    *,
    fold: bool = True,
    coloring: Coloring = "role",
    sizes: Mapping[str, int] | None = None,
    theme: str = "light",
) -> str:
    """Return the picture of a model as SVG.

    `level` and `depth` are those of `Model.graph`; without a level, blocks are open as in a page at first. The colors
    show roles, or with a `coloring` of "params", "flops" or "bytes" shares of the whole model; the last two need the
    `sizes` of all dimensions.
    """
    plan = build_plan(model, fold=fold)
    if depth == 0:
        plan = collapse_plan(plan)
    with gc_paused():
        return svg(plan, find_open_nodes(plan, level, depth), Paint(plan, THEMES[theme], coloring, sizes or {}))


def find_open_nodes(plan: Plan, level: str | None, depth: int | None) -> IsOpen:
    """Return which nodes are open at a level of detail, as in `Model.graph`; without a level, those open at first."""
    if level is None:
        opened = frozenset(plan.opened)
        return lambda node: node.id in opened
    depths = {0: 0}

    def blocks_around(node: Node) -> int:
        """Return the number of blocks around a node, the model included."""
        if node.id not in depths:
            assert node.parent is not None
            above = plan.nodes[node.parent]
            depths[node.id] = blocks_around(above) + (above.kind in ("root", "block"))
        return depths[node.id]

    def is_open(node: Node) -> bool:
        if node.kind == "block":
            return level != "block" or blocks_around(node) < (1 if depth is None else depth)
        return node.kind == "period" or level == "op"

    return is_open
