"""Which blocks of a picture are open at first: as many levels as a reader takes in at once. Models as one box."""

from __future__ import annotations

from archspec.drawing.plan.arrange import arrange
from archspec.drawing.plan.labels import label_children
from archspec.drawing.plan.plan import Contents, Node, Plan, Port, Use, Value

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


# The plan of a whole model as one box, between its inputs and outputs.


def collapse_plan(plan: Plan) -> Plan:
    """Return a plan in which the root has one child for everything but inputs and outputs."""
    found = Plan(plan.model, plan.doc, plan.total, plan.trainable)
    found.hyperparameters, found.dimensions, found.roles = plan.hyperparameters, plan.dimensions, plan.roles
    found.labels = plan.labels
    old = plan.nodes[0]
    root, box = Node(0, None, "root", old.type), Node(1, 0, "block", old.type)
    root.contents, root.title, root.params = Contents(), old.title, old.params
    box.form, box.title, box.name, box.params, box.frozen = "box", plan.model, plan.model, old.params, old.frozen
    for node in (root, box):
        node.macs, node.elementwise, node.bytes = old.macs, old.elementwise, old.bytes
    found.nodes = [root, box]
    ends = [_copied(found, node) for node in plan.nodes if node.kind in ("input", "output")]
    inputs = [node for node in ends if node.kind == "input"]
    outputs = [node for node in ends if node.kind == "output"]
    box.outputs = len(outputs)
    for port, node in enumerate(inputs):
        box.inputs.append(Port(node.title, "top", node.shape or (), node.dtype or ""))
        value = Value(node.id, 0)
        value.uses.append(Use(1, port, "down"))
        root.contents.values.append(value)
    for output, node in enumerate(outputs):
        value = Value(1, output)
        value.uses.append(Use(node.id, 0, "down"))
        root.contents.values.append(value)
    root.contents.children = [*[node.id for node in inputs], 1, *[node.id for node in outputs]]
    label_children(found, [found.nodes[id] for id in root.contents.children])
    arrange(found, root)
    return found


def _copied(plan: Plan, node: Node) -> Node:
    """Add a copy of an input or output of the model to a plan."""
    copy = Node(len(plan.nodes), 0, node.kind, node.type)
    copy.form, copy.title, copy.name, copy.label = node.form, node.title, node.name, node.label
    copy.shape, copy.dtype, copy.source, copy.inputs = node.shape, node.dtype, node.source, [*node.inputs]
    plan.nodes.append(copy)
    return copy
