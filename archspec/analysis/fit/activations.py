"""A lower bound of the memory of activations in a prefill: the largest inputs and result of a matrix product.

Operations between products count as fused in a layer: the values between them need no memory, those that they read and
the result do. Two parts do not count: scores of attention, which grow with the square of the sequence and are in the
registers of fused kernels, and logits, which are needed for the last position only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.core.algebra import Dim, Expression, substitute
from archspec.core.record import Record
from archspec.ir.fold import propagate_forward
from archspec.ir.module import Body, Call, Type
from archspec.ir.ops import OPS


class _Stored(Record):
    """A tensor in memory: a key that is unique in its body, and its number of elements."""

    key: tuple[object, ...]
    elements: int


class _Value(Record):
    """A value: its number of elements, and the tensors in memory from which fused operations compute it.

    It is in memory itself if that is the only one, and has no elements if it is never in memory.
    """

    elements: int
    sources: frozenset[_Stored] = frozenset()

    @property
    def is_stored(self) -> bool:
        """Whether the value is a tensor in memory."""
        return len(self.sources) == 1 and next(iter(self.sources)).elements == self.elements

    @property
    def all_elements(self) -> int:
        """The elements of the value and of the tensors from which it is computed."""
        return sum([source.elements for source in self.sources]) + (0 if self.is_stored else self.elements)


_NOT_STORED = _Value(0)


class _Summary(Record):
    """The outputs of a body, the largest number of elements in it, and the inputs that products in it read."""

    outputs: tuple[_Value, ...]
    largest: int
    read: frozenset[int]


def largest_operation(body: Body, dimension: str, sizes: Mapping[str, int]) -> int:
    """Return the number of elements of the inputs and the result of the largest product of a model.

    `sizes` are sizes of its dimensions, among them the positions that it reads along `dimension`.
    """
    return _Search(body, dimension, sizes).summarize(body).largest


class _Search:
    """A walk over the bodies of a model, each of which is summarized once."""

    def __init__(self, root: Body, dimension: str, sizes: Mapping[str, int]) -> None:
        self._logits = {type.shape for type in root.results if type is not None}
        self._sizes = sizes
        self._doubled = {**sizes, dimension: 2 * sizes[dimension]}
        self._summaries: dict[Body, _Summary] = {}
        self._evaluated: dict[Dim, tuple[Expression, Expression]] = {}

    def summarize(self, body: Body) -> _Summary:
        """Return the summary of a body."""
        summary = self._summaries.get(body)
        if summary is None:
            summary = self._summaries[body] = _BodySearch(self, body).summary()
        return summary

    def count_elements(self, type: Type | None) -> int:
        """Return the number of elements of an activation; 0 for parameters, logits, scores and integers."""
        if type is None or type.dtype != "real" or type.shape in self._logits:
            return 0
        if all(isinstance(size, int) for size in type.shape):
            return 0
        number = doubled = 1
        for size in type.shape:
            if size not in self._evaluated:
                self._evaluated[size] = substitute(size, self._sizes), substitute(size, self._doubled)
            one, two = self._evaluated[size]
            if not isinstance(one, int) or not isinstance(two, int):
                return 0  # it depends on the index of a loop
            number, doubled = number * one, doubled * two
        return number if doubled <= 2 * number else 0


class _BodySearch:
    """The search in one body."""

    def __init__(self, search: _Search, body: Body) -> None:
        self._search = search
        self._body = body
        self._largest = 0
        self._read: set[int] = set()

    def summary(self) -> _Summary:
        """Follow the values of the body."""
        inputs = [self._stored(type, ("input", index)) for index, (_, type) in enumerate(self._body.inputs)]
        result = propagate_forward(self._body, inputs, self._visit_operation, self._visit_call, _NOT_STORED)
        return _Summary(tuple(result.outputs), self._largest, frozenset(self._read))

    def _stored(self, type: Type | None, key: tuple[object, ...]) -> _Value:
        elements = self._search.count_elements(type)
        return _Value(elements, frozenset((_Stored(key, elements),))) if elements else _NOT_STORED

    def _visit_operation(self, call: Call, operands: list[_Value]) -> list[_Value]:
        op = OPS[call.type]
        if op.macs is None and not any(input.indexes for input in op.inputs):
            sources = frozenset[_Stored]().union(*[operand.sources for operand in operands])
            numbers = [self._search.count_elements(type) for type in call.outputs]
            return [_Value(number, sources) if number else _NOT_STORED for number in numbers]
        results = [self._stored(type, ("result", call.first, index)) for index, type in enumerate(call.outputs)]
        distinct = {
            slot: value for (_, slot), value in zip(call.inputs, operands, strict=True) if isinstance(slot, int)
        }
        for value in distinct.values():
            self._read_value(value)
        if results[0].elements:
            total = sum([value.elements for value in distinct.values()]) + sum([value.elements for value in results])
            self._largest = max(self._largest, total)
        return results

    def _visit_call(self, call: Call, operands: list[_Value]) -> list[_Value]:
        assert call.body is not None
        summary = self._search.summarize(call.body)
        self._largest = max(self._largest, summary.largest)
        arguments = dict(zip([name for name, _ in call.inputs], operands, strict=True))
        inputs = [arguments.get(name, _NOT_STORED) for name, _ in call.body.inputs]
        for index in summary.read:
            self._read_value(inputs[index])
        if call.kind != "fn":  # the results of layers and blocks are stored
            return [self._stored(type, ("result", call.first, index)) for index, type in enumerate(call.outputs)]
        return [self._rename(call, output, inputs) for output in summary.outputs]

    def _read_value(self, value: _Value) -> None:
        """Count a value that a product reads from memory."""
        if value.elements:
            self._largest = max(self._largest, value.all_elements)
        if value.is_stored:
            (source,) = value.sources
            if source.key[0] == "input":
                self._read.add(int(str(source.key[1])))

    def _rename(self, call: Call, value: _Value, inputs: Sequence[_Value]) -> _Value:
        """Return an output of a called body with keys of this body."""
        sources: set[_Stored] = set()
        for source in value.sources:
            if source.key[0] == "input":
                sources |= inputs[int(str(source.key[1]))].sources
            else:
                sources.add(source._replace(key=("call", call.first, source.key)))
        return value._replace(sources=frozenset(sources))
