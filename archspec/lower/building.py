"""A body as it grows: slots for values, applications that fill them, and what is read of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archspec.dims import Symbolic
from archspec.ir import Body, Call, Leaf, Module, Operand, Type, find
from archspec.lower.address import address_text
from archspec.lower.evaluate import Evaluator
from archspec.lower.operands import operand_of, type_of
from archspec.lower.plan import plan_of, plan_owns
from archspec.lower.program import Program
from archspec.lower.shapes import Header
from archspec.lower.units import Definition
from archspec.lower.values import POISON, Owned, Several, Tensor, describe
from archspec.ops import OPERATORS, OPS, Op, OpError
from archspec.source import suggest
from archspec.syntax import tree

MOST_NEIGHBOURS = 2000  # the names that a misspelt address is compared with


class Building(Evaluator):
    """Evaluates expressions into a body: tensors are slots of it, and operations on them its calls."""

    def __init__(self, program: Program, definition: Definition, values: dict[str, Any], module: Module | None) -> None:
        super().__init__(program, definition.unit, definition, dict(values))
        self.module = module
        self.body = Body(definition.kind, definition.name, module)
        self.header = Header(self, definition.name)
        self.reads: dict[str, Tensor] = {}

    def slot(self, type: Type) -> Tensor:
        types = self.body.types
        types.append(type)
        return Tensor(len(types) - 1, type)

    def emit(
        self,
        kind: str,
        type: str,
        address: str,
        body: Body | None,
        inputs: tuple[tuple[str, Operand], ...],
        attributes: dict[str, Any],
        outputs: tuple[Type | None, ...],
        node: Any,
    ) -> Any:
        """Adds an application; its result as a value."""
        span = self.unit.span(node)
        self.body.calls.append(Call(kind, type, address, body, inputs, attributes, outputs, len(self.body.types), span))
        if len(outputs) > 1:
            self.program.count_work(20 * len(outputs), span)
        if len(outputs) == 1:
            return self.slot(outputs[0]) if outputs[0] is not None else None
        return Several(tuple([self.slot(t) if t is not None else None for t in outputs]))

    def operate(self, name: str, values: Sequence[Any], node: Any, nodes: Sequence[tree.Expr]) -> Any:
        op = OPS[OPERATORS.get(name, name)]
        for value, part in zip(values, nodes, strict=True):
            if value is None:
                return self.fault("wrong-kind", f"`{name}` expects a tensor, found `none`", part)
            if not isinstance(value, Tensor | int | float | Symbolic):
                return self.fault("wrong-kind", f"`{name}` expects a tensor, found {describe(value)}", part)
        names = [i.name for i in op.inputs]
        inputs = tuple(zip(names, values, strict=True))
        return self.apply_op(op, inputs, {}, node, lambda name: dict(zip(names, nodes, strict=True)).get(name, node))

    def apply_op(
        self,
        op: Op,
        inputs: tuple[tuple[str, Any], ...],
        attributes: dict[str, Any],
        node: Any,
        place: Callable[[str], Any],
    ) -> Any:
        """Applies an operation to tensors, numbers or what is absent; `place` says where an argument is written."""
        types = [type_of(v) for _, v in inputs]
        try:
            outputs = op.rule(types, attributes)
        except OpError as problem:
            return self.fault("dimension", problem.message, place(problem.argument or ""), help=problem.help)
        operands = tuple([(name, operand_of(v)) for name, v in inputs])
        return self.emit("op", op.name, "", None, operands, attributes, outputs, node)

    def resolve(self, node: tree.Reference) -> Any:
        """What is owned at an address: a tensor to read, or something to apply."""
        address = address_text(self, node.address)
        if address is None:
            return POISON
        if self.module is None and self.definition is not None and plan_owns(plan_of(self.definition)):
            return POISON
        if self.module is None:
            return self.fault("unknown-address", "a function has no addresses; use a `layer` or `block`", node)
        found = find(self.module, address)
        if found is None:
            if address in self.module.absent:
                return None
            if self.unit.broken & set(address.split(".")) or self.module in self.program.incomplete:
                return POISON
            if not self.is_news(f".{address}"):
                return POISON
            near = suggest(address, list(self.module.members)[:MOST_NEIGHBOURS])
            return self.fault("unknown-address", f"nothing is declared at `.{address}`", node, help=near)
        if isinstance(found, Module):
            return Owned(address, found)
        return self._read(address, found)

    def _read(self, address: str, leaf: Leaf) -> Tensor:
        tensor = self.reads.get(address)
        if tensor is None:
            tensor = self.reads[address] = self.slot(leaf.weight.type)
            self.body.weights.append((address, tensor.slot))
        return tensor

    def _unbound(self, expr: tree.Name) -> Any:
        return self.fault(
            "unbound-dimension",
            f"dimension `{expr.text}` has no size here",
            expr,
            help="use it in the shape of an input that is always given",
        )

    def _ellipsis(self, expr: tree.Ellipsis_) -> Any:
        return self.fault("wrong-kind", "`...` is only allowed in shapes", expr)

    def _listing(self, expr: tree.Listing) -> Any:
        values: list[Any] = []
        for item in expr.items:
            if isinstance(item, tree.Ellipsis_):
                if self.header.leading is None:
                    return self.fault("unbound-dimension", "`...` is not bound by any input here", item)
                values += self.header.leading
                continue
            value = self.value(item)
            if isinstance(value, Tensor | Several | Owned):
                return self.fault(
                    "wrong-kind", f"expected numbers or names in this list, found {describe(value)}", item
                )
            values.append(value)
        return POISON if POISON in values else self.bounded_list(tuple(values), expr)

    def _reference(self, expr: tree.Reference) -> Any:
        value = self.resolve(expr)
        if isinstance(value, Owned):
            help = f"apply it, as in `.{value.address}(x)`"
            return self.fault(
                "wrong-kind", f"expected a value, found the {value.module.kind} `.{value.address}`", expr, help=help
            )
        return value


Building.handlers = {
    **Evaluator.handlers,
    tree.Name: Building._name,  # pyright: ignore[reportPrivateUsage]
    tree.Listing: Building._listing,  # pyright: ignore[reportPrivateUsage]
    tree.Ellipsis_: Building._ellipsis,  # pyright: ignore[reportPrivateUsage]
    tree.Reference: Building._reference,  # pyright: ignore[reportPrivateUsage]
}
