"""What the expressions of a model's definitions came to, in every use of them: for translating definitions as written.

A compiled body says what one instance computes; the text says what a definition computes. Both together say which
choices a model settles, and which values are tensors of what type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from archspec.ir import Body, Module, Type
from archspec.lower.compile import compile_model
from archspec.lower.flow import Flow, Given, Target
from archspec.lower.own import Owner
from archspec.lower.program import Program
from archspec.lower.units import Definition, Unit
from archspec.lower.values import DYNAMIC, POISON, Owned, Several, Tensor, key_of
from archspec.source import Report
from archspec.syntax import tree


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

    `definitions` says which definition a module is an instance of. `root` is the model's own definition.
    """

    def __init__(self, root: Definition) -> None:
        self.root = root
        self.seen: dict[int, Seen] = {}
        self.uses: dict[Definition, list[Use]] = {}
        self.definitions: dict[Module, Definition] = {}

    def note(self, node: Any, value: Any) -> None:
        if value is not POISON and value is not DYNAMIC:
            seen = self.seen.get(id(node))
            if seen is None:
                seen = self.seen[id(node)] = Seen()
            seen.add(value)

    def truth(self, node: tree.Expr) -> bool | None:
        """The one truth that a condition had wherever it was asked; None if it had both."""
        seen = self.seen.get(id(node))
        values = list(seen.statics.values()) if seen is not None else []
        return values[0] if len(values) == 1 else None


def trace_model(unit: Unit, model: tree.Model, overrides: dict[str, Any]) -> Trace:
    """Compiles a model once more, and keeps what its expressions come to. The model must be known to compile."""
    binding = unit.names[model.callee.text]
    assert isinstance(binding.target, Definition)
    trace = Trace(binding.target)

    class Owns(Owner):
        def value(self, expr: tree.Expr) -> Any:
            value = super().value(expr)
            trace.note(expr, value)
            return value

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
    trace.definitions = program.definitions
    return trace
