"""Observations of a compilation: types of tensors, values of numbers, and parameter counts, by expression."""

from __future__ import annotations

from archspec.compiler.evaluate.program import CompileTarget, Frame, InputArgument, Program
from archspec.compiler.evaluate.values import DYNAMIC, POISON, Tensor, Value, value_key
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.core.record import Record, from_values
from archspec.ir.module import Body, Module, ModuleTensor
from archspec.ir.ops import Op


class ObservedDeclaration(Record):
    """The first module or tensor declared by a node, and the model it belongs to ("" with the defaults).

    `totals` are the parameter counts of all modules or tensors that the node declared.
    """

    first: Module | ModuleTensor
    model: str
    totals: set[int]


class ObservedValue(Record):
    """The values of an expression, and the model that the first belongs to ("" with the defaults).

    `node` is the expression; the reference prevents that a later node gets the same `id`.
    """

    node: nodes.Expr | nodes.Step
    model: str
    values: list[Value]

    @property
    def first(self) -> Value:
        """The value that was observed first."""
        return self.values[0]

    def count_distinct(self) -> int:
        """Return the number of distinct values."""
        return len({value.type if isinstance(value, Tensor) else value_key(value) for value in self.values})


class Observations:
    """An observer of a compilation: values, declarations and callees by the `id` of a resolved node.

    Values are grouped by node on first use, so that the diagnostics are published without that delay.
    """

    def __init__(self) -> None:
        self._values: dict[int, ObservedValue] = {}
        self._pending: list[tuple[nodes.Expr | nodes.Step, Value, Frame | None]] = []
        self.declarations: dict[int, ObservedDeclaration] = {}
        self.callees: dict[int, dict[Definition | Op, None]] = {}
        self._nodes: list[object] = []  # references, so that no later node gets the `id` of one
        self._program: Program | None = None
        self._frame: Frame | None = None  # the last frame, and its model
        self._name = ""

    def watch(self, program: Program) -> None:
        """Observe the compilation of a program."""
        self._program = program

    def on_value(self, node: nodes.Expr | nodes.Step, value: Value) -> None:
        self._pending.append((node, value, self._outermost()))

    @property
    def values(self) -> dict[int, ObservedValue]:
        """The values of each expression and step."""
        for node, value, frame in self._pending:
            if value is POISON or value is DYNAMIC:
                continue
            observed = self._values.get(id(node))
            if observed is None:
                self._values[id(node)] = from_values(ObservedValue, (node, self._model(frame), [value]))
            elif value is not observed.values[-1]:
                observed.values.append(value)
        self._pending.clear()
        return self._values

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
        observed = self.declarations.get(id(node))
        if observed is None:
            observed = ObservedDeclaration(target, self._model(self._outermost()), set())
            self.declarations[id(node)] = observed
            self._nodes.append(node)
        observed.totals.add(count_parameters(target))

    def on_module(self, module: Module, ties: list[tuple[str, str, nodes.Tie]]) -> None:
        pass

    def on_body(self, target: CompileTarget, inputs: tuple[InputArgument, ...], body: Body) -> None:
        pass

    def _outermost(self) -> Frame | None:
        """Return the frame of the definition at the start of the call stack, if there is one."""
        frames = self._program.frames if self._program is not None else None
        return frames[0] if frames else None

    def _model(self, frame: Frame | None) -> str:
        """Return the name of the model that a frame belongs to; "" if it belongs to none."""
        if frame is not self._frame:
            self._frame = frame
            self._name = _enclosing_model(frame) if frame is not None else ""
        return self._name


def _enclosing_model(frame: Frame) -> str:
    """Return the name of the model whose statement contains a frame."""
    models, start = frame.unit.models.items(), frame.node.start
    return next((name for name, model in models if model.start <= start < model.end), "")


def count_parameters(declared: Module | ModuleTensor) -> int:
    """Return the parameter count of a module or tensor."""
    if isinstance(declared, Module):
        return declared.total
    return declared.size if declared.kind == "param" else 0
