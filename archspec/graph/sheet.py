"""The nodes and edges of a graph under construction, and the assignment of parameters to nodes."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

from archspec.addresses import join
from archspec.graph.fold import Earlier, Held
from archspec.ir import Body, Leaf, Module, Operand, Type, Weight, find, is_frozen
from archspec.work import NONE, Work

Iterations: TypeAlias = tuple[tuple[int, int], ...]
"""The collapsed runs around a location, as pairs (run, iteration)."""


class Producer(NamedTuple):
    """The producer of a slot: an output of a node, or a stored tensor whose node is created when it is first used."""

    node: str
    output: int
    iterations: Iterations
    tensor: bool = False


class Counted(NamedTuple):
    """The parameters counted on a node, how many of them are frozen, and the nodes that hold its shared parameters."""

    params: int = 0
    frozen: int = 0
    shared: tuple[str, ...] = ()


UNCOUNTED = Counted()

Nodes: TypeAlias = dict[str, dict[str, Any]]
Edges: TypeAlias = dict[tuple[str, str], dict[str, Any]]


class Location(Protocol):
    """The location of a node: the enclosing applications and the iterations of collapsed runs."""

    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def iterations(self) -> Iterations: ...


class Sheet:
    """The nodes, edges and counted parameters of a module.

    `entries` are edges from inputs: (input slot, node, argument, type). `counted` maps each parameter to its node;
    `total` is their sum.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nodes: Nodes = {}
        self.edges: Edges = {}
        self.entries: list[tuple[int, str, str, Type]] = []
        self.counted: dict[str, str] = {}
        self.total = 0
        self._tensors: dict[Body, list[tuple[str, int]]] = {}

    # Nodes, edges, parameters

    def node(
        self,
        name: str,
        kind: str,
        type: str,
        counted: Counted,
        types: tuple[Type | None, ...],
        path: tuple[str, ...],
        source: str,
        address: str | None = None,
        work: Work = NONE,
    ) -> dict[str, Any]:
        """Add a node and return its attributes, which `Model.graph` describes."""
        first = types[0]
        data: dict[str, Any] = {
            "kind": kind,
            "type": type,
            "params": counted.params,
            "macs": work.macs,
            "flops": work.flops,
            "elementwise": work.elementwise,
            "shape": first.shape if first is not None else None,
            "path": path,
            "source": source,
        }
        if len(types) > 1:
            data["shapes"] = tuple([t.shape if t is not None else None for t in types])
        if address is not None:
            data["address"] = address
        if counted.frozen:
            data["frozen"] = counted.frozen
        if counted.shared:
            data["shared_with"] = counted.shared
        self.nodes[name] = data
        return data

    def edge(self, producer: Producer | None, node: str, argument: str, type: Type, location: Location) -> None:
        """Add an edge from a producer to an argument of a node, which is at `location`."""
        if producer is None:
            return
        source = producer.node
        if source in OUTSIDE:
            self.entries.append((OUTSIDE[source], node, argument, type))
            return
        if producer.tensor:
            source = self._weight(producer, location.path)
        elif producer.iterations != location.iterations and _is_earlier_iteration(
            producer.iterations, location.iterations
        ):
            return
        edge = self.edges.get((source, node))
        if edge is None:
            self.edges[source, node] = {"shape": type.shape, "uses": [(producer.output, argument)]}
        elif (producer.output, argument) not in edge["uses"]:
            edge["uses"].append((producer.output, argument))

    def _weight(self, producer: Producer, path: tuple[str, ...]) -> str:
        """Return the node of a stored tensor that a body reads directly, creating it if necessary."""
        name = producer.node
        if name not in self.nodes:
            weight = _within(self.module, name)
            counted = self._charge(name, weight.size, name, UNCOUNTED) if weight.kind == "param" else UNCOUNTED
            self.node(name, weight.kind, weight.type.dtype, counted, (weight.type,), path, weight.span.place)
        return name

    def count(self, body: Body, prefix: str, node: str) -> Counted:
        """Count the parameters of a node that applies `body`."""
        counted = UNCOUNTED
        for name, size in self._reads(body):
            counted = self._charge(prefix + name, size, node, counted)
        return counted

    def _charge(self, name: str, size: int, node: str, counted: Counted) -> Counted:
        name = self.module.aliases.get(name, name)
        holder = self.counted.get(name)
        if holder is None:
            self.counted[name] = node
            self.total += size
            frozen = size if is_frozen(self.module, name) else 0
            return counted._replace(params=counted.params + size, frozen=counted.frozen + frozen)
        if holder == node or holder in counted.shared:
            return counted
        return counted._replace(shared=(*counted.shared, holder))

    def holders(self, body: Body, prefix: str) -> list[list[Held]]:
        """Return where the parameters of each call of a body will be counted, if the body is applied at `prefix`."""
        found: list[list[Held]] = []
        earlier: dict[str, Earlier] = {}
        own = {slot: prefix + name for name, slot in body.weights}
        for position, call in enumerate(body.calls):
            held: list[Held] = []
            for relative, _ in self._reads(call.body) if call.body is not None and call.address else ():
                name = f"{prefix}{call.address}.{relative}"
                name = self.module.aliases.get(name, name)
                at = self.counted.get(name) or earlier.get(name)
                held.append(Held(is_frozen(self.module, name), at))
                if at is None:
                    earlier[name] = Earlier(position, relative)
            for _, operand in call.inputs:  # a tensor that is read directly has a node of its own
                if isinstance(operand, int) and operand in own:
                    name = self.module.aliases.get(own[operand], own[operand])
                    earlier.setdefault(name, Earlier(position, own[operand]))
            found.append(held)
        return found

    def _reads(self, body: Body) -> list[tuple[str, int]]:
        """Return the parameters that a body reads, in program order, with their sizes."""
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
                    found.setdefault(join(call.address, name), size)
        for _, operand in body.outputs:
            self._read(operand, own, body, found)
        self._tensors[body] = list(found.items())
        return self._tensors[body]

    def _read(self, operand: Operand, own: dict[int, str], body: Body, found: dict[str, int]) -> None:
        if isinstance(operand, int) and operand in own:
            name = own[operand]
            weight = _within(body.module, name)
            if weight.kind == "param":
                found.setdefault(name, weight.size)

    def unused(self, module: Module, prefix: str) -> None:
        """Add nodes for parameters that the spec marks `unused`."""
        for address, member in module.members.items():
            name = prefix + address
            if isinstance(member.target, Module):
                self.unused(member.target, name + ".")
            elif member.target.kind == "param" and name not in self.module.aliases and name not in self.counted:
                weight = member.target
                self.counted[name] = name
                self.total += weight.size
                counted = Counted(weight.size, weight.size if is_frozen(self.module, name) else 0)
                data = self.node(name, "param", weight.type.dtype, counted, (weight.type,), (), weight.span.place)
                data["unused"] = True


def _within(module: Module | None, name: str) -> Weight:
    found = find(module, name) if module is not None else None
    assert isinstance(found, Leaf)
    return found.weight


def _is_earlier_iteration(producer: Iterations, here: Iterations) -> bool:
    iterations = dict(here)
    return any(iterations.get(run, iteration) != iteration for run, iteration in producer)


def outside(slot: int) -> str:
    """Return the placeholder name for the producer of an input."""
    name = f"\0{slot}"
    OUTSIDE[name] = slot
    return name


OUTSIDE: dict[str, int] = {}
"""The input of each placeholder name."""
