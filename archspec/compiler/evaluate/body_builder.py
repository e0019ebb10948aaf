"""Construction of bodies: slots for values, calls that fill them, and the tensors of the module that are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from archspec.compiler.evaluate.limits import Limits
from archspec.compiler.evaluate.values import MultipleOutputs, Tensor, Value
from archspec.core.algebra import Dim, Polynomial
from archspec.core.diagnostics import Span
from archspec.core.record import from_values
from archspec.ir.module import Body, Call, Constant, LocatedTensor, Module, Operand, Type, find_member
from archspec.ir.ops import element_type


class BodyBuilder:
    """Builds one body."""

    def __init__(self, kind: str, type: str, module: Module | None, span: Span | None, limits: Limits) -> None:
        self.limits = limits
        self.body = Body(kind, type, module, span)
        self.reads: dict[str, Tensor] = {}

    def slot(self, type: Type) -> Tensor:
        """Add a slot for a tensor."""
        types = self.body.types
        types.append(type)
        return from_values(Tensor, (len(types) - 1, type))

    def read(self, address: str, leaf: LocatedTensor) -> Tensor:
        """Return the slot of a stored tensor."""
        tensor = self.reads.get(address)
        if tensor is None:
            tensor = self.reads[address] = self.slot(leaf.weight.type)
            self.body.weights.append((address, tensor.slot))
        return tensor

    def emit(
        self,
        kind: str,
        type: str,
        address: str,
        body: Body | None,
        inputs: tuple[tuple[str, Operand], ...],
        attributes: dict[str, Value],
        outputs: tuple[Type | None, ...],
        span: Span,
    ) -> Value:
        """Add a call and return its result as a value."""
        if len(outputs) > 1:
            self.limits.count_text(20 * len(outputs), span)
        self.body.calls.append(Call(kind, type, address, body, inputs, attributes, outputs, len(self.body.types), span))
        if len(outputs) == 1:
            return self.slot(outputs[0]) if outputs[0] is not None else None
        return MultipleOutputs(tuple([self.slot(t) if t is not None else None for t in outputs]))

    def splice(self, body: Body, operands: Sequence[int], span: Span) -> Value:
        """Add the calls of a body whose module is merged into this one, applied to tensors; return its outputs."""
        self.limits.count_text(len(body.calls), span)
        slots = dict(enumerate(operands))
        for address, slot in body.weights:
            slots[slot] = self._read_again(address)
        for slot, type in enumerate(body.types):
            if slot not in slots:
                slots[slot] = self.slot(type).slot
        self.body.calls += [call.with_slots(slots, call) for call in body.calls]
        self.body.discarded.update([slots[slot] for slot in body.discarded])
        values = [Tensor(slots[o], body.types[o]) if isinstance(o, int) else None for _, o in body.outputs]
        return values[0] if len(values) == 1 else MultipleOutputs(tuple(values))

    def _read_again(self, address: str) -> int:
        """Return the slot of a stored tensor that another body of the same module reads."""
        assert self.body.module is not None
        leaf = find_member(self.body.module, address)
        assert isinstance(leaf, LocatedTensor)
        return self.read(address, leaf).slot

    def size_origin(self, slot: int, axis: int) -> Span | None:
        """Return the location of the call that created the size of an axis; None if an input has this size."""
        body = self.body
        size = body.types[slot].shape[axis]
        for call in reversed(body.calls):
            if not call.first <= slot < call.first + len(call.outputs):
                continue
            origin = _input_with_size(body, call, slot, axis, size)
            if origin is None:
                return call.span
            slot, axis = origin
        return None


def _input_with_size(body: Body, call: Call, slot: int, axis: int, size: Dim) -> tuple[int, int] | None:
    """Return the input of a call, and its axis, with the size of an axis of a result; None if no input has it."""
    rank = len(body.types[slot].shape)
    for _, operand in call.inputs:
        if isinstance(operand, int):
            shape = body.types[operand].shape
            if len(shape) == rank and shape[axis] == size:
                return operand, axis
            is_reordered = call.kind == "op" and Counter(shape) == Counter(body.types[slot].shape)
            if is_reordered and size in shape:
                return operand, shape.index(size)
    return None


def number_type(value: Value) -> Type:
    """Return the type of a number: a tensor without axes."""
    return Type((), element_type(value))


def constant_of(number: Value) -> Constant:
    assert isinstance(number, int | float | Polynomial)
    return Constant(number)


def type_of(value: Value) -> Type | None:
    """Return the type of an operand; None for `none`."""
    if isinstance(value, Tensor):
        return value.type
    return None if value is None else number_type(value)


def operand_of(value: Value) -> Operand:
    if isinstance(value, Tensor):
        return value.slot
    return None if value is None else constant_of(value)
