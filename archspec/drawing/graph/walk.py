"""Traversal of a body: calls become nodes, and repeated modules are copied from a template or collapsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from archspec.core.addresses import prefixes, relative
from archspec.core.diagnostics import internal_error
from archspec.drawing.graph.fold import CallRun, RunFinder
from archspec.drawing.graph.sheet import NO_COUNTS, GraphBuilder, Producer, Scope, Slot
from archspec.ir.fold import passed_through_slot
from archspec.ir.module import Body, BodyCache, Call, Constant, Module, find_member, is_frozen, labels_by_address
from archspec.ir.work import WorkSum

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph
    from archspec.drawing.graph.sheet import NodeData


# Graphs in which blocks are closed: one node for all that is applied in them.


def max_block_depth(graph: AnyGraph) -> int:
    """Return how many blocks are around the innermost nodes of a graph from `Model.graph`."""
    return max((len(path) for _, path in graph.nodes(data="path")), default=0)


def close_blocks(graph: AnyGraph, depth: int) -> AnyGraph:
    """Return a graph in which the blocks with `depth` blocks around them are nodes; its `params` have the same sum."""
    blocks: dict[str, str] = graph.graph.get("blocks", {})
    labels: dict[str, str] = graph.graph.get("labels", {})
    shown: dict[str, str] = {}
    repeats: dict[str, int] = graph.graph.get("repeats", {})
    made = graph.__class__()
    made.graph.update(graph.graph)
    for name in graph:
        data = cast("NodeData", graph.nodes[name])
        path = data["path"]
        if len(path) <= depth:
            shown[name] = name
            made.add_node(name, **data)
            continue
        block = shown[name] = path[depth]
        if block in made:
            _merge_into_block(cast("NodeData", made.nodes[block]), data)
        else:
            made.add_node(block, **data)
            made.nodes[block].update(kind="block", type=blocks.get(block, ""), path=path[:depth], address=block)
            made.nodes[block].pop("shared_with", None)
            made.nodes[block].pop("repeat", None)
            made.nodes[block].pop("label", None)
            if block in labels:
                made.nodes[block]["label"] = labels[block]
            if block in repeats:
                made.nodes[block]["repeat"] = repeats[block]
    for source, target, data in graph.edges(data=True):
        a, b = shown[source], shown[target]
        if a != b and not made.has_edge(a, b):
            made.add_edge(a, b, **data)
        if a != b and a != source:
            made.nodes[a]["shape"] = data["shape"]
    return made


def _merge_into_block(block: NodeData, inner: NodeData) -> None:
    """Add what is inside a block to its node."""
    role = inner.get("role")
    if inner["params"] and role != block.get("role"):
        block.pop("role", None)
        if role is not None and not block["params"]:
            block["role"] = role
    block["params"] += inner["params"]
    if "frozen" in block or "frozen" in inner:
        block["frozen"] = block.get("frozen", 0) + inner.get("frozen", 0)


EXPANDED_KINDS = {"layer": {"block"}, "block": {"block"}, "op": {"block", "layer", "fn"}}
"""The kinds of definitions whose contents are shown, by level."""

MODEL_NODE = "#model"
"""The node of a whole model; no address has this name."""

MAX_CACHED_NODES = 20_000
"""The maximum number of nodes of a graph or template that is cached with its body."""

_TRAVERSALS: BodyCache[tuple[str, int | None, bool, bool], GraphTraversal] = BodyCache()


def traverse(
    body: Body, level: str, depth: int | None, fold: bool = False, *, template: bool = False
) -> GraphTraversal:
    """Return the traversal of a whole model, or of a body as a template."""
    cached, key = _TRAVERSALS.entries(body), (level, depth, fold, template)
    walker = cached.get(key)
    if walker is None:
        assert body.module is not None
        walker = GraphTraversal(body.module, level, depth, fold)
        if template:
            walker.walk_template(body)
        else:
            walker.walk_model(body)
        if len(walker.sheet.nodes) <= MAX_CACHED_NODES:
            cached[key] = walker
    return walker


class GraphTraversal:
    """Traversal of a body in program order, which adds its nodes and edges to `sheet`.

    `blocks` maps the name of each application of a block to its type, `repeats` to how often it is applied if it is
    drawn once, and `applications` each address to the number of its applications. `labels` are those of nodes, blocks
    and the addresses around them, None if what is drawn once has several. Blocks that are applied more than
    once are copied from a template: the traversal of their body alone, whose names are relative to the block. `outputs`
    are the producers of a template's outputs.
    """

    def __init__(self, module: Module, level: str, depth: int | None, fold: bool) -> None:
        self.module = module
        self.sheet = GraphBuilder(self.module)
        self.level = level
        self.depth = depth if level == "block" else None
        self.fold = fold
        self.blocks: dict[str, str] = {}
        self.repeats: dict[str, int] = {}
        self.applications: dict[str, int] = {}
        self.labels: dict[str, str | None] = {}
        self._label_of = labels_by_address(module)
        self.works = WorkSum()
        self.outputs: list[Slot] = []
        self._not_copied = _modules_with_outer_ties(self.module)

    def walk_template(self, body: Body) -> None:
        """Add the nodes of a body without those of its inputs and outputs."""
        scope = Scope(body, _slots(body, range(len(body.inputs))), {})
        self._walk(scope)
        self.outputs = _outputs(scope)

    def walk_model(self, body: Body) -> None:
        """Add the nodes of a whole model."""
        place = self.module.span.location
        scope = Scope(body, _slots(body, [Producer(f"input:{name}", 0) for name, _ in body.inputs]), {})
        entry_labels = self.module.entry_labels
        for name, type in body.inputs:
            self.sheet.node(f"input:{name}", "input", type.dtype, (type,), place)
            self._add_label(f"input:{name}", entry_labels.get(name))
        if self.depth is not None and self.depth <= 0:
            self._whole(scope)
        else:
            self._walk(scope)
        for name, slot in body.named_outputs().items():
            node, type = f"output:{name}", body.types[slot]
            self.sheet.node(node, "output", type.dtype, (type,), place)
            self._add_label(node, entry_labels.get(name))
            argument = "output" if name.isdigit() else name  # one of several without a name
            self.sheet.edge(scope.slots[slot], node, argument, 0, type, scope)
        self.sheet.add_unused()
        if self.sheet.total != self.module.total:
            counts = f"expected {self.module.total:,} parameters in the graph, found {self.sheet.total:,}"
            raise internal_error(counts)

    def _whole(self, scope: Scope) -> None:
        """Add the whole model as one node."""
        body = scope.body
        outputs = body.named_outputs().values()
        types = tuple(body.types[slot] for slot in outputs)
        counted = self.sheet.count(body, "", MODEL_NODE)
        place = self.module.span.location
        self.sheet.node(MODEL_NODE, body.kind, body.type, types, place, (), counted, self.works.body(body, ()), "")
        for slot, (name, type) in enumerate(body.inputs):
            self.sheet.edge(scope.slots[slot], MODEL_NODE, name, slot, type, scope)
        for i, slot in enumerate(outputs):
            scope.slots[slot] = Producer(MODEL_NODE, i)

    def _walk(self, scope: Scope) -> None:
        for name, slot in scope.body.weights:
            if "." in name:  # its owner is not used only as a whole
                self._not_copied.update(prefixes(scope.prefix + name))
            scope.slots[slot] = Producer(scope.shown + name, 0, scope.iterations, scope.prefix + name)
            self._add_label(scope.shown + name, self._label_of.get(scope.prefix + name))
        calls = scope.body.calls
        done = 0
        runs: list[CallRun] = []
        if self.fold:
            origins = self.works.origins.slots(scope.body, scope.inputs)
            works = [self.works.call(call, scope.body, origins) for call in calls]
            runs = RunFinder(calls, self.sheet.parameter_uses(scope.body, scope.prefix), works).find()
        for run in runs:
            for call in calls[done : run.start]:
                self._call(call, scope, call.address)
            self._run(run, scope)
            done = run.start + run.period * run.iterations
        for call in calls[done:]:
            self._call(call, scope, call.address)

    def _run(self, run: CallRun, scope: Scope) -> None:
        """Traverse the iterations of a run, with the same nodes for each."""
        own = object()
        numbers, applications = dict(scope.numbers), dict(self.applications)
        for iteration in range(run.iterations):
            scope.numbers.clear()
            scope.numbers.update(numbers)
            self.applications = dict(applications)
            inner = scope._replace(
                iterations=(*scope.iterations, (own, iteration)), repeat=scope.repeat * run.iterations
            )
            for i, shown in enumerate(run.addresses):
                self._call(scope.body.calls[run.start + iteration * run.period + i], inner, shown)

    def _call(self, call: Call, scope: Scope, shown: str) -> None:
        kind, body = call.kind, call.body
        unchanged = passed_through_slot(call) if self.level != "op" else None
        if unchanged is not None:
            scope.slots[call.first] = scope.slots[unchanged]
            return
        members = scope.body.module.members if scope.body.module is not None else {}
        if call.address and call.address not in members:  # deeper: enclosing blocks cannot be copied
            self._not_copied.update(prefixes(scope.prefix + call.address))
        if kind == "layer" or kind == "block":
            name = self._application(scope.shown + shown)
        else:
            number = scope.numbers.get(call.type, 0)
            scope.numbers[call.type] = number + 1
            name = f"{scope.name}#{call.type}.{number}"
        opened = kind in EXPANDED_KINDS[self.level] and (
            self.depth is None or scope.depth + 1 < self.depth or kind != "block"
        )
        if call.address and self._label_of:
            self._add_labels(scope, call.address, shown, name)
        given = [scope.slots[operand] for _, operand in call.inputs if isinstance(operand, int)]
        is_first = name == scope.prefix + call.address
        origins = self.works.origins.slots(scope.body, scope.inputs)
        inputs = self.works.origins.inputs(call, origins) if body is not None else ()
        if opened and kind == "block":
            self.blocks[name] = call.type
            if scope.repeat > 1:
                self.repeats[name] = scope.repeat
        if body is None or not opened:
            outputs = self._add_call_node(call, scope, name, shown)
        elif kind == "block" and not self.fold and is_first and name not in self._not_copied and not inputs:
            outputs = self._copy(body, given, scope, name)
        else:
            owns = body.module is not None
            inner = scope._replace(
                body=body,
                slots=_slots(body, given),
                numbers={},
                prefix=f"{scope.prefix}{call.address}." if owns else scope.prefix,
                shown=f"{scope.shown}{shown}." if owns else scope.shown,
                name=name,
                path=(*scope.path, name) if kind == "block" else scope.path,
                depth=scope.depth + 1,
                inputs=inputs,
            )
            self._walk(inner)
            outputs = _outputs(inner)
        for slot, output in enumerate(outputs, call.first):
            scope.slots[slot] = output

    def _copy(self, body: Body, given: list[Slot], scope: Scope, name: str) -> list[Slot]:
        """Add a copy of the template of a body for its first application, at `name`; return its outputs."""
        left = None if self.depth is None else self.depth - scope.depth - 1
        template = traverse(body, self.level, left, template=True)
        sheet, path = self.sheet, (*scope.path, name)
        frozen = is_frozen(self.module, name)
        nodes = {node: _copied_name(name, node) for node in template.sheet.nodes}
        for node, data in template.sheet.nodes.items():
            copy = data.copy()
            copy["path"] = (*path, *[f"{name}.{part}" for part in data["path"]]) if data["path"] else path
            if frozen and data["params"]:
                copy["frozen"] = data["params"]
            if "address" in data:
                copy["address"] = f"{name}.{data['address']}"
            if "shared_with" in data:
                copy["shared_with"] = tuple([nodes[node] for node in data["shared_with"]])
            sheet.nodes[nodes[node]] = copy
        for (a, b), edge in template.sheet.edges.items():
            sheet.edges[nodes[a], nodes[b]] = edge
        for slot, node, argument, position, type in template.sheet.entries:
            sheet.edge(given[slot], nodes[node], argument, position, type, scope)
        for tensor, node in template.sheet.counted.items():
            sheet.counted[f"{name}.{tensor}"] = nodes[node]
        sheet.total += template.sheet.total
        for address, count in template.applications.items():
            self.applications[f"{name}.{address}"] = count
        for block, type in template.blocks.items():
            self.blocks[f"{name}.{block}"] = type
        for node in (
            dict.fromkeys((*template.sheet.nodes, *template.blocks, *template.labels)) if self._label_of else ()
        ):
            copied = _copied_name(name, node)
            self._add_label(copied, self._label_of.get(re.sub(r"@\d+", "", copied)))
        return [
            given[output]
            if isinstance(output, int)
            else output and output._replace(node=_copied_name(name, output.node))
            for output in template.outputs
        ]

    def _add_labels(self, scope: Scope, address: str, shown: str, name: str) -> None:
        """Add the labels of an application and of the addresses that contain it."""
        for prefix in prefixes(address):
            if shown.startswith(f"{prefix}."):
                self._add_label(scope.shown + prefix, self._label_of.get(scope.prefix + prefix))
        self._add_label(name, self._label_of.get(scope.prefix + address))

    def _add_label(self, name: str, label: str | None) -> None:
        if label is None and not self._label_of:
            return
        self.labels[name] = label if self.labels.setdefault(name, label) == label else None

    def _application(self, address: str) -> str:
        """Return the name of an application: its address, with `@k` for the k-th."""
        count = self.applications.get(address, 0) + 1
        self.applications[address] = count
        return address if count == 1 else f"{address}@{count}"

    def _add_call_node(self, call: Call, scope: Scope, name: str, shown: str) -> list[Slot]:
        """Add a call as one node, or its parameters and work to the node of another iteration; return its outputs."""
        counted, address = NO_COUNTS, None
        if call.address:
            assert call.body is not None
            address = scope.shown + shown
            counted = self.sheet.count(call.body, f"{scope.prefix}{call.address}.", name)
        work = self.works.call(call, scope.body, self.works.origins.slots(scope.body, scope.inputs))
        data = self.sheet.nodes.get(name)
        if data is None:
            kind = "op" if call.kind in ("fn", "loop") else call.kind
            place = call.span.location
            data = self.sheet.node(name, kind, call.type, call.outputs, place, scope.path, counted, work, address)
            if call.attributes:
                data["hyperparameters"] = dict(call.attributes)
            constants: dict[str, object] = {n: value.value for n, value in call.inputs if isinstance(value, Constant)}
            if constants:
                data["constants"] = constants
            if scope.repeat > 1:
                data["repeat"] = scope.repeat
        else:
            data["params"] += counted.params
            if counted.frozen:
                data["frozen"] = data.get("frozen", 0) + counted.frozen
            data["macs"] += work.macs
            data["flops"] += work.flops
            data["elementwise"] += work.elementwise
        for position, (argument, operand) in enumerate(call.inputs):
            if isinstance(operand, int):
                self.sheet.edge(scope.slots[operand], name, argument, position, scope.body.types[operand], scope)
        present = sum(1 for type in call.outputs if type is not None)
        return [Producer(name, i, scope.iterations) for i in range(present)]


def _slots(body: Body, given: Sequence[Slot]) -> list[Slot]:
    """Return the slots of a body with only its inputs filled."""
    return [*given, *[None] * (len(body.types) - len(given))]


def _outputs(scope: Scope) -> list[Slot]:
    return [scope.slots[operand] for _, operand in scope.body.outputs if isinstance(operand, int)]


def _copied_name(block: str, node: str) -> str:
    """Return the name of a node of a template in a copy."""
    return f"{block}{node}" if node.startswith("#") else f"{block}.{node}"


def _modules_with_outer_ties(module: Module) -> set[str]:
    """Return the addresses of modules with tensors that an enclosing module ties; these modules cannot be copied."""
    tied: set[str] = set()
    for alias, counted in module.aliases.items():
        ours, theirs = set(prefixes(alias)), set(prefixes(counted))
        tied |= ours ^ theirs
        for outer in ours & theirs:
            inner = find_member(module, outer)
            known = inner.aliases.get(relative(alias, outer)) if isinstance(inner, Module) else None
            if known != relative(counted, outer):
                tied.add(outer)
    return tied
