"""The nodes and edges of a graph under construction, and the assignment of parameters to nodes."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

from archspec.addresses import join
from archspec.ir import Body, Leaf, Module, Operand, Type, Weight, find
from archspec.work import NONE, Work

Iterations: TypeAlias = tuple[tuple[int, int], ...]
"""The collapsed runs around a location, as pairs (run, iteration)."""


class Producer(NamedTuple):
    """The producer of a slot: an output of a node, or a stored tensor whose node is created when it is first used."""

    node: str
    output: int
    iterations: Iterations
    tensor: bool = False


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
        params: int,
        types: tuple[Type | None, ...],
        path: tuple[str, ...],
        source: str,
        address: str | None = None,
        shared: tuple[str, ...] = (),
        work: Work = NONE,
    ) -> dict[str, Any]:
        """Add a node and return its attributes, which `Model.graph` describes."""
        first = types[0]
        data: dict[str, Any] = {
            "kind": kind,
            "type": type,
            "params": params,
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
        if shared:
            data["shared_with"] = shared
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
            params, shared = (0, ())
            if weight.kind == "param":
                params, shared = self._charge(name, weight.size, name, ())
            self.node(name, weight.kind, weight.type.dtype, params, (weight.type,), path, weight.span.place)
            if shared:
                self.nodes[name]["shared_with"] = shared
        return name

    def count(self, body: Body, prefix: str, node: str) -> tuple[int, tuple[str, ...]]:
        """Return the parameter count of a node that applies `body`, and the nodes that hold its shared parameters."""
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
                data = self.node(name, "param", weight.type.dtype, weight.size, (weight.type,), (), weight.span.place)
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
