"""Values for a model's symbolic dimensions, and whether it can run at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from archspec.bodies.step_budget import Effort
from archspec.dims import LARGEST, Dim, Symbolic, substitute
from archspec.ir import Body, Call, Constant, Operand, Type
from archspec.ops import OPS, OpError
from archspec.source import ArchError, Span, fail, suggest
from archspec.work import operand_type

Range: TypeAlias = tuple[int, int] | None
"""The least and the greatest integer that a tensor holds, where that follows from sizes alone."""


def chosen(model: str, dimensions: list[str], given: Mapping[str, Any]) -> dict[str, int]:
    """The sizes given, checked: names of `dimensions`, each with an integer from 1 to 2^63 - 1. Raises ArchError."""
    for name, size in given.items():
        if name not in dimensions:
            if not dimensions:
                raise fail("usage", f"{model} has no dimension called `{name}`: all its sizes are fixed")
            help = f"it has {', '.join(dimensions)}; `--dim NAME=N` sets one, as `dims={{...}}` does in Python"
            near = suggest(name, dimensions)
            raise fail("usage", f"{model} has no dimension called `{name}`", help=f"{near} {help}" if near else help)
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST:
            raise fail("usage", f"the dimension `{name}` is an integer from 1 to 2^63 - 1, not {size!r:.40}")
    return dict(given)


def check_sizes(body: Body, values: Mapping[str, int]) -> None:
    """Raises ArchError with code `bad-size` if the model cannot run at these sizes: an operation does not take them, or
    positions counted up to them go beyond the table that they are looked up in.
    """
    if values:
        _Check(values).ranges(body, tuple([None] * len(body.inputs)), _Place("", None))


class _Place(NamedTuple):
    """The layer or block that is looked at: its address, and where it is applied."""

    address: str
    span: Span | None


class _Check:
    """Goes through every body once for each set of ranges that its inputs have."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self._known: dict[tuple[Body, tuple[Range, ...]], list[Range]] = {}
        self._fitted: set[Body] = set()
        self._effort = Effort()
        self._at = "at " + ", ".join(f"{name} = {size}" for name, size in values.items())

    def ranges(self, body: Body, inputs: tuple[Range, ...], place: _Place) -> list[Range]:
        """The ranges of a body's outputs that are there."""
        known = self._known.get((body, inputs))
        if known is not None:
            return known
        self._effort.spend(body)
        is_new = body not in self._fitted
        self._fitted.add(body)
        slots: list[Range] = [*inputs, *[None] * (len(body.types) - len(inputs))]
        for call in body.calls:
            operands = [_range(operand, slots) for _, operand in call.inputs]
            if call.body is not None:
                given = tuple([r for r, (_, o) in zip(operands, call.inputs, strict=True) if isinstance(o, int)])
                address = f"{place.address}.{call.address}" if place.address and call.address else call.address
                inner = _Place(address, call.span) if call.address else place
                for i, result in enumerate(self.ranges(call.body, given, inner)):
                    slots[call.first + i] = result
                continue
            if is_new:
                self._fit(call, body.types)
            self._look_up(call, operands, body.types, place)
            slots[call.first] = self._result(call, operands, body.types)
        result = [slots[slot] for _, slot in body.outputs if isinstance(slot, int)]
        self._known[body, inputs] = result
        return result

    def _fit(self, call: Call, types: list[Type]) -> None:
        """Refuses what an operation does not take at these sizes."""
        try:
            inputs = [self._sized(operand_type(operand, types)) for _, operand in call.inputs]
            OPS[call.type].rule(inputs, {name: self._value(value) for name, value in call.attributes.items()})
            for result in call.outputs:
                self._sized(result)
        except OpError as error:
            raise self._refused(error.message, call.span, error.help) from None
        except (ZeroDivisionError, OverflowError) as error:
            raise self._refused(f"`{call.type}` has no sizes: {error}", call.span) from None

    def _look_up(self, call: Call, operands: list[Range], types: list[Type], place: _Place) -> None:
        """Refuses an index beyond the axis that it picks from."""
        if call.type not in _LOOK_UPS:
            return
        index, table = _LOOK_UPS[call.type]
        picked, held = operands[index], operand_type(call.inputs[table][1], types)
        assert held is not None
        axis: int = call.attributes.get("axis", 0)
        rows = self._size(held.shape[axis])
        if picked is not None and isinstance(rows, int) and not 0 <= picked[0] <= picked[1] < rows:
            wrong = picked[1] if picked[1] >= rows else picked[0]
            where = f"`{place.address or call.type}`"
            message = f"{where} looks up index {wrong}, and its indices end at {rows - 1}"
            raise self._refused(message, place.span or call.span)

    def _result(self, call: Call, operands: list[Range], types: list[Type]) -> Range:
        """The range of what an operation yields, where its ends do come about for some input."""
        match call.type:
            case "arange":
                stop = self._size(call.attributes["stop"])
                return (0, stop - 1) if isinstance(stop, int) else None
            case "full":
                return _range(Constant(self._value(call.attributes["value"])), [])
            case "int":
                held = operand_type(call.inputs[0][1], types)
                return (0, 1) if held is not None and held.dtype == "bool" else operands[0]
            case "reshape" | "transpose" | "permute" | "expand":
                return operands[0]
            case "cumsum":
                axis: int = call.attributes["axis"]
                steps = self._size(types[call.first].shape[axis])
                if operands[0] is None or not isinstance(steps, int):
                    return None
                low, high = operands[0]
                return min(low, low * steps), max(high, high * steps)
            case "add" | "sub" | "mul" | "min" | "max":
                a, b = operands
                return _ARITHMETIC[call.type](a, b) if a is not None and b is not None else None
            case _:
                return None

    def _sized(self, type: Type | None) -> Type | None:
        return type and Type(tuple([self._size(size) for size in type.shape]), type.dtype)

    def _size(self, size: Dim) -> Dim:
        return substitute(size, self.values)

    def _value(self, value: Any) -> Any:
        """A static value with the sizes in it."""
        if isinstance(value, tuple):
            return tuple([self._value(item) for item in cast("tuple[Any, ...]", value)])
        return self._size(value) if isinstance(value, Symbolic) else value

    def _refused(self, message: str, span: Span, help: str | None = None) -> ArchError:
        return fail("bad-size", f"{self._at}, {message}", span, help=help)


_LOOK_UPS = {"embedding": (0, 1), "gather": (1, 0), "expert_linear": (1, 2)}
"""Where among its inputs an operation has the index, and what the index picks from."""


def _times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


_ARITHMETIC: dict[str, Callable[[tuple[int, int], tuple[int, int]], tuple[int, int]]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _times,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def _range(operand: Operand, slots: list[Range]) -> Range:
    if isinstance(operand, Constant):
        value = operand.value
        return (value, value) if isinstance(value, int) and not isinstance(value, bool) else None
    return slots[operand] if operand is not None else None
