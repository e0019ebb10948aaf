"""Value numbering of bodies: equal computations have equal numbers.

A value is an input, a tensor, a constant, or an operation on values with its attributes. Definitions are expanded, so
blocks, functions and their names have no effect. The sizes of weights have no effect, because the tensor table covers
them, and neither has dropout, which acts in training only. Operands of commutative operations are unordered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from archspec.core.algebra import Expression, Polynomial, index, substitute
from archspec.ir.fold import ForwardResult, VisitLimit, arguments, propagate_forward
from archspec.ir.module import Body, Call, LocatedTensor, Loop, find_member
from archspec.ir.ops import OPS

Number: TypeAlias = int | None
"""The number of a value; None for `none`."""


class Operation(NamedTuple):
    """A value: the result at index `output` of an operation."""

    type: str
    attributes: tuple[tuple[str, Hashable], ...]
    operands: tuple[Number, ...]
    output: int


class Atom(NamedTuple):
    """A value that is not computed. `origin` is "input", "carried", "tensor", "constant" or "output"."""

    origin: str
    identity: Hashable


class ValueNumbering:
    """Numbering of the values of one or several models. Equal numbers mean equal values."""

    def __init__(self) -> None:
        self.entries: list[Operation | Atom] = []
        self._numbers: dict[Operation | Atom, int] = {}
        self._visit_limit = VisitLimit()
        self._bodies: dict[Body, tuple[Number, ...]] = {}
        self._attributes: dict[Hashable, tuple[tuple[str, Hashable], ...]] = {}
        self._indices: dict[str, Polynomial] = {}
        self._leaves: dict[tuple[Body, str], tuple[bool, str, Number]] = {}

    def number(self, value: Operation | Atom) -> int:
        """Return the number of a value; a new value receives the next one."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.entries)
            self.entries.append(value)
        return number

    def number_body(self, body: Body) -> tuple[Number, ...]:
        """Return the outputs of a body as values of its inputs, by position, and its tensors."""
        outputs = self._bodies.get(body)
        if outputs is None:
            inputs = [self.number(Atom("input", i)) for i in range(len(body.inputs))]
            outputs = self._bodies[body] = tuple(self.number_outputs(body, inputs, ""))
        return outputs

    def number_outputs(self, body: Body, inputs: Sequence[Number], prefix: str) -> list[Number]:
        """Return the outputs of a body, fully expanded. The names of its tensors begin with `prefix`."""
        if body.loop is not None:
            return self._number_loop(body, body.loop, inputs, prefix)
        return self._number_iteration(body, inputs, prefix)

    def _number_iteration(self, body: Body, inputs: Sequence[Number], prefix: str) -> list[Number]:

        def expand(call: Call, operands: list[Number]) -> list[Number]:
            assert call.body is not None
            prefix_inside = f"{prefix}{call.address}." if call.address else prefix
            return self.number_outputs(call.body, arguments(call, operands), prefix_inside)

        return self.propagate(body, inputs, prefix, expand).outputs

    def _number_loop(self, body: Body, loop: Loop, inputs: Sequence[Number], prefix: str) -> list[Number]:
        """Return the outputs of a loop: each depends on the carried inputs and on the values of one iteration.

        The values of an iteration depend on its inputs and on an index. Both are named after the depth of the loop.
        """
        depth = len(self._indices)
        carried = [self.number(Atom("carried", (depth, i))) for i in range(loop.carried)]
        outer = dict(self._indices)
        self._indices = {**outer, loop.variable: index(f"#{depth}")}
        computed = self._number_iteration(body, [*carried, *inputs[loop.carried :]], prefix)
        self._indices = outer
        bounds = ("first", to_key(loop.first)), ("last", to_key(loop.first + loop.iterations))
        attributes = (("axes", loop.axes), *bounds)
        operands = (*inputs[: loop.carried], *computed)
        return [self.number(Operation("for", attributes, operands, i)) for i in range(len(computed))]

    def _to_key(self, value: object) -> Hashable:
        """Convert a static value to a key, with the indices of loops named after their depth."""
        return to_key(_substitute(value, self._indices) if self._indices else value)

    def propagate(
        self,
        body: Body,
        inputs: Sequence[Number],
        prefix: str,
        apply: Callable[[Call, list[Number]], list[Number]],
    ) -> ForwardResult[Number]:
        """Return the values in a body; `apply` returns the outputs of a definition for its inputs.

        Raises ArchError if the traversal exceeds the visit limit.
        """

        def constant(value: object) -> Number:
            return self.number(Atom("constant", self._to_key(value)))

        def weight(name: str) -> Number:
            return self.number_tensor(body, name, prefix)

        return propagate_forward(body, inputs, self._number_operation, apply, None, constant, weight, self._visit_limit)

    def number_tensor(self, body: Body, name: str, prefix: str) -> int:
        """Return the value of a tensor: its name, its element type, and its contents if it is constant.

        The value of a tensor that is not stored is the value of its contents.
        """
        properties = self._leaves.get((body, name))
        if properties is None:
            leaf = find_member(body.module, name) if body.module is not None else None
            assert isinstance(leaf, LocatedTensor)
            stored = leaf.weight.kind != "const"
            properties = self._leaves[body, name] = stored, leaf.weight.type.dtype, self.number_constant(leaf)
        stored, dtype, table = properties
        if not stored and table is not None:
            return table
        return self.number(Atom("tensor", (prefix + name, dtype, table)))

    def number_constant(self, leaf: LocatedTensor) -> Number:
        """Return the value of a constant tensor; None for other tensors."""
        return self.number_body(leaf.weight.value)[0] if leaf.weight.value is not None else None

    def _number_operation(self, call: Call, operands: list[Number]) -> list[Number]:
        if OPS[call.type].trains:
            return operands[:1]
        key = (call, *self._indices.items())
        attributes = self._attributes.get(key)
        if attributes is None:
            settings = OPS[call.type].settings(call.attributes)
            attributes = tuple(sorted((name, self._to_key(value)) for name, value in settings.items()))
            self._attributes[key] = attributes
        if OPS[call.type].commutative:
            operands = sorted(operands, key=lambda number: -1 if number is None else number)
        operand_key = tuple(operands)
        return [self.number(Operation(call.type, attributes, operand_key, i)) for i in range(len(call.outputs))]

    def iter_operations(self, numbers: Sequence[Number]) -> Iterator[Operation]:
        """Yield every operation that values depend on, once, regardless of the used outputs."""
        pending = [number for number in numbers if number is not None]
        seen = set(pending)
        yielded: set[Operation] = set()
        while pending:
            value = self.entries[pending.pop()]
            if isinstance(value, Operation):
                application = value._replace(output=0)
                if application not in yielded:
                    yielded.add(application)
                    yield application
                new = {number for number in value.operands if number is not None} - seen
                seen |= new
                pending += sorted(new)


def _substitute(value: object, names: Mapping[str, Expression]) -> object:
    """Replace names in a static value, or in the items of a list."""
    if isinstance(value, Polynomial):
        return substitute(value, names)
    if isinstance(value, tuple | list):
        return tuple([_substitute(item, names) for item in cast("Sequence[object]", value)])
    return value


def to_key(value: object) -> Hashable:
    """Convert a number, text, dimension or list to a key that distinguishes 1, 1.0 and true, and 0.0 and -0.0."""
    if isinstance(value, tuple | list):
        return ("list", *map(to_key, cast("Sequence[object]", value)))
    if isinstance(value, bool | float):
        return type(value).__name__, repr(value)
    return value
