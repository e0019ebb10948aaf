"""Sizes for a model's symbolic dimensions, and checks that it can run with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TypeAlias

from archspec.core.addresses import join
from archspec.core.algebra import MAX_SIZE, Dim, Polynomial, check_size_limits, substitute, symbols
from archspec.core.diagnostics import ArchError, Span, make_error, suggest
from archspec.core.record import Record
from archspec.ir.fold import VisitLimit, arguments, propagate_forward
from archspec.ir.module import Body, Call, Loop, Type
from archspec.ir.ops import OPS, Interval, Op, OpError, Settings
from archspec.ir.ops.check import is_list
from archspec.ir.work import operand_type


class IndexRange(Record):
    """The minimum and maximum integer in a tensor; some contents of inputs reach them, all unless `depends_on_data`."""

    low: int
    high: int
    depends_on_data: bool = False


Range: TypeAlias = IndexRange | None
"""None if the integers do not follow from sizes alone."""

_BOOLEANS = IndexRange(0, 1, True)


def validate_sizes(model: str, dimensions: list[str], requested: Mapping[str, object]) -> dict[str, int]:
    """Check sizes of `dimensions` by name: each is an integer from 1 to 2^63 - 1. Raises ArchError."""
    sizes: dict[str, int] = {}
    for name, size in requested.items():
        if name not in dimensions:
            if not dimensions:
                raise make_error("usage", f"unknown dimension `{name}` of {model}: all its sizes are fixed")
            help = f"dimensions: {', '.join(dimensions)}; set one with `--dim NAME=N`, or `dims={{...}}` in Python"
            suggestion = suggest(str(name), dimensions)
            raise make_error(
                "usage", f"unknown dimension `{name}` of {model}", help=f"{suggestion} {help}" if suggestion else help
            )
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MAX_SIZE:
            raise make_error("usage", f"dimension `{name}` expects an integer from 1 to 2^63 - 1, found {size!r:.40}")
        sizes[name] = size
    return sizes


def check_sizes(body: Body, values: Mapping[str, int]) -> None:
    """Check that a model can run with sizes of its dimensions.

    Raises ArchError with code `bad-size` if an operation does not accept them, or if an index that depends on them is
    out of range.
    """
    if values:
        SizeCheck(values).outputs(body, tuple([None] * len(body.inputs)))


class _ModuleLocation(Record):
    """The innermost enclosing layer or block: its address, and the location of its application."""

    address: str
    span: Span | None


class SizeCheck:
    """A check of a model for `values`; each body is checked once per combination of intervals of its inputs."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.outputs: Callable[[Body, tuple[Range, ...]], list[Range]] = cache(self._outputs)
        self._location: _ModuleLocation = _ModuleLocation("", None)
        self._checked: set[Body] = set()
        self._budget = VisitLimit()
        self._prefix = "at " + ", ".join(f"{name} = {size}" for name, size in values.items())

    def _outputs(self, body: Body, inputs: tuple[Range, ...]) -> list[Range]:
        """Return the intervals of a body's outputs."""
        return self._apply_once(body, inputs) if body.loop is None else self._loop(body, body.loop, inputs)

    def _loop(self, body: Body, loop: Loop, inputs: tuple[Range, ...]) -> list[Range]:
        """Check the first and the last iteration of a loop. The intervals of its outputs are unknown.

        A position that depends on the index is linear in it, so it is also valid in all iterations between them.
        """
        first, count = self._size(loop.first), self._size(loop.iterations)
        values = {name: size for name, size in self.values.items() if name != loop.variable}
        ends: list[dict[str, int]] = [values]
        if isinstance(first, int) and isinstance(count, int):
            if count < 0 or (count == 0 and loop.axes):
                defect = "collects from no iterations" if count == 0 else "ends before its start"
                raise self._size_error(f"a loop over `{loop.variable}` {defect}", self._location.span)
            ends = [values | {loop.variable: value} for value in sorted({first, first + count - 1})] if count else []
        input_ranges = ([None] * loop.carried) + list(inputs[loop.carried :])
        for end in ends:
            check = self.with_sizes(end)
            check._location, check._budget = self._location, self._budget
            check._apply_once(body, tuple(input_ranges))
        return [None] * len(body.outputs)

    def with_sizes(self, values: Mapping[str, int]) -> SizeCheck:
        """Return a new check with other sizes."""
        return SizeCheck(values)

    def _apply_once(self, body: Body, inputs: tuple[Range, ...]) -> list[Range]:
        """Return the intervals of a body's outputs for a single application or iteration."""
        is_new = body not in self._checked
        self._checked.add(body)

        def visit_op(call: Call, ranges: list[Range]) -> list[Range]:
            op, types = OPS[call.type], [operand_type(operand, body.types) for _, operand in call.inputs]
            if is_new:
                self.check_operation(call, types)
            ranges = [_BOOLEANS if type and type.dtype == "bool" else r for r, type in zip(ranges, types, strict=True)]
            self._check_indices(call, ranges, types)
            return [self.interval(op, call, ranges), *[None] * (len(call.outputs) - 1)]

        return propagate_forward(
            body, inputs, visit_op, self._visit_call, None, self.constant, budget=self._budget
        ).outputs

    def _visit_call(self, call: Call, ranges: list[Range]) -> list[Range]:
        assert call.body is not None
        enclosing = self._location
        if call.address:
            self._location = _ModuleLocation(join(enclosing.address, call.address), call.span)
        results = self.outputs(call.body, tuple(arguments(call, ranges)))
        self._location = enclosing
        return results

    def check_operation(self, call: Call, types: list[Type | None]) -> None:
        """Check that an operation accepts its inputs at these sizes."""
        try:
            inputs = [self._substitute_type(type) for type in types]
            OPS[call.type].rule(inputs, self._attributes(call.attributes))
            for result in call.outputs:
                self._substitute_type(result)
        except OpError as error:
            raise self._size_error(error.message, call.span, error.help) from None
        except (ZeroDivisionError, OverflowError) as error:
            raise self._size_error(f"the sizes of `{call.type}` are undefined: {error}", call.span) from None

    def _check_indices(self, call: Call, ranges: list[Range], types: list[Type | None]) -> None:
        """Check that indices are within the axes from which they select.

        Indices that depend on data are checked against axes of fixed size only.
        """
        inputs = OPS[call.type].inputs
        for entry, range in zip(inputs, ranges, strict=False):
            if not entry.indexes or range is None:
                continue
            table = types[[i.name for i in inputs].index(entry.indexes.split()[0])]
            assert table is not None
            axis = call.attributes.get("axis", 0)
            assert isinstance(axis, int)
            if isinstance(table.shape[axis], int) or not range.depends_on_data:
                self.check_index(range, self._size(table.shape[axis]), call)

    def check_index(self, range: IndexRange, rows: Dim, call: Call) -> None:
        """Check that a range of indices is within an axis of size `rows`."""
        if isinstance(rows, int) and not 0 <= range.low <= range.high < rows:
            index = range.high if range.high >= rows else range.low
            subject = f"`{self._location.address or call.type}`"
            message = f"{subject} is indexed with {index}, but its largest index is {rows - 1}"
            raise self._size_error(message, self._location.span or call.span)

    def interval(self, op: Op, call: Call, ranges: list[Range]) -> Range:
        """Return the range of the first result of an operation."""
        bounds = [r for r in ranges if r is not None]
        if op.interval is None or len(bounds) < len(ranges):
            return None
        result = self._substitute_type(call.outputs[0])
        assert result is not None
        intervals: list[Interval] = [(r.low, r.high) for r in bounds]
        interval = op.interval(intervals, result, self._attributes(op.settings(call.attributes)))
        return interval and IndexRange(*interval, any(r.depends_on_data for r in bounds))

    def _substitute_type(self, type: Type | None) -> Type | None:
        return type and Type(tuple([self._size(size) for size in type.shape]), type.dtype)

    def _size(self, size: Dim) -> Dim:
        return size if isinstance(size, int) else check_size_limits(substitute(size, self.values))

    def _attributes(self, attributes: Settings) -> dict[str, object]:
        return {name: self.value_of(value) for name, value in attributes.items()}

    def value_of(self, value: object) -> object:
        """Substitute the sizes in a static value."""
        if is_list(value):
            return tuple([self.value_of(item) for item in value])
        return self._size(value) if isinstance(value, Polynomial) else value

    def constant(self, value: object) -> Range:
        """Return the range of a constant operand."""
        value = self.value_of(value)
        return IndexRange(value, value) if isinstance(value, int) else None

    def _size_error(self, message: str, span: Span | None, help: str | None = None) -> ArchError:
        return make_error("bad-size", f"{self._prefix}, {message}", span, help=help)


def dimensions(inputs: Iterable[tuple[str, Type]]) -> list[str]:
    """Return the symbolic dimensions of the inputs, in order of appearance."""
    return list(dict.fromkeys(name for _, type in inputs for size in type.shape for name in sorted(symbols(size))))
