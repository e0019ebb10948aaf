"""The intermediate representation: modules that own tensors, and bodies of applications over values.

Both exist once per distinct set of hyperparameters (and input types) and are shared by all uses: names in them are
relative, and are expanded only on demand.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

from archspec.core.addresses import join, prefixes, relative
from archspec.core.algebra import Dim, Polynomial
from archspec.core.diagnostics import Span
from archspec.core.record import Record


class Type(Record):
    """The type of a tensor: its shape and "real", "int" or "bool"."""

    shape: tuple[Dim, ...]
    dtype: str = "real"


class Constant(Record):
    """A number (or a symbolic dimension used as one) that is an operand of an operation."""

    value: int | float | Polynomial


Operand: TypeAlias = int | Constant | None
"""A slot of the body, a constant, or None for an absent optional input."""


class Initializer(Record):
    """The initialization of a parameter: `normal`, with arguments (0.02,)."""

    name: str
    arguments: tuple[float, ...]


class ModuleTensor:
    """One tensor of a module. `kind` is "param" or "buffer" for stored tensors, or "const" for a computed one.

    `value` computes a constant; `size` is the number of elements.
    """

    __slots__ = ("frozen", "initial", "kind", "shape", "size", "span", "type", "unused", "value")

    def __init__(
        self,
        kind: str,
        type: Type,
        shape: tuple[int, ...],
        size: int,
        frozen: bool,
        unused: bool,
        initial: Initializer | None,
        span: Span,
    ) -> None:
        self.kind = kind
        self.type = type
        self.shape = shape
        self.size = size
        self.frozen = frozen
        self.unused = unused
        self.initial = initial
        self.value: Body | None = None
        self.span = span


class Loop(Record):
    """The iterations that the body of a loop represents.

    `variable` is the name of the loop's index, with the values `first`, `first + 1`, ... in `iterations` iterations.
    The first `carried` inputs of the body are the first outputs of the previous iteration; those of the last iteration
    are outputs of the loop. Every further output is collected from all iterations along a new axis, listed in `axes`.
    """

    variable: str
    first: Dim
    iterations: Dim
    carried: int
    axes: tuple[int, ...]


class Call:
    """One application in a body.

    `kind` is "op", "fn", "layer", "block" or "loop"; `type` is the name of the operation or definition; `address` is
    the address of the applied module, relative to the body's module ("" for all other kinds). `inputs` pairs argument
    names with operands in order; `attributes` are the static arguments of an operation; `outputs` are the types of the
    results (None for an absent result), which fill the body's slots from `first` on. `origin` is the call in the body
    of a merged module of which this call is a copy.
    """

    __slots__ = ("address", "attributes", "body", "first", "inputs", "kind", "origin", "outputs", "span", "type")

    def __init__(
        self,
        kind: str,
        type: str,
        address: str,
        body: Body | None,
        inputs: tuple[tuple[str, Operand], ...],
        attributes: Mapping[str, object],
        outputs: tuple[Type | None, ...],
        first: int,
        span: Span,
    ) -> None:
        self.kind = kind
        self.type = type
        self.address = address
        self.body = body
        self.inputs = inputs
        self.attributes = attributes
        self.outputs = outputs
        self.first = first
        self.span = span
        self.origin: Call | None = None

    def with_slots(self, slots: Mapping[int, int], origin: Call | None) -> Call:
        """Return a copy of the call for a body in which its values have the slots that `slots` maps to."""
        inputs = tuple([(name, slots[o] if isinstance(o, int) else o) for name, o in self.inputs])
        first = slots.get(self.first, 0)  # 0 for a call without results
        kind, type, address = self.kind, self.type, self.address
        call = Call(kind, type, address, self.body, inputs, self.attributes, self.outputs, first, self.span)
        call.origin = origin
        return call


class Body:
    """The computation of a definition for given hyperparameters and input types.

    `inputs` are (name, type) of the inputs that are present, in slots 0, 1, ...; `weights` are (relative tensor name,
    slot) of the stored tensors that this body reads directly; `types` has the type of every slot; `outputs` are (name,
    operand), with None for `none`, and `results` are their types. `module` is None for a function. `span` is the name
    of the definition, None for a loop. `unused` are the
    relative names of the module's tensors that do not affect an output; `size` is the number of operations after full
    expansion. `discarded` are the slots that the spec assigns to `_`. `loop` is set if the body represents the
    iterations of a loop. `caches` has the cached results of analyses.
    """

    def __init__(self, kind: str, type: str, module: Module | None, span: Span | None) -> None:
        self.kind = kind
        self.type = type
        self.module = module
        self.span = span
        self.inputs: list[tuple[str, Type]] = []
        self.weights: list[tuple[str, int]] = []
        self.types: list[Type] = []
        self.calls: list[Call] = []
        self.outputs: list[tuple[str, Operand]] = []
        self.results: tuple[Type | None, ...] = ()
        self.unused: list[str] = []
        self.discarded: set[int] = set()
        self.size = 0
        self.loop: Loop | None = None
        self.caches: dict[BodyCache[Any, Any], dict[Any, Any]] = {}

    def named_outputs(self) -> dict[str, int]:
        """Return the slots of the outputs that are present, by name.

        An output without a name in the spec is called `output` if there is only one, and by its index otherwise.
        """
        present = [(name, slot) for name, slot in self.outputs if isinstance(slot, int)]
        single = "output" if len(present) == 1 else ""
        return {name or single or str(i): slot for i, (name, slot) in enumerate(present)}


K = TypeVar("K")
V = TypeVar("V")


class BodyCache(Generic[K, V]):
    """The cached results of one analysis of bodies, by key. They live as long as their body."""

    def entries(self, body: Body) -> dict[K, V]:
        """Return the cached results for a body, for reading and adding."""
        return body.caches.setdefault(self, {})


class Module:
    """A layer or block with its hyperparameters: the owner of tensors and modules.

    `members` maps relative addresses, in program order, to modules and tensors. `aliases` maps the relative names of
    tied tensors, in this and all nested modules, to the names under which they are counted. `roles` pairs relative
    address prefixes with roles; "" stands for the definition itself. `labels` maps addresses to labels likewise, and
    `entry_labels` the names of hyperparameters, inputs and outputs. `total` and `frozen` are parameter counts, with
    tied tensors counted once; `tensors` is the number of tensor names of all kinds, `characters` their total length.
    `absent` are the addresses that the hyperparameters exclude, "" for a merged module. `merged` maps locations to the
    modules declared there whose members are also members of this module, under the same addresses.
    """

    def __init__(self, kind: str, type: str, hyperparameters: Mapping[str, object], span: Span) -> None:
        self.kind = kind
        self.type = type
        self.hyperparameters = hyperparameters
        self.span = span
        self.members: dict[str, Member] = {}
        self.absent: set[str] = set()
        self.merged: dict[Span, Module] = {}
        self.aliases: dict[str, str] = {}
        self.roles: list[tuple[str, str]] = []
        self.labels: dict[str, str] = {}
        self.entry_labels: dict[str, str] = {}
        self.total = 0
        self.frozen = 0
        self.tensors = 0
        self.characters = 0


class Member(Record):
    """A member of a module: `frozen` freezes all its tensors, `unused` permits that they are not used."""

    target: Module | ModuleTensor
    frozen: bool
    unused: bool
    span: Span


class LocatedTensor(Record):
    """A tensor at an address; `frozen` includes the enclosing modules."""

    weight: ModuleTensor
    frozen: bool


def find_member(module: Module, address: str) -> Module | LocatedTensor | None:
    """Return the module or tensor at a relative address, at any depth; None if nothing is declared there."""
    frozen = False
    for member, suffix in enclosing_members(module, address):
        frozen = frozen or member.frozen
        if not suffix:
            return LocatedTensor(member.target, frozen) if isinstance(member.target, ModuleTensor) else member.target
    return None


def enclosing_member(module: Module, address: str) -> str | None:
    """Return the address of the direct member that is at or contains a relative address; None if there is none."""
    if address in module.members:
        return address
    return next((prefix for prefix in prefixes(address) if prefix in module.members), None)


def is_frozen(module: Module, address: str) -> bool:
    """Whether the member at a relative address or an enclosing module is frozen."""
    return any(member.frozen for member, _ in enclosing_members(module, address))


def enclosing_members(module: Module, address: str) -> Iterator[tuple[Member, str]]:
    """Yield the members at or around a relative address, outermost first, with the address relative to each."""
    while (prefix := enclosing_member(module, address)) is not None:
        member, address = module.members[prefix], relative(address, prefix)
        yield member, address
        if isinstance(member.target, ModuleTensor):
            return
        module = member.target


def iter_tensors(module: Module, prefix: str = "", frozen: bool = False) -> Iterator[tuple[str, LocatedTensor]]:
    """Yield every tensor of a module with its address, in program order."""
    for address, member in module.members.items():
        name = prefix + address
        if isinstance(member.target, ModuleTensor):
            yield name, LocatedTensor(member.target, frozen or member.frozen)
        else:
            yield from iter_tensors(member.target, name + ".", frozen or member.frozen)


def labels_by_address(module: Module) -> dict[str, str]:
    """Return the labels in a module by address; the outermost label of an address takes precedence."""
    return dict(_labels_by_address(module, {}))


def _labels_by_address(module: Module, cached: dict[Module, dict[str, str]]) -> dict[str, str]:
    labels = cached.get(module)
    if labels is None:
        labels = cached[module] = dict(module.labels)
        for address, member in module.members.items():
            if isinstance(member.target, Module):
                for inner, label in _labels_by_address(member.target, cached).items():
                    labels.setdefault(join(address, inner) if inner else address, label)
    return labels


def canonical_name(module: Module, address: str) -> str:
    """Return the name under which the tensor at `address` is counted, and map all aliases on the path to it."""
    aliases = module.aliases
    path: list[str] = []
    while address in aliases:
        path.append(address)
        address = aliases[address]
    for alias in path[:-1]:
        aliases[alias] = address
    return address


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause garbage collection.

    A compilation creates many objects that all stay alive; repeated traversals of them would dominate its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
