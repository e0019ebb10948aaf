"""From a compiled body to a networkx graph, at the level of layers, blocks or primitive operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from archspec.fold import Run, runs
from archspec.ir import Body, Call, Leaf, Module, Operand, Type, Weight, find, uncollected
from archspec.source import fail

if TYPE_CHECKING:
    from networkx import DiGraph

Rounds: TypeAlias = tuple[tuple[int, int], ...]
"""The folded runs around a place, each with its round: (run, round)."""


class Producer(NamedTuple):
    """What fills a slot: a node and which of its outputs; or a stored tensor whose node is made when it is first
    used.
    """

    node: str
    output: int
    rounds: Rounds
    tensor: bool = False


class Scope(NamedTuple):
    """One application of a body while it is walked: where it is, and how its nodes are called.

    `prefix` goes before relative addresses; `shown` is the same as names show it (a folded number is `*`). `name` is
    that of the application, `path` those around it.
    """

    body: Body
    prefix: str
    shown: str
    name: str
    path: tuple[str, ...]
    slots: list[Producer | None]
    numbers: dict[str, int]
    depth: int
    rounds: Rounds
    repeat: int


Nodes: TypeAlias = dict[str, dict[str, Any]]
Edges: TypeAlias = dict[tuple[str, str], dict[str, Any]]


_OPENS = {"layer": {"block"}, "block": {"block"}, "op": {"block", "layer", "fn"}}
"""What is opened into what it applies, by level."""


class Template(NamedTuple):
    """The nodes and edges of a body, to be stamped wherever it is applied: all names are relative.

    `entries` are the edges that come from outside: (input slot, node, argument, type); `outputs` say what yields each
    output (an input handed through is a node called by `_outside`). `tensors` pairs the parameters counted with their
    nodes.
    """

    nodes: Nodes
    edges: Edges
    entries: list[tuple[int, str, str, Type]]
    outputs: list[Producer | None]
    tensors: dict[str, str]
    applications: dict[str, int]
    blocks: dict[str, str]
    total: int


LARGEST_GRAPH = 400_000
LARGEST_KEPT = 20_000
"""Templates of more nodes are made anew each time rather than kept with their bodies."""


def graph_of(body: Body, level: str = "layer", depth: int | None = None, fold: bool = False) -> DiGraph[str]:
    """The graph of a model's body. See `Model.graph`. Raises ArchError for one of more than LARGEST_GRAPH nodes."""
    import networkx

    size = _size(body, _OPENS[level], None if level != "block" else depth, {})
    if size > LARGEST_GRAPH:
        message = f"this graph has about {size:,} nodes; the limit is {LARGEST_GRAPH:,}"
        raise fail("budget", message, help="ask for blocks with a smaller depth")
    with uncollected():
        nodes, edges, blocks = _parts(body, level, depth, fold)
        graph: DiGraph[str] = networkx.DiGraph(blocks=dict(blocks))
        graph.add_nodes_from(nodes.items())
        graph.add_edges_from(
            [(a, b, {"shape": data["shape"], "uses": [*data["uses"]]}) for (a, b), data in edges.items()]
        )
    return graph


def _parts(body: Body, level: str, depth: int | None, fold: bool) -> tuple[Nodes, Edges, dict[str, str]]:
    key = ("graph", level, depth, fold)
    known: tuple[Nodes, Edges, dict[str, str]] | None = body.views.get(key)
    if known is None:
        builder = _Builder(body, level, depth, fold)
        builder.build()
        known = builder.nodes, builder.edges, builder.blocks
        if len(builder.nodes) <= LARGEST_KEPT:
            body.views[key] = known
    return known


class _Builder:
    """Walks a body once, in program order. What it applies more than once is stamped."""

    def __init__(self, body: Body, level: str, depth: int | None, fold: bool) -> None:
        assert body.module is not None
        self.body = body
        self.module: Module = body.module
        self.level = level
        self.opens = _OPENS[level]
        self.depth = depth if level == "block" else None
        self.fold = fold
        self.nodes: Nodes = {}
        self.edges: Edges = {}
        self.blocks: dict[str, str] = {}
        self.entries: list[tuple[int, str, str, Type]] = []
        self.applications: dict[str, int] = {}
        self.counted: dict[str, str] = {}
        self.total = 0
        self._tensors: dict[Body, list[tuple[str, int]]] = {}
        self._runs = 0
        self._apart = _tied_outside(self.module.aliases)

    def template(self) -> Template:
        """The body as a template."""
        body = self.body
        slots: list[Producer | None] = [None] * len(body.types)
        for slot in range(len(body.inputs)):
            slots[slot] = Producer(_outside(slot), 0, ())
        self._walk(Scope(body, "", "", "", (), slots, {}, 0, (), 1))
        outputs = [slots[o] for _, o in body.outputs if isinstance(o, int)]
        below = {node: node if node.startswith("#") else f".{node}" for node in self.nodes}
        for data in self.nodes.values():
            data["path"] = tuple([f".{part}" for part in data["path"]])
            if "shared_with" in data:
                data["shared_with"] = tuple([below[node] for node in data["shared_with"]])
        return Template(
            {below[node]: data for node, data in self.nodes.items()},
            {(below[a], below[b]): data for (a, b), data in self.edges.items()},
            [(slot, below[node], argument, type) for slot, node, argument, type in self.entries],
            [p._replace(node=below.get(p.node, p.node)) if p is not None else None for p in outputs],
            {tensor: below[node] for tensor, node in self.counted.items()},
            self.applications,
            {f".{block}": type for block, type in self.blocks.items()},
            self.total,
        )

    def build(self) -> None:
        body = self.body
        slots: list[Producer | None] = [None] * len(body.types)
        place = self.module.span.place
        for slot, (name, type) in enumerate(body.inputs):
            node = f"input:{name}"
            self._node(node, "input", type.dtype, 0, (type,), (), place)
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
            self._node(node, "output", type.dtype, 0, (type,), (), place)
            self._edge(slots[slot], node, name or "output", type, scope)
        if self.total < self.module.total:
            self._unused(self.module, "")

    def _whole(self, scope: Scope, place: str) -> None:
        """The whole model as one node."""
        body = scope.body
        params, shared = self._count(body, "", "model")
        types = tuple(body.types[o] for _, o in body.outputs if isinstance(o, int))
        self._node("model", body.kind, body.type, params, types, (), place, "", shared)
        for slot, (name, type) in enumerate(body.inputs):
            self._edge(scope.slots[slot], "model", name, type, scope)
        for i, (_, slot) in enumerate((n, o) for n, o in body.outputs if isinstance(o, int)):
            scope.slots[slot] = Producer("model", i, ())

    # Walking

    def _walk(self, scope: Scope) -> None:
        for name, slot in scope.body.weights:
            scope.slots[slot] = Producer(scope.prefix + name, 0, scope.rounds, True)
        calls = scope.body.calls
        if not self.fold:
            for call in calls:
                self._call(call, scope, call.address)
            return
        done = 0
        for run in runs(calls):
            for call in calls[done : run.start]:
                self._call(call, scope, call.address)
            self._run(run, scope)
            done = run.start + run.period * run.rounds
        for call in calls[done:]:
            self._call(call, scope, call.address)

    def _run(self, run: Run, scope: Scope) -> None:
        """Walks the rounds of a run over the same nodes."""
        self._runs += 1
        numbers, applications = dict(scope.numbers), dict(self.applications)
        calls = scope.body.calls
        for turn in range(run.rounds):
            scope.numbers.clear()
            scope.numbers.update(numbers)
            self.applications = dict(applications)
            inner = scope._replace(rounds=(*scope.rounds, (self._runs, turn)), repeat=scope.repeat * run.rounds)
            for i, shown in enumerate(run.addresses):
                self._call(calls[run.start + turn * run.period + i], inner, shown)

    def _call(self, call: Call, scope: Scope, shown: str) -> None:
        kind = call.kind
        if kind == "layer" or kind == "block":
            name = self._application(scope.shown + shown)
        else:
            number = scope.numbers.get(call.type, 0)
            scope.numbers[call.type] = number + 1
            name = f"{scope.name}#{call.type}.{number}"
        body = call.body
        opened = kind in self.opens and (self.depth is None or scope.depth + 1 < self.depth or kind != "block")
        if body is None or not opened:
            self._leaf(call, scope, name, shown)
            return
        if kind == "block":
            self.blocks[name] = call.type
        if kind == "block" and not self.fold:
            assert scope.body.module is not None
            if call.address not in scope.body.module.members:  # further down: what is there cannot be stamped now
                self._apart.update(_prefixes(name))
            elif name == scope.prefix + call.address and name not in self._apart:
                self._stamp(call, body, scope, name)
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
            scope.rounds,
            scope.repeat,
        )
        self._walk(inner)
        first = call.first
        for _, operand in body.outputs:
            if isinstance(operand, int):
                scope.slots[first] = slots[operand]
                first += 1

    def _stamp(self, call: Call, body: Body, scope: Scope, name: str) -> None:
        """Adds the template of a body under the address `name`, where it is applied for the first time."""
        template = self._template(body, scope.depth + 1)
        nodes, path = self.nodes, (*scope.path, name)
        for suffix, data in template.nodes.items():
            copy = data.copy()
            copy["path"] = (*path, *[name + part for part in data["path"]]) if data["path"] else path
            if "address" in data:
                copy["address"] = f"{name}.{data['address']}"
            if "shared_with" in data:
                copy["shared_with"] = tuple([name + part for part in data["shared_with"]])
            nodes[name + suffix] = copy
        for (a, b), data in template.edges.items():
            self.edges[name + a, name + b] = data
        given = [scope.slots[operand] for _, operand in call.inputs if isinstance(operand, int)]
        for slot, node, argument, type in template.entries:
            self._edge(given[slot], name + node, argument, type, scope)
        for i, producer in enumerate(template.outputs):
            if producer is not None and producer.node in _OUTSIDE:
                producer = given[_OUTSIDE[producer.node]]
            elif producer is not None:
                producer = Producer(name + producer.node, producer.output, scope.rounds)
            scope.slots[call.first + i] = producer
        for tensor, node in template.tensors.items():
            self.counted[f"{name}.{tensor}"] = name + node
        for address, count in template.applications.items():
            self.applications[f"{name}.{address}"] = count
        for block, type in template.blocks.items():
            self.blocks[name + block] = type
        self.total += template.total

    def _template(self, body: Body, depth: int) -> Template:
        left = None if self.depth is None else self.depth - depth
        key = ("template", self.level, left)
        known = body.views.get(key)
        if known is None:
            known = _Builder(body, self.level, left, False).template()
            if len(known.nodes) <= LARGEST_KEPT:
                body.views[key] = known
        return known

    def _application(self, address: str) -> str:
        """The name of an application: its address, with `@k` for the k-th."""
        count = self.applications.get(address, 0) + 1
        self.applications[address] = count
        return address if count == 1 else f"{address}@{count}"

    def _leaf(self, call: Call, scope: Scope, name: str, shown: str) -> None:
        params: int = 0
        shared: tuple[str, ...] = ()
        address = None
        if call.address:
            address = scope.shown + shown
            assert call.body is not None
            params, shared = self._count(call.body, f"{scope.prefix}{call.address}.", name)
        if name in self.nodes:
            self.nodes[name]["params"] += params
        else:
            data = self._node(
                name,
                "op" if call.kind == "fn" else call.kind,
                call.type,
                params,
                call.outputs,
                scope.path,
                call.span.place,
                address,
                shared,
            )
            if self.fold and scope.repeat > 1:
                data["repeat"] = scope.repeat
        types = scope.body.types
        slots = scope.slots
        for argument, operand in call.inputs:
            if isinstance(operand, int):
                self._edge(slots[operand], name, argument, types[operand], scope)
        first = call.first
        for i in range(sum(1 for t in call.outputs if t is not None)):
            slots[first + i] = Producer(name, i, scope.rounds)

    # Nodes, edges, parameters

    def _node(
        self,
        name: str,
        kind: str,
        type: str,
        params: int,
        types: tuple[Type | None, ...],
        path: tuple[str, ...],
        source: str,
        address: str | None = None,
        shared: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        first = types[0]
        data: dict[str, Any] = {
            "kind": kind,
            "type": type,
            "params": params,
            "shape": first.shape if first is not None else None,
            "path": path,
            "source": source,
        }
        if len(types) > 1:
            data["shapes"] = tuple([t.shape if t is not None else None for t in types])
        if address is not None:
            data["address"] = address
        if shared:
            data["shared_with"] = shared
        self.nodes[name] = data
        return data

    def _edge(self, producer: Producer | None, node: str, argument: str, type: Type, scope: Scope) -> None:
        if producer is None:
            return
        source = producer.node
        if source in _OUTSIDE:
            self.entries.append((_OUTSIDE[source], node, argument, type))
            return
        if producer.tensor:
            source = self._weight(producer, scope)
        elif producer.rounds != scope.rounds and _is_earlier_round(producer.rounds, scope.rounds):
            return
        edge = self.edges.get((source, node))
        if edge is None:
            self.edges[source, node] = {"shape": type.shape, "uses": [(producer.output, argument)]}
        elif (producer.output, argument) not in edge["uses"]:
            edge["uses"].append((producer.output, argument))

    def _weight(self, producer: Producer, scope: Scope) -> str:
        """The node of a stored tensor that a body reads itself."""
        name = producer.node
        if name not in self.nodes:
            weight = self._find(name)
            params, shared = (0, ())
            if weight.kind == "param":
                params, shared = self._charge(name, weight.size, name, ())
            self._node(name, weight.kind, weight.type.dtype, params, (weight.type,), scope.path, weight.span.place)
            if shared:
                self.nodes[name]["shared_with"] = shared
        return name

    def _find(self, name: str) -> Weight:
        module = self.module
        while True:
            end = name.find(".")
            while end >= 0 and name[:end] not in module.members:
                end = name.find(".", end + 1)
            member = module.members[name if end < 0 else name[:end]].target
            if isinstance(member, Weight):
                return member
            module, name = member, name[end + 1 :]

    def _count(self, body: Body, prefix: str, node: str) -> tuple[int, tuple[str, ...]]:
        """Parameters that stand on a node which applies `body`, and the nodes that hold the others it uses."""
        params = 0
        shared: tuple[str, ...] = ()
        for name, size in self._reads(body):
            more, shared = self._charge(prefix + name, size, node, shared)
            params += more
        return params, shared

    def _charge(self, name: str, size: int, node: str, shared: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        name = self.module.aliases.get(name, name)
        holder = self.counted.get(name)
        if holder is None:
            self.counted[name] = node
            self.total += size
            return size, shared
        return 0, shared if holder == node or holder in shared else (*shared, holder)

    def _reads(self, body: Body) -> list[tuple[str, int]]:
        """The parameters that a body reads, in program order, with their sizes."""
        known = self._tensors.get(body)
        if known is not None:
            return known
        found: dict[str, int] = {}
        own = {slot: name for name, slot in body.weights}
        for call in body.calls:
            for _, operand in call.inputs:
                self._read(operand, own, body, found)
            if call.body is not None and call.address:
                for name, size in self._reads(call.body):
                    found.setdefault(f"{call.address}.{name}", size)
        for _, operand in body.outputs:
            self._read(operand, own, body, found)
        self._tensors[body] = list(found.items())
        return self._tensors[body]

    def _read(self, operand: Operand, own: dict[int, str], body: Body, found: dict[str, int]) -> None:
        if isinstance(operand, int) and operand in own:
            name = own[operand]
            weight = _within(body.module, name)
            if weight is not None and weight.kind == "param":
                found.setdefault(name, weight.size)

    def _unused(self, module: Module, prefix: str) -> None:
        """Nodes for parameters that nothing reads, which the spec marks `unused`."""
        for address, member in module.members.items():
            name = prefix + address
            if isinstance(member.target, Module):
                self._unused(member.target, name + ".")
            elif member.target.kind == "param" and name not in self.module.aliases and name not in self.counted:
                weight = member.target
                self.counted[name] = name
                data = self._node(name, "param", weight.type.dtype, weight.size, (weight.type,), (), weight.span.place)
                data["unused"] = True


def _within(module: Module | None, name: str) -> Weight | None:
    found = find(module, name) if module is not None else None
    return found.weight if isinstance(found, Leaf) else None


def _is_earlier_round(producer: Rounds, here: Rounds) -> bool:
    turns = dict(here)
    return any(turns.get(run, turn) != turn for run, turn in producer)


def _outside(slot: int) -> str:
    """The name that stands for whatever fills an input."""
    name = f"\0{slot}"
    _OUTSIDE[name] = slot
    return name


_OUTSIDE: dict[str, int] = {}


def _tied_outside(aliases: dict[str, str]) -> set[str]:
    """Addresses of what holds one side of a tie and not the other: their tensors are not theirs alone."""
    apart: set[str] = set()
    for alias, counted in aliases.items():
        apart.update(_prefixes(alias) ^ _prefixes(counted))
    return apart


def _prefixes(address: str) -> set[str]:
    words = address.split(".")
    return {".".join(words[:end]) for end in range(1, len(words) + 1)}


def _size(body: Body, opens: set[str], depth: int | None, known: dict[tuple[Body, int | None], int]) -> int:
    """How many nodes the applications in a body come to."""
    if (body, depth) in known:
        return known[body, depth]
    left = None if depth is None else depth - 1
    size = 0
    for call in body.calls:
        opened = call.body is not None and call.kind in opens and (call.kind != "block" or left is None or left > 0)
        size += _size(call.body, opens, left, known) if opened and call.body is not None else 1
    known[body, depth] = size
    return size
