"""Observations of a compilation: shapes of tensors, values of numbers, and parameters, by expression."""

from __future__ import annotations

from archspec.compiler.evaluate.program import CompileTarget, Frame, InputArgument, Program
from archspec.compiler.evaluate.values import DYNAMIC, POISON, Tensor, Value, value_key
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.core.record import Record, from_values
from archspec.ir.module import Body, Module, ModuleTensor
from archspec.ir.ops import Op


class ObservedDeclaration(Record):
    """A module or tensor that was first declared, and the model it belongs to ("" with the defaults).

    `totals` are the parameters of all that the same line declared.
    """

    what: Module | ModuleTensor
    model: str
    totals: set[int]


class ObservedValue(Record):
    """The values of an expression, and the model that the first belongs to ("" with the defaults).

    `node` is the expression, kept so that no other node has its identity.
    """

    node: nodes.Expr | nodes.Step
    model: str
    values: list[Value]

    @property
    def what(self) -> Value:
        """The value that was observed first."""
        return self.values[0]

    @property
    def different(self) -> int:
        """How many different values were observed."""
        return len({value.type if isinstance(value, Tensor) else value_key(value) for value in self.values})


class Observations:
    """`values` and `made` are by the identity of a resolved node; `callees` are those applied at a node.

    Values are sorted by node when they are needed first, after the diagnostics, which are not to wait for that.
    """

    def __init__(self) -> None:
        self._seen: dict[int, ObservedValue] = {}
        self._pending: list[tuple[nodes.Expr | nodes.Step, Value, Frame | None]] = []
        self.made: dict[int, ObservedDeclaration] = {}
        self.callees: dict[int, dict[Definition | Op, None]] = {}
        self._nodes: list[object] = []  # kept, so that no other node has the identity of one
        self._program: Program | None = None
        self._first: Frame | None = None
        self._name = ""

    def watch(self, program: Program) -> None:
        """The program whose compilation is observed."""
        self._program = program

    def on_value(self, node: nodes.Expr | nodes.Step, value: Value) -> None:
        self._pending.append((node, value, self._outermost()))

    @property
    def values(self) -> dict[int, ObservedValue]:
        """The values of each expression and step."""
        for node, value, frame in self._pending:
            if value is POISON or value is DYNAMIC:
                continue
            seen = self._seen.get(id(node))
            if seen is None:
                self._seen[id(node)] = from_values(ObservedValue, (node, self._model(frame), [value]))
            elif value is not seen.values[-1]:
                seen.values.append(value)
        self._pending.clear()
        return self._seen

    def on_applied(
        self,
        caller: Definition | None,
        node: nodes.Apply | nodes.ModuleDeclaration,
        callee: Definition | Op,
        bound: nodes.BoundArguments,
    ) -> None:
        self.callees.setdefault(id(node), {})[callee] = None
        self._nodes.append(node)

    def on_declared(
        self, node: nodes.ModuleDeclaration | nodes.TensorDeclaration, target: Module | ModuleTensor
    ) -> None:
        first = self.made.get(id(node))
        if first is None:
            first = self.made[id(node)] = ObservedDeclaration(target, self._model(self._outermost()), set())
            self._nodes.append(node)
        first.totals.add(parameters(target))

    def on_module(self, module: Module, ties: list[tuple[str, str, nodes.Tie]]) -> None:
        pass

    def on_body(self, target: CompileTarget, inputs: tuple[InputArgument, ...], body: Body) -> None:
        pass

    def _outermost(self) -> Frame | None:
        """The use of the definition that is compiled for itself."""
        frames = self._program.frames if self._program is not None else None
        return frames[0] if frames else None

    def _model(self, first: Frame | None) -> str:
        """The name of the model that uses a definition."""
        if first is not self._first:
            self._first = first
            self._name = _model_around(first) if first is not None else ""
        return self._name


def _model_around(frame: Frame) -> str:
    """The name of the model whose statement a use is in."""
    models, start = frame.unit.models.items(), frame.node.start
    return next((name for name, model in models if model.start <= start < model.end), "")


def parameters(made: Module | ModuleTensor) -> int:
    """How many parameters a module or tensor has."""
    if isinstance(made, Module):
        return made.total
    return made.size if made.kind == "param" else 0
