"""Traversal of a body: calls become nodes, and repeated modules are copied from a template or collapsed."""

from __future__ import annotations

from typing import NamedTuple

from archspec.addresses import prefixes, relative
from archspec.graph.fold import Run, runs
from archspec.graph.sheet import OUTSIDE, UNCOUNTED, Edges, Iterations, Nodes, Producer, Sheet, outside
from archspec.ir import Body, Call, Constant, Module, Type, find, is_frozen
from archspec.source import fail
from archspec.work import call_work, work_of

OPENS = {"layer": {"block"}, "block": {"block"}, "op": {"block", "layer", "fn"}}
"""The kinds of definitions whose contents are shown, by level."""

WHOLE = "#model"
"""The node of a whole model; no address has this name."""

LARGEST_KEPT = 20_000
"""The maximum number of nodes of a graph or template that is cached with its body."""


class Scope(NamedTuple):
    """An application of a body during the traversal.

    `prefix` precedes relative addresses; `shown` is the same prefix in names (with `*` for a collapsed number). `name`
    is the name of the application, and `path` holds the names of the enclosing ones.
    """

    body: Body
    prefix: str
    shown: str
    name: str
    path: tuple[str, ...]
    slots: list[Producer | None]
    numbers: dict[str, int]
    depth: int
    iterations: Iterations
    repeat: int


class Template(NamedTuple):
    """The nodes and edges of a body with relative names, to be copied for each application.

    `entries` are the edges from inputs: (input slot, node, argument, type). `outputs` are the producers of the outputs;
    an input returned unchanged has a placeholder from `outside`. `tensors` maps the counted parameters to their nodes.
    """

    nodes: Nodes
    edges: Edges
    entries: list[tuple[int, str, str, Type]]
    outputs: list[Producer | None]
    tensors: dict[str, str]
    applications: dict[str, int]
    blocks: dict[str, str]
    total: int


class Walker:
    """Traversal of a body in program order. Blocks applied more than once are copied from templates."""

    def __init__(self, body: Body, level: str, depth: int | None, fold: bool) -> None:
        assert body.module is not None
        self.body = body
        self.module: Module = body.module
        self.sheet = Sheet(self.module)
        self.level = level
        self.depth = depth if level == "block" else None
        self.fold = fold
        self.blocks: dict[str, str] = {}
        self.applications: dict[str, int] = {}
        self._runs = 0
        self._not_copied = _with_outer_ties(self.module)

    def template(self) -> Template:
        """Return the body as a template."""
        body = self.body
        slots: list[Producer | None] = [None] * len(body.types)
        for slot in range(len(body.inputs)):
            slots[slot] = Producer(outside(slot), 0, ())
        self._walk(Scope(body, "", "", "", (), slots, {}, 0, (), 1))
        outputs = [slots[o] for _, o in body.outputs if isinstance(o, int)]
        below = {node: node if node.startswith("#") else f".{node}" for node in self.sheet.nodes}
        for data in self.sheet.nodes.values():
            data["path"] = tuple([f".{part}" for part in data["path"]])
            if "shared_with" in data:
                data["shared_with"] = tuple([below[node] for node in data["shared_with"]])
        return Template(
            {below[node]: data for node, data in self.sheet.nodes.items()},
            {(below[a], below[b]): data for (a, b), data in self.sheet.edges.items()},
            [(slot, below[node], argument, type) for slot, node, argument, type in self.sheet.entries],
            [_renamed(p, below) for p in outputs],
            {tensor: below[node] for tensor, node in self.sheet.counted.items()},
            self.applications,
            {f".{block}": type for block, type in self.blocks.items()},
            self.sheet.total,
        )

    def build(self) -> None:
        body = self.body
        slots: list[Producer | None] = [None] * len(body.types)
        place = self.module.span.place
        for slot, (name, type) in enumerate(body.inputs):
            node = f"input:{name}"
            self.sheet.node(node, "input", type.dtype, UNCOUNTED, (type,), (), place)
            slots[slot] = Producer(node, 0, ())
        scope = Scope(body, "", "", "", (), slots, {}, 0, (), 1)
        if self.depth is not None and self.depth <= 0:
            self._whole(scope, place)
        else:
            self._walk(scope)
        present = [(n, o) for n, o in body.outputs if isinstance(o, int)]
        for i, (name, slot) in enumerate(present):
            node = f"output:{name or ('output' if len(present) == 1 else i)}"
            type = body.types[slot]
            self.sheet.node(node, "output", type.dtype, UNCOUNTED, (type,), (), place)
            self.sheet.edge(slots[slot], node, name or "output", type, scope)
        if self.sheet.total < self.module.total:
            self.sheet.unused(self.module, "")
        if self.sheet.total != self.module.total:
            counts = f"expected {self.module.total:,} parameters in the graph, found {self.sheet.total:,}"
            raise fail("internal", f"{counts}; this is a bug in archspec; please report it")

    def _whole(self, scope: Scope, place: str) -> None:
        """Add the whole model as one node."""
        body = scope.body
        counted = self.sheet.count(body, "", WHOLE)
        types = tuple(body.types[o] for _, o in body.outputs if isinstance(o, int))
        self.sheet.node(WHOLE, body.kind, body.type, counted, types, (), place, "", work_of(body))
        for slot, (name, type) in enumerate(body.inputs):
            self.sheet.edge(scope.slots[slot], WHOLE, name, type, scope)
        for i, (_, slot) in enumerate((n, o) for n, o in body.outputs if isinstance(o, int)):
            scope.slots[slot] = Producer(WHOLE, i, ())

    # Traversal

    def _walk(self, scope: Scope) -> None:
        for name, slot in scope.body.weights:
            if "." in name:  # its owner is not used only as a whole
                self._not_copied.update(prefixes(scope.prefix + name))
            scope.slots[slot] = Producer(scope.prefix + name, 0, scope.iterations, True)
        calls = scope.body.calls
        if not self.fold:
            for call in calls:
                self._call(call, scope, call.address)
            return
        done = 0
        for run in runs(calls, self.sheet.holders(scope.body, scope.prefix)):
            for call in calls[done : run.start]:
                self._call(call, scope, call.address)
            self._run(run, scope)
            done = run.start + run.period * run.iterations
        for call in calls[done:]:
            self._call(call, scope, call.address)

    def _run(self, run: Run, scope: Scope) -> None:
        """Traverse the iterations of a run, with the same nodes for each."""
        self._runs += 1
        numbers, applications = dict(scope.numbers), dict(self.applications)
        calls = scope.body.calls
        for iteration in range(run.iterations):
            scope.numbers.clear()
            scope.numbers.update(numbers)
            self.applications = dict(applications)
            inner = scope._replace(
                iterations=(*scope.iterations, (self._runs, iteration)), repeat=scope.repeat * run.iterations
            )
            for i, shown in enumerate(run.addresses):
                self._call(calls[run.start + iteration * run.period + i], inner, shown)

    def _call(self, call: Call, scope: Scope, shown: str) -> None:
        kind = call.kind
        if call.address and not self._is_member(call, scope):  # deeper: enclosing blocks cannot be copied
            self._not_copied.update(prefixes(scope.prefix + call.address))
        if kind == "layer" or kind == "block":
            name = self._application(scope.shown + shown)
        else:
            number = scope.numbers.get(call.type, 0)
            scope.numbers[call.type] = number + 1
            name = f"{scope.name}#{call.type}.{number}"
        body = call.body
        opened = kind in OPENS[self.level] and (self.depth is None or scope.depth + 1 < self.depth or kind != "block")
        if body is None or not opened:
            self._leaf(call, scope, name, shown)
            return
        if kind == "block":
            self.blocks[name] = call.type
        if (
            kind == "block"
            and not self.fold
            and self._is_member(call, scope)
            and name == scope.prefix + call.address
            and name not in self._not_copied
        ):
            self._copy(call, body, scope, name)
            return
        slots: list[Producer | None] = [None] * len(body.types)
        slot = 0
        for _, operand in call.inputs:
            if isinstance(operand, int):
                slots[slot] = scope.slots[operand]
                slot += 1
        owns = body.module is not None
        inner = Scope(
            body,
            f"{scope.prefix}{call.address}." if owns else scope.prefix,
            f"{scope.shown}{shown}." if owns else scope.shown,
            name,
            (*scope.path, name) if kind == "block" else scope.path,
            slots,
            {},
            scope.depth + 1,
            scope.iterations,
            scope.repeat,
        )
        self._walk(inner)
        first = call.first
        for _, operand in body.outputs:
            if isinstance(operand, int):
                scope.slots[first] = slots[operand]
                first += 1

    def _is_member(self, call: Call, scope: Scope) -> bool:
        """Whether the applied module is a direct member of the body's module."""
        return scope.body.module is not None and call.address in scope.body.module.members

    def _copy(self, call: Call, body: Body, scope: Scope, name: str) -> None:
        """Add a copy of the template of a body at the address `name`, for its first application."""
        template = self._template(body, scope.depth + 1)
        frozen = is_frozen(self.module, name)
        nodes, path = self.sheet.nodes, (*scope.path, name)
        for suffix, data in template.nodes.items():
            copy = data.copy()
            copy["path"] = (*path, *[name + part for part in data["path"]]) if data["path"] else path
            if frozen and data["params"]:
                copy["frozen"] = data["params"]
            if "address" in data:
                copy["address"] = f"{name}.{data['address']}"
            if "shared_with" in data:
                copy["shared_with"] = tuple([name + part for part in data["shared_with"]])
            nodes[name + suffix] = copy
        for (a, b), data in template.edges.items():
            self.sheet.edges[name + a, name + b] = data
        given = [scope.slots[operand] for _, operand in call.inputs if isinstance(operand, int)]
        for slot, node, argument, type in template.entries:
            self.sheet.edge(given[slot], name + node, argument, type, scope)
        for i, producer in enumerate(template.outputs):
            if producer is not None and producer.node in OUTSIDE:
                producer = given[OUTSIDE[producer.node]]
            elif producer is not None:
                producer = producer._replace(node=name + producer.node, iterations=scope.iterations)
            scope.slots[call.first + i] = producer
        for tensor, node in template.tensors.items():
            self.sheet.counted[f"{name}.{tensor}"] = name + node
        for address, count in template.applications.items():
            self.applications[f"{name}.{address}"] = count
        for block, type in template.blocks.items():
            self.blocks[name + block] = type
        self.sheet.total += template.total

    def _template(self, body: Body, depth: int) -> Template:
        left = None if self.depth is None else self.depth - depth
        key = ("template", self.level, left)
        known = body.views.get(key)
        if known is None:
            known = Walker(body, self.level, left, False).template()
            if len(known.nodes) <= LARGEST_KEPT:
                body.views[key] = known
        return known

    def _application(self, address: str) -> str:
        """Return the name of an application: its address, with `@k` for the k-th."""
        count = self.applications.get(address, 0) + 1
        self.applications[address] = count
        return address if count == 1 else f"{address}@{count}"

    def _leaf(self, call: Call, scope: Scope, name: str, shown: str) -> None:
        counted = UNCOUNTED
        address = None
        if call.address:
            address = scope.shown + shown
            assert call.body is not None
            counted = self.sheet.count(call.body, f"{scope.prefix}{call.address}.", name)
        work = call_work(call, scope.body)
        if name in self.sheet.nodes:
            data = self.sheet.nodes[name]
            data["params"] += counted.params
            if counted.frozen:
                data["frozen"] = data.get("frozen", 0) + counted.frozen
            data["macs"] += work.macs
            data["flops"] += work.flops
            data["elementwise"] += work.elementwise
        else:
            data = self.sheet.node(
                name,
                "op" if call.kind == "fn" else call.kind,
                call.type,
                counted,
                call.outputs,
                scope.path,
                call.span.place,
                address,
                work,
            )
            if call.attributes:
                data["hyperparameters"] = dict(call.attributes)
            constants = {name: operand.value for name, operand in call.inputs if isinstance(operand, Constant)}
            if constants:
                data["constants"] = constants
            if self.fold and scope.repeat > 1:
                data["repeat"] = scope.repeat
        types = scope.body.types
        slots = scope.slots
        for argument, operand in call.inputs:
            if isinstance(operand, int):
                self.sheet.edge(slots[operand], name, argument, types[operand], scope)
        first = call.first
        for i in range(sum(1 for t in call.outputs if t is not None)):
            slots[first + i] = Producer(name, i, scope.iterations)


def _renamed(producer: Producer | None, below: dict[str, str]) -> Producer | None:
    """Return a producer with its name in a template; placeholders of inputs keep their names."""
    if producer is None or producer.node in OUTSIDE:
        return producer
    return producer._replace(node=below.get(producer.node, f".{producer.node}"))


def _with_outer_ties(module: Module) -> set[str]:
    """Return the addresses of modules with tensors that an enclosing module ties; these modules cannot be copied."""
    tied: set[str] = set()
    for alias, counted in module.aliases.items():
        ours, theirs = set(prefixes(alias)), set(prefixes(counted))
        tied |= ours ^ theirs
        for outer in ours & theirs:
            inner = find(module, outer)
            known = inner.aliases.get(relative(alias, outer)) if isinstance(inner, Module) else None
            if known != relative(counted, outer):
                tied.add(outer)
    return tied
