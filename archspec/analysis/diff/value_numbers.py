"""Value numbering of bodies: equal computations have equal numbers.

A value is an input, a tensor that is read, a constant, or an operation on values with its attributes. Definitions are
expanded, so the division of a computation into blocks and functions, and their names, have no effect. The sizes of
weights have no effect either; the tensor table covers them. Nor does dropout, which acts in training only. Operands of
commutative operations are unordered.
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
    """A value: result number `output` of an operation."""

    type: str
    attributes: tuple[tuple[str, Hashable], ...]
    operands: tuple[Number, ...]
    output: int


class Atom(NamedTuple):
    """A value that is not computed: its `origin` ("input", "tensor", "constant", "output") and its identity `what`."""

    origin: str
    what: Hashable


class Values:
    """Numbers the values of one or several models. Equal numbers mean equal values."""

    def __init__(self) -> None:
        self.known: list[Operation | Atom] = []
        self._numbers: dict[Operation | Atom, int] = {}
        self._budget = VisitLimit()
        self._whole: dict[Body, tuple[Number, ...]] = {}
        self._attributes: dict[Hashable, tuple[tuple[str, Hashable], ...]] = {}
        self._indices: dict[str, Polynomial] = {}
        self._leaves: dict[tuple[Body, str], tuple[bool, str, Number]] = {}

    def number(self, value: Operation | Atom) -> int:
        """Return the number of a value; a new value receives the next one."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.known)
            self.known.append(value)
        return found

    def whole(self, body: Body) -> tuple[Number, ...]:
        """Return the outputs of a body as values of its inputs, by position, and its tensors."""
        found = self._whole.get(body)
        if found is None:
            inputs = [self.number(Atom("input", i)) for i in range(len(body.inputs))]
            found = self._whole[body] = tuple(self.outputs(body, inputs, ""))
        return found

    def outputs(self, body: Body, inputs: Sequence[Number], prefix: str) -> list[Number]:
        """Return the outputs of a body, fully expanded. The names of its tensors begin with `prefix`."""
        if body.loop is not None:
            return self._loop(body, body.loop, inputs, prefix)
        return self._expanded(body, inputs, prefix)

    def _expanded(self, body: Body, inputs: Sequence[Number], prefix: str) -> list[Number]:

        def opened(call: Call, given: list[Number]) -> list[Number]:
            assert call.body is not None
            around = f"{prefix}{call.address}." if call.address else prefix
            return self.outputs(call.body, arguments(call, given), around)

        return self.fold(body, inputs, prefix, opened).outputs

    def _loop(self, body: Body, loop: Loop, inputs: Sequence[Number], prefix: str) -> list[Number]:
        """Return the outputs of a loop: each depends on what is carried into it, and on what an iteration computes.

        The values of an iteration are those of its inputs and of an index; both are called after the loops around.
        """
        depth = len(self._indices)
        carried = [self.number(Atom("carried", (depth, i))) for i in range(loop.carried)]
        outer = dict(self._indices)
        self._indices = {**outer, loop.variable: index(f"#{depth}")}
        computed = self._expanded(body, [*carried, *inputs[loop.carried :]], prefix)
        self._indices = outer
        bounds = ("first", exact(loop.first)), ("last", exact(loop.first + loop.iterations))
        attributes = (("axes", loop.axes), *bounds)
        operands = (*inputs[: loop.carried], *computed)
        return [self.number(Operation("for", attributes, operands, i)) for i in range(len(computed))]

    def _exact(self, value: object) -> Hashable:
        """Convert a static value to a key, with the indices of loops called after the loops around."""
        return exact(_substituted(value, self._indices) if self._indices else value)

    def fold(
        self,
        body: Body,
        inputs: Sequence[Number],
        prefix: str,
        applied: Callable[[Call, list[Number]], list[Number]],
    ) -> ForwardResult[Number]:
        """Return the values in a body; `applied` returns the outputs of a definition for its inputs.

        Raises ArchError if that takes too many steps.
        """

        def constant(value: object) -> Number:
            return self.number(Atom("constant", self._exact(value)))

        def weight(name: str) -> Number:
            return self.tensor(body, name, prefix)

        return propagate_forward(body, inputs, self._operation, applied, None, constant, weight, self._budget)

    def tensor(self, body: Body, name: str, prefix: str) -> int:
        """Return the value of a stored tensor: its name, its element type, and its contents if it is constant.

        A tensor that is not stored is what it is computed from.
        """
        known = self._leaves.get((body, name))
        if known is None:
            leaf = find_member(body.module, name) if body.module is not None else None
            assert isinstance(leaf, LocatedTensor)
            stored = leaf.weight.kind != "const"
            known = self._leaves[body, name] = stored, leaf.weight.type.dtype, self.table(leaf)
        stored, dtype, table = known
        if not stored and table is not None:
            return table
        return self.number(Atom("tensor", (prefix + name, dtype, table)))

    def table(self, leaf: LocatedTensor) -> Number:
        """Return the value of a constant tensor; None for any other."""
        return self.whole(leaf.weight.value)[0] if leaf.weight.value is not None else None

    def _operation(self, call: Call, given: list[Number]) -> list[Number]:
        if OPS[call.type].trains:
            return given[:1]
        key = (call, *self._indices.items())
        attributes = self._attributes.get(key)
        if attributes is None:
            full = OPS[call.type].settings(call.attributes)
            attributes = tuple(sorted((name, self._exact(value)) for name, value in full.items()))
            self._attributes[key] = attributes
        if OPS[call.type].commutative:
            given = sorted(given, key=lambda number: -1 if number is None else number)
        operands = tuple(given)
        return [self.number(Operation(call.type, attributes, operands, i)) for i in range(len(call.outputs))]

    def operations(self, numbers: Sequence[Number]) -> Iterator[Operation]:
        """Yield every operation that values depend on, once, regardless of which of its outputs they use."""
        waiting = [number for number in numbers if number is not None]
        seen = set(waiting)
        yielded: set[Operation] = set()
        while waiting:
            value = self.known[waiting.pop()]
            if isinstance(value, Operation):
                application = value._replace(output=0)
                if application not in yielded:
                    yielded.add(application)
                    yield application
                new = {number for number in value.operands if number is not None} - seen
                seen |= new
                waiting += sorted(new)


def _substituted(value: object, names: Mapping[str, Expression]) -> object:
    """Replace names in a static value, or in the items of a list."""
    if isinstance(value, Polynomial):
        return substitute(value, names)
    if isinstance(value, tuple | list):
        return tuple([_substituted(item, names) for item in cast("Sequence[object]", value)])
    return value


def exact(value: object) -> Hashable:
    """Convert a number, text, dimension or list to a key that distinguishes 1, 1.0 and true, and 0.0 and -0.0."""
    if isinstance(value, tuple | list):
        return ("list", *map(exact, cast("Sequence[object]", value)))
    if isinstance(value, bool | float):
        return type(value).__name__, repr(value)
    return value
