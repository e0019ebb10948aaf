"""The nodes and edges of a graph under construction, and the assignment of parameters to nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NotRequired, TypeAlias, TypedDict

from archspec.core.addresses import join
from archspec.core.algebra import Dim
from archspec.drawing.graph.fold import EarlierUse, ParameterUse
from archspec.ir.module import (
    Body,
    LocatedTensor,
    Module,
    ModuleTensor,
    Operand,
    Type,
    find_member,
    is_frozen,
    iter_tensors,
)
from archspec.ir.origins import InputOrigins
from archspec.ir.work import NO_WORK, Quantity, Work

Iterations: TypeAlias = tuple[tuple[object, int], ...]
"""The collapsed runs around a location, as pairs (run, iteration)."""

Shape: TypeAlias = tuple[Dim, ...]

STORED = frozenset(("param", "buffer", "const"))
"""The kinds of the nodes of tensors, each of which is there once, however often it is used."""


class Producer(NamedTuple):
    """The producer of a slot: an output of a node, or a stored tensor whose node is created when it is first used.

    `tensor` is the name of that tensor, and `node` the same with `*` for a collapsed number.
    """

    node: str
    output: int
    iterations: Iterations = ()
    tensor: str = ""


Slot: TypeAlias = Producer | int | None
"""The content of a slot: None if absent, and in a template the position of an input that is returned unchanged."""


class Scope(NamedTuple):
    """An application of a body during the traversal.

    `prefix` precedes relative addresses; `shown` is the same prefix in names (with `*` for a collapsed number). `name`
    is the name of the application, and `path` holds the names of the enclosing ones. `inputs` are the origins of the
    body's inputs.
    """

    body: Body
    slots: list[Slot]
    numbers: dict[str, int]
    prefix: str = ""
    shown: str = ""
    name: str = ""
    path: tuple[str, ...] = ()
    depth: int = 0
    iterations: Iterations = ()
    repeat: int = 1
    inputs: InputOrigins = ()


class NodeCounts(NamedTuple):
    """The parameters counted on a node, how many of them are frozen, and the nodes that hold its shared parameters."""

    params: int = 0
    frozen: int = 0
    shared: tuple[str, ...] = ()


NO_COUNTS = NodeCounts()


class NodeData(TypedDict):
    """The attributes of a node, which `Model.graph` describes."""

    kind: str
    type: str
    params: int
    macs: Quantity
    flops: Quantity
    elementwise: Quantity
    shape: Shape | None
    path: tuple[str, ...]
    source: str
    shapes: NotRequired[tuple[Shape | None, ...]]
    address: NotRequired[str]
    frozen: NotRequired[int]
    role: NotRequired[str]
    label: NotRequired[str]
    tensors: NotRequired[tuple[str, ...]]
    shared_with: NotRequired[tuple[str, ...]]
    hyperparameters: NotRequired[dict[str, object]]
    constants: NotRequired[dict[str, object]]
    repeat: NotRequired[int]
    unused: NotRequired[bool]


class EdgeData(TypedDict):
    """The attributes of an edge. `positions` are those of the arguments in `uses`."""

    shape: Shape
    dtype: str
    uses: list[tuple[int, str]]
    positions: list[int]


class GraphBuilder:
    """The nodes, edges and counted parameters of a module.

    `entries` are edges from inputs: (input, node, argument, position, type). `counted` maps each parameter to its node;
    `total` is their sum. `has_tensors`: nodes have their tensors and roles.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nodes: dict[str, NodeData] = {}
        self.edges: dict[tuple[str, str], EdgeData] = {}
        self.entries: list[tuple[int, str, str, int, Type]] = []
        self.counted: dict[str, str] = {}
        self.total = 0
        self.has_tensors = False
        self._tensors: dict[Body, dict[str, int]] = {}
        self._stored: dict[str, set[str]] = {}  # the tensors of each node

    # Nodes and edges

    def node(
        self,
        name: str,
        kind: str,
        type: str,
        types: tuple[Type | None, ...],
        source: str,
        path: tuple[str, ...] = (),
        counted: NodeCounts = NO_COUNTS,
        work: Work = NO_WORK,
        address: str | None = None,
    ) -> NodeData:
        """Add a node with outputs of these types, and return its attributes."""
        shapes = tuple([t.shape if t is not None else None for t in types])
        data: NodeData = {
            "kind": kind,
            "type": type,
            "params": counted.params,
            "macs": work.macs,
            "flops": work.flops,
            "elementwise": work.elementwise,
            "shape": shapes[0],
            "path": path,
            "source": source,
        }
        if len(shapes) > 1:
            data["shapes"] = shapes
        if address is not None:
            data["address"] = address
        if counted.frozen:
            data["frozen"] = counted.frozen
        if counted.shared:
            data["shared_with"] = counted.shared
        self.nodes[name] = data
        return data

    def edge(self, producer: Slot, node: str, argument: str, position: int, type: Type, scope: Scope) -> None:
        """Add an edge from a producer to an argument of a node in `scope`; `position` is that of the argument."""
        if producer is None:
            return
        if isinstance(producer, int):
            self.entries.append((producer, node, argument, position, type))
            return
        source = producer.node
        if producer.tensor:
            self._tensor_node(source, producer.tensor, _weight(self.module, producer.tensor), scope)
        elif producer.iterations != scope.iterations and _is_earlier_iteration(producer.iterations, scope.iterations):
            return
        edge = self.edges.get((source, node))
        if edge is None:
            self.edges[source, node] = {
                "shape": type.shape,
                "dtype": type.dtype,
                "uses": [(producer.output, argument)],
                "positions": [position],
            }
        elif (producer.output, argument) not in edge["uses"]:
            edge["uses"].append((producer.output, argument))
            edge["positions"].append(position)

    def _tensor_node(self, node: str, name: str, weight: ModuleTensor, scope: Scope | None = None) -> NodeData:
        """Add the node of a stored tensor that a body reads directly, or nothing uses.

        The tensors of other iterations are added to the same node; one that all of them use is not repeated.
        """
        counted = self._count_on_node(name, weight.size, node, NO_COUNTS) if weight.kind == "param" else NO_COUNTS
        names = self._stored.setdefault(node, set())
        names.add(name)
        data = self.nodes.get(node)
        if data is not None:
            data["params"] += counted.params
            if counted.frozen:
                data["frozen"] = data.get("frozen", 0) + counted.frozen
            if len(names) > 1:
                data["repeat"] = len(names)
            return data
        path = scope.path if scope is not None else ()
        return self.node(node, weight.kind, weight.type.dtype, (weight.type,), weight.span.location, path, counted)

    def add_unused(self) -> None:
        """Add nodes for parameters that the spec marks `unused`."""
        for name, (weight, _) in iter_tensors(self.module):
            if weight.kind == "param" and name not in self.module.aliases and name not in self.counted:
                self._tensor_node(name, name, weight)["unused"] = True

    # Parameters

    def count(self, body: Body, prefix: str, node: str) -> NodeCounts:
        """Count the parameters of a node that applies `body`."""
        counted = NO_COUNTS
        for name, size in self._reads(body).items():
            counted = self._count_on_node(prefix + name, size, node, counted)
        return counted

    def _count_on_node(self, name: str, size: int, node: str, counted: NodeCounts) -> NodeCounts:
        name = self.module.aliases.get(name, name)
        holder = self.counted.get(name)
        if holder is None:
            self.counted[name] = node
            self.total += size
            frozen = size if self._is_frozen(name) else 0
            return counted._replace(params=counted.params + size, frozen=counted.frozen + frozen)
        if holder == node or holder in counted.shared:
            return counted
        return counted._replace(shared=(*counted.shared, holder))

    def _is_frozen(self, name: str) -> bool:
        return self.module.frozen > 0 and is_frozen(self.module, name)

    def parameter_uses(self, body: Body, prefix: str) -> list[list[ParameterUse]]:
        """Return where the parameters of each call of a body will be counted, if the body is applied at `prefix`."""
        aliases = self.module.aliases
        found: list[list[ParameterUse]] = []
        earlier: dict[str, EarlierUse] = {}
        own: dict[Operand, str] = {slot: prefix + name for name, slot in body.weights}
        for position, call in enumerate(body.calls):
            held: list[ParameterUse] = []
            for relative in self._reads(call.body) if call.body is not None else ():
                name = f"{prefix}{call.address}.{relative}"
                name = aliases.get(name, name)
                at = self.counted.get(name) or earlier.get(name)
                held.append(ParameterUse(self._is_frozen(name), at))
                if at is None:
                    earlier[name] = EarlierUse(position, relative)
            for _, operand in call.inputs:  # a tensor that is read directly has a node of its own
                if operand in own:
                    name = own[operand]
                    earlier.setdefault(aliases.get(name, name), EarlierUse(position, name))
            found.append(held)
        return found

    def _reads(self, body: Body) -> dict[str, int]:
        """Return the sizes of the parameters that a body reads, in program order."""
        found = self._tensors.get(body)
        if found is None:
            found = self._tensors[body] = {}
            own: dict[Operand, tuple[str, int]] = {}
            for name, slot in body.weights:
                weight = _weight(body.module, name)
                if weight.kind == "param":
                    own[slot] = name, weight.size
            for call in body.calls:
                found.update(_owned_operands(own, call.inputs))
                if call.body is not None:
                    found.update((join(call.address, name), size) for name, size in self._reads(call.body).items())
            found.update(_owned_operands(own, body.outputs))
        return found


def _owned_operands(
    own: dict[Operand, tuple[str, int]], operands: Iterable[tuple[str, Operand]]
) -> list[tuple[str, int]]:
    return [own[operand] for _, operand in operands if operand in own]


def _weight(module: Module | None, name: str) -> ModuleTensor:
    found = find_member(module, name) if module is not None else None
    assert isinstance(found, LocatedTensor)
    return found.weight


def _is_earlier_iteration(producer: Iterations, here: Iterations) -> bool:
    iterations = dict(here)
    return any(iterations.get(run, iteration) != iteration for run, iteration in producer)
