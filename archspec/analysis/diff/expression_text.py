"""Expressions as text: `attention.output.dense + x`, `gelu(intermediate.dense)`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import cast

from archspec.analysis.diff.value_numbers import Atom, Operation, Values
from archspec.core.reports.text import literal
from archspec.ir.evaluation import passed_through_slot
from archspec.ir.fold import present_outputs
from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.ops import OPS, REQUIRED

MAX_DEPTH = 4
"""The limit on nested operations; deeper ones are `...`."""
MAX_OPERANDS = 5
"""The limit on the operands of one operation."""


class Wording:
    """Text of the operands of a body: layers and blocks by `label`, inputs by name."""

    def __init__(self, body: Body, label: Callable[[str], str]) -> None:
        self._body = body
        self._label = label
        self._tensors = {slot: name for name, slot in body.weights}
        self._made: dict[int, tuple[Call, int]] = {}
        self._passed: dict[int, int] = {}  # where a slot holds what another does
        for call in body.calls:
            slot = passed_through_slot(call)
            if slot is not None:
                self._passed[call.first] = self._passed.get(slot, slot)
            else:
                self._made |= {slot: (call, i) for i, slot in present_outputs(call)}

    def given(self, call: Call) -> str:
        """Format the operands of an application."""
        return ", ".join(self.operand(operand) for _, operand in call.inputs if operand is not None)

    def operand(self, operand: Operand, depth: int = 0) -> str:
        """Format an operand, expanded down to layers, blocks, inputs and tensors."""
        if operand is None:
            return "none"
        if isinstance(operand, Constant):
            return literal(operand.value)
        operand = self._passed.get(operand, operand)
        if operand in self._tensors:
            return f".{self._tensors[operand]}"
        if operand not in self._made:
            return self._body.inputs[operand][0]
        call, output = self._made[operand]
        end = ""
        if sum(type is not None for type in call.outputs) > 1:
            name = call.body.outputs[output][0] if call.body is not None else ""
            end = f".{name or output}"
        if call.address:
            return self._label(call.address) + end
        if depth == MAX_DEPTH:
            return "..."
        given = [o for _, o in call.inputs if o is not None]
        inner = [self.operand(o, depth + 1) for o in given[:MAX_OPERANDS]] + ["..."] * (len(given) > MAX_OPERANDS)
        if call.kind == "op":
            return _applied(call.type, settings(call.type, call.attributes), inner, depth) + end
        return f"{call.type}({', '.join(inner)}){end}"

    def sources(self, operands: Iterable[tuple[str, Operand]], depth: int = 0) -> Iterator[str]:
        """Yield the layers and blocks that operands come from, through at most DEEPEST operations."""
        for _, given in operands:
            operand = self._passed.get(given, given) if isinstance(given, int) else None
            if operand in self._made:
                call, _ = self._made[operand]
                if call.address:
                    yield self._label(call.address)
                elif depth < MAX_DEPTH:
                    yield from self.sources(call.inputs[:MAX_OPERANDS], depth + 1)


def operation_text(operation: Operation, values: Values) -> str:
    """Format an operation alone: its name, its attributes, and its constant operands; of a loop, its iterations."""
    if operation.type == "for":
        bounds = dict(operation.attributes)
        return f"for {bounds['first']}..{bounds['last']}"
    known = [values.known[number] for number in operation.operands if number is not None]
    constants = [plain(value.what) for value in known if isinstance(value, Atom) and value.origin == "constant"]
    symbol = OPS[operation.type].symbol
    if symbol and constants and len(known) == 2:
        return f"{symbol} {literal(constants[0])}"
    attributes = settings(operation.type, {name: plain(value) for name, value in operation.attributes})
    places = zip(OPS[operation.type].inputs, operation.operands, strict=False)
    absent = [f"no {place.name}" for place, number in places if number is None]
    attributes = ", ".join([attributes, *absent] if attributes else absent)
    name = f"{operation.type}({attributes})" if attributes else operation.type
    return f"{name}({', '.join(map(literal, constants))})" if constants else name


def settings(type: str, attributes: Mapping[str, object]) -> str:
    """Format the attributes of an operation that differ from the defaults."""
    defaults = {a.name: a.default for a in OPS[type].attributes}
    shown = {name: value for name, value in attributes.items() if value != defaults[name] or defaults[name] is REQUIRED}
    if len(shown) == 1 and next(iter(shown)) == OPS[type].attributes[0].name:
        return literal(next(iter(shown.values())))
    return ", ".join(f"{name} = {literal(value)}" for name, value in shown.items())


def plain(value: Hashable) -> object:
    """Invert `value_numbers.exact`."""
    if isinstance(value, tuple):
        kind, *rest = cast("tuple[Hashable, ...]", value)
        if kind == "list":
            return tuple(map(plain, rest))
        return rest[0] == "True" if kind == "bool" else float(str(rest[0]))
    return value


def _applied(type: str, attributes: str, operands: list[str], depth: int) -> str:
    """Format an operation on operands, with its operator if it has one."""
    symbol = OPS[type].symbol
    if symbol and len(operands) == 2:
        text = f"{operands[0]} {symbol} {operands[1]}"
        return f"({text})" if depth else text
    if symbol and len(operands) == 1:
        return f"{symbol} {operands[0]}"
    given = f"({', '.join(operands)})" if operands or not attributes else ""
    return f"{type}({attributes}){given}" if attributes else f"{type}{given}"
