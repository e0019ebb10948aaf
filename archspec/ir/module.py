"""The intermediate representation: modules that own tensors, and bodies of applications over values.

Both exist once per distinct set of hyperparameters (and input types) and are shared by all uses: names in them are
relative, and are expanded only on demand.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from archspec.core.addresses import prefixes, relative
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
"""A slot of the body, a constant, or None: an optional input that is absent."""


class Initializer(Record):
    """The initialization of a parameter: `normal`, with arguments (0.02,)."""

    name: str
    arguments: tuple[float, ...]


class ModuleTensor:
    """One tensor of a module. `kind` is "param" or "buffer", which are stored, or "const", which is computed once.

    `value` computes a constant table; `size` counts elements.
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
    """The iterations that the body of a loop stands for.

    `variable` is the name of the loop's index, which has the values `first`, `first + 1`, ..., one in each of so many
    `iterations`. The first `carried` inputs of the body are the outputs of the iteration before, and the outputs of the
    last one are those of the loop. Every further output is collected from all iterations, along a new axis: `axes` has
    one for each.
    """

    variable: str
    first: Dim
    iterations: Dim
    carried: int
    axes: tuple[int, ...]


class Call:
    """One application in a body.

    `kind` is "op", "fn", "layer", "block" or "loop"; `type` the operation's or definition's name; `address` that of
    the module applied, relative to the body's own ("" for any other kind). `inputs` pairs argument names with operands
    in order; `attributes` are an operation's static arguments; `outputs` the types of what it yields (None where
    absent), which fill the body's slots from `first` on. `origin` is the call that this one is a copy of, in a body
    whose module is merged into that of this one.
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
        """Return the same application in a body where the values of its slots have others."""
        inputs = tuple([(name, slots[o] if isinstance(o, int) else o) for name, o in self.inputs])
        first = slots.get(self.first, 0)  # 0: it yields nothing
        kind, type, address = self.kind, self.type, self.address
        call = Call(kind, type, address, self.body, inputs, self.attributes, self.outputs, first, self.span)
        call.origin = origin
        return call


class Body:
    """The computation of a definition for given hyperparameters and input types.

    `inputs` are (name, type) of those given, in slots 0, 1, ...; `weights` are (relative tensor name, slot) for each
    stored tensor that is read directly in this body; `types` has the type of every slot; `outputs` are (name, operand),
    with None for `none`, and `results` their types. `module` is the module (None for a function). `unused` are the
    relative names of its tensors that are not read here; `size` counts the operations after full expansion. `discarded`
    are the slots that the spec assigns to `_`. `loop` is set if the body is one iteration of a loop, and stands for all
    of them.
    """

    def __init__(self, kind: str, type: str, module: Module | None) -> None:
        self.kind = kind
        self.type = type
        self.module = module
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
        self.views: dict[object, Any] = {}

    def named_outputs(self) -> dict[str, int]:
        """Return the slots of the outputs that are present, by name: `output` for a single one, otherwise its number.

        A name in the spec takes precedence over both.
        """
        present = [(name, slot) for name, slot in self.outputs if isinstance(slot, int)]
        single = "output" if len(present) == 1 else ""
        return {name or single or str(i): slot for i, (name, slot) in enumerate(present)}


class Module:
    """A layer or block with its hyperparameters: the owner of tensors and modules.

    `members` maps relative addresses, in program order, to modules and weights. `aliases` maps each relative tensor
    name that a `tie` anywhere inside made another name of a tensor to the name that is counted. `roles` pairs
    relative address prefixes with roles, the definition's own role under "". `total` and `frozen` count parameters,
    tied ones once; `tensors` counts names, of all kinds, and `characters` those in them. `absent` are the addresses
    that the hyperparameters leave out, "" for a merged module. `merged` are modules whose members are also those of
    this one, under the same addresses, by the location where they are declared.
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
        self.total = 0
        self.frozen = 0
        self.tensors = 0
        self.characters = 0


class Member(Record):
    """A module or tensor that is owned: `frozen` freezes everything in it, `unused` means that it need not be used."""

    target: Module | ModuleTensor
    frozen: bool
    unused: bool
    span: Span


class LocatedTensor(Record):
    """A tensor at an address; `frozen` includes the enclosing modules."""

    weight: ModuleTensor
    frozen: bool


def find_member(module: Module, address: str) -> Module | LocatedTensor | None:
    """Return the module or tensor at a relative address, at any depth; None if there is none."""
    frozen = False
    for member, rest in enclosing_members(module, address):
        frozen = frozen or member.frozen
        if not rest:
            return LocatedTensor(member.target, frozen) if isinstance(member.target, ModuleTensor) else member.target
    return None


def enclosing_member(module: Module, address: str) -> str | None:
    """Return the address of the member that is or contains a relative address; None if there is none."""
    if address in module.members:
        return address
    return next((outer for outer in prefixes(address) if outer in module.members), None)


def is_frozen(module: Module, address: str) -> bool:
    """Whether a relative address is frozen, itself or by an enclosing module."""
    return any(member.frozen for member, _ in enclosing_members(module, address))


def enclosing_members(module: Module, address: str) -> Iterator[tuple[Member, str]]:
    """Yield the members that are or contain a relative address, outermost first, and the address relative to each."""
    while (own := enclosing_member(module, address)) is not None:
        member, address = module.members[own], relative(address, own)
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


def canonical_name(module: Module, address: str) -> str:
    """Return the name under which the tensor at `address` is counted; aliases on the way are mapped directly to it."""
    aliases = module.aliases
    way: list[str] = []
    while address in aliases:
        way.append(address)
        address = aliases[address]
    for alias in way[:-1]:
        aliases[alias] = address
    return address


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause garbage collection: a compilation creates many objects that all stay alive, and searching them repeatedly
    would dominate its time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
