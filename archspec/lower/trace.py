"""What the expressions of a model's definitions came to, in every use of them: for translating definitions as written.

A compiled body says what one instance computes; the text says what a definition computes. Both together say which
choices a model settles, and which values are tensors of what type.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

from archspec.ir import Body, Module, Type, Weight, find, leaves
from archspec.lower.compile import compile_model
from archspec.lower.flow import Flow, Given, Target, body_of
from archspec.lower.own import Owner
from archspec.lower.program import OverBudget, Program
from archspec.lower.units import Definition, Unit
from archspec.lower.values import DYNAMIC, POISON, Owned, Several, Tensor, key_of
from archspec.source import Report
from archspec.syntax import tree

MOST_OPTIONAL = 6
"""Optional inputs of a model of which every choice is tried."""


class Seen:
    """The values that one expression had: the types of tensors, and static values (None for what was absent)."""

    __slots__ = ("statics", "types")

    def __init__(self) -> None:
        self.types: dict[Type, None] = {}
        self.statics: dict[Any, Any] = {}

    def add(self, value: Any) -> None:
        if value.__class__ is Tensor:
            self.types[value.type] = None
        elif value.__class__ is not Several and value.__class__ is not Owned:
            self.statics[key_of(value)] = value


class Use(NamedTuple):
    """One instance of a definition: its hyperparameters, what it owns, what its inputs are given, what it computes."""

    values: dict[str, Any]
    module: Module | None
    given: tuple[Given, ...]
    body: Body


class Trace:
    """`seen` is by the identity of a node of a syntax tree; `uses` by definition, a definition after those it uses.

    `definitions` says which definition a module is an instance of. `root` is the model's own definition. `owned` are
    the modules and tensors that a statement or expression declared, each once, by the identity of its node; nodes in
    exclusive branches may declare one address. `ties` are the ties that were made, by the identity of their
    nodes: whether the alias had no other name yet in any of them. `given` are the root's hyperparameters that do not
    have their defaults.
    """

    def __init__(self, root: Definition, given: frozenset[str]) -> None:
        self.root = root
        self.given = given
        self.seen: dict[int, Seen] = {}
        self.uses: dict[Definition, list[Use]] = {}
        self.definitions: dict[Module, Definition] = {}
        self.owned: dict[int, dict[int, Module | Weight]] = {}
        self.ties: dict[int, bool] = {}

    def note(self, node: Any, value: Any) -> None:
        if value is not POISON and value is not DYNAMIC:
            seen = self.seen.get(id(node))
            if seen is None:
                seen = self.seen[id(node)] = Seen()
            seen.add(value)

    def own(self, node: Any, made: Module | Weight) -> None:
        self.owned.setdefault(id(node), {})[id(made)] = made

    def tied(self, module: Module, ties: Iterable[tuple[str, str, tree.Tie]]) -> None:
        """Takes down the ties of a module (alias, counted, node), in the order in which they are made."""
        shared: set[str] = set()  # names of tensors that have several
        for address, member in module.members.items():
            for names in member.target.aliases.items() if isinstance(member.target, Module) else ():
                shared.update(f"{address}.{name}" for name in names)
        for alias, counted, node in ties:
            found = find(module, alias)
            inside = [f".{name}" for name, _ in leaves(found)] if isinstance(found, Module) else [""]
            alone = not any(alias + name in shared for name in inside)
            self.ties[id(node)] = self.ties.get(id(node), True) and alone
            shared.update(address + name for address in (alias, counted) for name in inside)

    def targets(self, node: tree.Own | tree.Param) -> list[Module | Weight]:
        """What a statement or expression declared in all uses: nothing where it is in a branch that is never taken."""
        return list(self.owned.get(id(node), {}).values())

    def truth(self, node: tree.Expr) -> bool | None:
        """The one truth that a condition had wherever it was asked; None if it had both."""
        seen = self.seen.get(id(node))
        values = list(seen.statics.values()) if seen is not None else []
        return values[0] if len(values) == 1 else None


def trace_model(unit: Unit, model: tree.Model, overrides: dict[str, Any]) -> Trace:
    """Compiles a model once more, and keeps what its expressions come to. The model must be known to compile."""
    binding = unit.names[model.callee.text]
    assert isinstance(binding.target, Definition)
    items = model.arguments.items if model.arguments is not None else ()
    written = (item.name or word for item, word in zip(items, binding.target.hyperparameters, strict=False))
    trace = Trace(binding.target, frozenset((*written, *overrides)))

    class Owns(Owner):
        def value(self, expr: tree.Expr) -> Any:
            value = super().value(expr)
            trace.note(expr, value)
            return value

        def run(self) -> None:
            super().run()
            trace.tied(self.module, self.ties)

        def _add(self, address: str | None, made: Module | Weight | None, node: tree.Own | tree.Param) -> None:
            super()._add(address, made, node)
            if made is not None:
                trace.own(node, made)

    class Flows(Flow):
        def __init__(self, program: Program, target: Target) -> None:
            super().__init__(program, target)
            self.target = target

        def run(self, given: tuple[Given, ...]) -> Body | None:
            body = super().run(given)
            if body is not None:
                use = Use(self.target.values, self.target.module, given, body)
                trace.uses.setdefault(self.target.definition, []).append(use)
            return body

        def value(self, expr: tree.Expr) -> Any:
            value = super().value(expr)
            trace.note(expr, value)
            return value

        def step_once(self, step: tree.Step, stream: Any) -> Any:
            value = super().step_once(step, stream)
            trace.note(step, value)
            return value

    program = Program()
    program.begin(Report(), unit.source)
    program.owner, program.flow = Owns, Flows
    compiled = compile_model(program, unit, model, overrides)
    assert compiled is not None
    _trace_options(program, trace)
    trace.definitions = program.definitions
    return trace


def _trace_options(program: Program, trace: Trace) -> None:
    """Applies the model's own definition with some of its optional inputs, which compiling it does with all and none.

    A choice of inputs that it does not take is no use of it.
    """
    every = trace.uses[trace.root][0]  # with all of them
    entries = trace.root.node.inputs
    optional = [i for i, entry in enumerate(entries) if entry.default is not None]
    if not 1 < len(optional) <= MOST_OPTIONAL:
        return
    with suppress(OverBudget):
        for chosen in product((True, False), repeat=len(optional)):
            left_out = {i for i, given in zip(optional, chosen, strict=True) if not given}
            program.report = Report()
            given = tuple([None if i in left_out else g for i, g in enumerate(every.given)])
            body_of(program, Target(trace.root, every.values, every.module), given)
