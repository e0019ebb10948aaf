"""Sizes for a model's symbolic dimensions, and checks that it can run with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from archspec.core.addresses import join
from archspec.core.algebra import MAX_SIZE, Dim, Polynomial, check_size_limits, substitute, symbols
from archspec.core.diagnostics import ArchError, Span, make_error, suggest
from archspec.ir.fold import VisitLimit, arguments, propagate_forward
from archspec.ir.module import Body, Call, Loop, Type
from archspec.ir.ops import OPS, Interval, Op, OpError, Settings
from archspec.ir.ops.check import is_list
from archspec.ir.work import operand_type

Range: TypeAlias = Interval | None
"""The smallest and the largest integer in a tensor; None if they do not follow from sizes alone."""


def validate_sizes(model: str, dimensions: list[str], given: Mapping[str, object]) -> dict[str, int]:
    """Check sizes: names of `dimensions`, each with an integer from 1 to 2^63 - 1. Raises ArchError."""
    sizes: dict[str, int] = {}
    for name, size in given.items():
        if name not in dimensions:
            if not dimensions:
                raise make_error("usage", f"unknown dimension `{name}` of {model}: all its sizes are fixed")
            help = f"dimensions: {', '.join(dimensions)}; set one with `--dim NAME=N`, or `dims={{...}}` in Python"
            near = suggest(name, dimensions)
            raise make_error("usage", f"unknown dimension `{name}` of {model}", help=f"{near} {help}" if near else help)
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MAX_SIZE:
            raise make_error("usage", f"dimension `{name}` expects an integer from 1 to 2^63 - 1, found {size!r:.40}")
        sizes[name] = size
    return sizes


def check_sizes(body: Body, values: Mapping[str, int]) -> None:
    """Raise ArchError with code `bad-size` if the model cannot run with these sizes: an operation does not accept them,
    or an index that depends on them is outside the table that it selects from.
    """
    if values:
        SizeCheck(values).outputs(body, tuple([None] * len(body.inputs)))


class _Place(NamedTuple):
    """The innermost layer or block that is being checked: its address, and the location of its application."""

    address: str
    span: Span | None


class SizeCheck:
    """Checks every body once per set of intervals of its inputs."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.outputs: Callable[[Body, tuple[Range, ...]], list[Range]] = cache(self._outputs)
        self._place: _Place = _Place("", None)
        self._fitted: set[Body] = set()
        self._budget = VisitLimit()
        self._at = "at " + ", ".join(f"{name} = {size}" for name, size in values.items())

    def _outputs(self, body: Body, inputs: tuple[Range, ...]) -> list[Range]:
        """Return the intervals of a body's outputs."""
        return self._once(body, inputs) if body.loop is None else self._loop(body, body.loop, inputs)

    def _loop(self, body: Body, loop: Loop, inputs: tuple[Range, ...]) -> list[Range]:
        """Check the first and the last iteration of a loop, whose outputs have unknown intervals.

        A position that depends on the index is linear in it, so that it is valid in between, too.
        """
        first, count = self._size(loop.first), self._size(loop.iterations)
        values = {name: size for name, size in self.values.items() if name != loop.variable}
        ends: list[dict[str, int]] = [values]
        if isinstance(first, int) and isinstance(count, int):
            if count < 0 or (count == 0 and loop.axes):
                what = "collects from no iterations" if count == 0 else "ends before its start"
                raise self._size_error(f"a loop over `{loop.variable}` {what}", self._place.span)
            ends = [values | {loop.variable: at} for at in sorted({first, first + count - 1})] if count else []
        given = ([None] * loop.carried) + list(inputs[loop.carried :])
        for end in ends:
            check = self.at(end)
            check._place, check._budget = self._place, self._budget
            check._once(body, tuple(given))
        return [None] * len(body.outputs)

    def at(self, values: Mapping[str, int]) -> SizeCheck:
        """Return a new check with other sizes."""
        return SizeCheck(values)

    def _once(self, body: Body, inputs: tuple[Range, ...]) -> list[Range]:
        """Return the intervals of a body's outputs for a single application or iteration."""
        is_new = body not in self._fitted
        self._fitted.add(body)

        def visit_op(call: Call, given: list[Range]) -> list[Range]:
            op, types = OPS[call.type], [operand_type(operand, body.types) for _, operand in call.inputs]
            if is_new:
                self.fit(call, types)
            given = [(0, 1) if type and type.dtype == "bool" else r for r, type in zip(given, types, strict=True)]
            self._look_up(call, given, types)
            return [self.interval(op, call, given), *[None] * (len(call.outputs) - 1)]

        return propagate_forward(body, inputs, visit_op, self._apply, None, self.constant, budget=self._budget).outputs

    def _apply(self, call: Call, given: list[Range]) -> list[Range]:
        assert call.body is not None
        outer = self._place
        if call.address:
            self._place = _Place(join(outer.address, call.address), call.span)
        results = self.outputs(call.body, tuple(arguments(call, given)))
        self._place = outer
        return results

    def fit(self, call: Call, types: list[Type | None]) -> None:
        """Check that an operation accepts its inputs at these sizes."""
        try:
            inputs = [self._sized(type) for type in types]
            OPS[call.type].rule(inputs, self._attributes(call.attributes))
            for result in call.outputs:
                self._sized(result)
        except OpError as error:
            raise self._size_error(error.message, call.span, error.help) from None
        except (ZeroDivisionError, OverflowError) as error:
            raise self._size_error(f"the sizes of `{call.type}` are undefined: {error}", call.span) from None

    def _look_up(self, call: Call, given: list[Range], types: list[Type | None]) -> None:
        """Check that an index is within the axis that it selects from."""
        inputs = OPS[call.type].inputs
        for place, picked in zip(inputs, given, strict=False):
            if not place.indexes or picked is None:
                continue
            held = types[[i.name for i in inputs].index(place.indexes.split()[0])]
            assert held is not None
            axis = call.attributes.get("axis", 0)
            assert isinstance(axis, int)
            self.check_index(picked, self._size(held.shape[axis]), call)

    def check_index(self, picked: Interval, rows: Dim, call: Call) -> None:
        """Check that indices are within an axis of so many rows."""
        if isinstance(rows, int) and not 0 <= picked[0] <= picked[1] < rows:
            wrong = picked[1] if picked[1] >= rows else picked[0]
            where = f"`{self._place.address or call.type}`"
            message = f"{where} is indexed with {wrong}, but its largest index is {rows - 1}"
            raise self._size_error(message, self._place.span or call.span)

    def interval(self, op: Op, call: Call, given: list[Range]) -> Range:
        """Return the interval of the first result of an operation, whose bounds are attained for some input."""
        known = [r for r in given if r is not None]
        if op.interval is None or len(known) < len(given):
            return None
        result = self._sized(call.outputs[0])
        assert result is not None
        return op.interval(known, result, self._attributes(op.settings(call.attributes)))

    def _sized(self, type: Type | None) -> Type | None:
        return type and Type(tuple([self._size(size) for size in type.shape]), type.dtype)

    def _size(self, size: Dim) -> Dim:
        return check_size_limits(substitute(size, self.values))

    def _attributes(self, attributes: Settings) -> dict[str, object]:
        return {name: self.value_of(value) for name, value in attributes.items()}

    def value_of(self, value: object) -> object:
        """Substitute the sizes in a static value."""
        if is_list(value):
            return tuple([self.value_of(item) for item in value])
        return self._size(value) if isinstance(value, Polynomial) else value

    def constant(self, value: object) -> Range:
        """Return the interval of a number that is an operand."""
        value = self.value_of(value)
        return (value, value) if isinstance(value, int) else None

    def _size_error(self, message: str, span: Span | None, help: str | None = None) -> ArchError:
        return make_error("bad-size", f"{self._at}, {message}", span, help=help)


def dimensions(inputs: Iterable[tuple[str, Type]]) -> list[str]:
    """Return the symbolic dimensions of the inputs, in order of appearance."""
    return list(dict.fromkeys(name for _, type in inputs for size in type.shape for name in sorted(symbols(size))))
