"""The plan of a whole model as one box, between its inputs and outputs."""

from __future__ import annotations

from archspec.drawing.plan.arrange import arrange
from archspec.drawing.plan.labels import label_children
from archspec.drawing.plan.plan import Contents, Node, Plan, Port, Use, Value


def collapse_plan(plan: Plan) -> Plan:
    """Return a plan in which the root has one child for everything but inputs and outputs."""
    found = Plan(plan.model, plan.doc, plan.total, plan.trainable)
    found.hyperparameters, found.dimensions, found.roles = plan.hyperparameters, plan.dimensions, plan.roles
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
    copy.form, copy.title, copy.name = node.form, node.title, node.name
    copy.shape, copy.dtype, copy.source, copy.inputs = node.shape, node.dtype, node.source, [*node.inputs]
    plan.nodes.append(copy)
    return copy
