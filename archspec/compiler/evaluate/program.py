"""The state of a compilation: diagnostics, the stack of uses, limits, and compiled modules and bodies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeAlias

from archspec.compiler.evaluate.limits import Limits
from archspec.compiler.evaluate.numbers import StaticArithmetic, is_size, strip_origin
from archspec.compiler.evaluate.values import Value, value_key
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.nodes import BoundArguments
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.addresses import is_below, relative
from archspec.core.algebra import Dim, Polynomial, substitute
from archspec.core.diagnostics import Diagnostic, Note, Report, Source, Span, StopCompilation
from archspec.core.record import Record
from archspec.ir.module import Body, Constant, Module, ModuleTensor, Type
from archspec.ir.ops import Op
from archspec.language.syntax.tree import Located

MAX_CACHED_OBJECTS = 500_000


class Frame(Record):
    """A use of a definition at `node` in `unit`, with its arguments by name."""

    definition: Definition
    unit: Unit
    node: Located
    bound: BoundArguments | None = None

    @property
    def span(self) -> Span:
        return self.unit.span(self.node)

    def argument(self, name: str) -> Span:
        """Return the location of the argument for the input `name`."""
        node = self.bound.argument_node(name) if self.bound is not None else None
        return self.unit.span(node) if node is not None else self.span


InputArgument: TypeAlias = Type | Constant | None
"""The argument of an input: a tensor's type, a number, or None."""


class CompileTarget(Record):
    """A definition to compile with its hyperparameters, and its module unless it is a function."""

    definition: Definition
    values: dict[str, Value]
    module: Module | None

    @property
    def owner(self) -> Hashable:
        """The owner of its bodies: the module, or the function with its hyperparameters."""
        if self.module is not None:
            return self.module
        return (self.definition, *[value_key(value) for value in self.values.values()])


class Range(Record):
    """The range of the index of a loop that is compiled as one iteration, both ends included."""

    first: Dim
    last: Dim

    def endpoint(self, end: int, value: Value, name: str) -> Value:
        """Evaluate a static value at the first (`end` 0) or the last (1) value of the index `name`."""
        return substitute(value, {name: self[end]}) if isinstance(value, Polynomial) else value


class RequirementError(Exception):
    """A reported `require` that does not hold; no other errors of the definition are reported."""


class Observer(Protocol):
    """Receiver of the events of a compilation."""

    def on_value(self, node: nodes.Expr | nodes.Step, value: Value) -> None:
        """The resolved expression or step `node` was evaluated."""
        ...

    def on_applied(
        self,
        caller: Definition | None,
        node: nodes.Apply | nodes.ModuleDeclaration,
        callee: Definition | Op,
        bound: BoundArguments,
    ) -> None:
        """The definition `caller` applied or declared `callee` at the resolved node `node`, with these arguments."""
        ...

    def on_declared(
        self, node: nodes.ModuleDeclaration | nodes.TensorDeclaration, target: Module | ModuleTensor
    ) -> None:
        """The declaration `node` created a module or a tensor."""
        ...

    def on_module(self, module: Module, ties: list[tuple[str, str, nodes.Tie]]) -> None:
        """A module is complete."""
        ...

    def on_body(self, target: CompileTarget, inputs: tuple[InputArgument, ...], body: Body) -> None:
        """A definition was applied to inputs of these types."""
        ...


class Program:
    """Compiled modules and bodies, by definition, hyperparameters and input types, and the state of a compilation.

    `modules` and `bodies` are valid while their files are unchanged. So is `checked`: the files and definitions that
    were checked for errors that do not depend on hyperparameters, and have none; `warnings` are the warnings of a file.
    In the files `untaken`, branches that no model takes are checked, too. All other state belongs to one compilation.
    `numbers` is the arithmetic on hyperparameters: with integers unless some hyperparameters are open.
    `copies` are those of definitions that are compiled once for each `specialization_key` of their hyperparameters.
    """

    def __init__(self, numbers: StaticArithmetic | None = None, observer: Observer | None = None) -> None:
        self.numbers = numbers or StaticArithmetic()
        self.observer = observer
        self.modules: dict[Hashable, Module] = {}
        self.definitions: dict[Module, Definition] = {}
        self.bodies: dict[Hashable, Body | None] = {}
        # By application and callee:
        self.bound: dict[Hashable, tuple[nodes.Expr, Definition | Op, BoundArguments | None]] = {}
        self.checked: set[Unit | Definition] = set()
        self.warnings: dict[Unit, tuple[Diagnostic, ...]] = {}
        self.untaken: set[Unit] = set()
        self.cached_objects = 0  # members and applications in `modules` and `bodies`
        self.copies: dict[Definition, dict[Hashable, Definition]] = {}
        self.begin(Report(), None)

    def begin(self, report: Report, root: Source | None) -> None:
        """Start a compilation whose diagnostics are located, where possible, in the file `root`."""
        if self.cached_objects > MAX_CACHED_OBJECTS:
            self.cached_objects = 0
            self.modules.clear()
            self.definitions.clear()
            self.bodies.clear()
        self.report = report
        self.limits = Limits(report)
        self.root = root
        self.frames: list[Frame] = []
        self.defaults: set[tuple[Definition, str]] = set()  # hyperparameters whose defaults are being evaluated
        self.ranges: dict[str, Range] = {}  # of the indices of enclosing loops, by name
        self.incomplete: set[Module] = set()  # modules with an error in a member
        self.refused: set[Module | None] = set()  # modules with a `require` that does not hold

    def is_incomplete(self, module: Module, address: str) -> bool:
        """Whether a module on the path of an address has a reported error, so that a declaration may be missing."""
        while True:
            if module in self.incomplete or module in self.refused:
                return True
            member = next((a for a in module.members if is_below(address, a)), None)
            target = module.members[member].target if member is not None else None
            if member is None or not isinstance(target, Module):
                return False
            module, address = target, relative(address, member)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        caller: bool = False,
    ) -> None:
        """Report an error at `span`, or at the use of the definition if `span` is not in the compiled file.

        `caller` means that the use is the error, even if the definition is in the compiled file.
        """
        location = span
        if self.frames and (caller or span.source is not self.root):
            frame = next((f for f in reversed(self.frames) if f.span.source is self.root), self.frames[-1])
            location = frame.span
            what = "required by" if code == "require" else "in"
            notes = (*notes, Note(f"{what} `{frame.definition.name}`, used above", span))
        self.report.error(code, message, location, notes=notes, help=help)
        if code == "budget":
            raise StopCompilation

    def specialize(self, definition: Definition, values: dict[str, Value]) -> Definition:
        """Return the copy of a definition for its hyperparameters; itself if it has no copies."""
        copies = self.copies.get(definition)
        if copies is None:
            return definition
        key = specialization_key(values)
        if key not in copies:
            copies[key] = definition.copy()
        return copies[key]

    def count_instance(self, definition: Definition, span: Span) -> None:
        """Count a definition with new hyperparameters or new input types."""
        node = definition.node
        self.limits.count_instance(node.end - node.start, len(self.frames), span)


def specialization_key(values: dict[str, Value]) -> Hashable:
    """Return a key for the hyperparameters that are no sizes: definitions, functions, truth values and the like."""
    return tuple([value_key(strip_origin(value)) for value in values.values() if not is_size(value)])
