"""The design space: all combinations of the values of the varied hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import cast

from archspec.analysis.search.columns import MAX_INT64, Array, Column, Value, as_exact, column, is_column, numpy
from archspec.analysis.search.conditions import Expression, evaluate_expression, read_expression
from archspec.analysis.search.polynomials import evaluate_integers
from archspec.analysis.search.quantities import Quantity
from archspec.compiler.literals import parse_literal
from archspec.core import algebra
from archspec.core.diagnostics import make_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree

MAX_DESIGNS = 10**8

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*\S)\s*", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})(?:\s*:\s*(\d{1,18}))?")
_OTHER_RANGE = re.compile(r"(\d+)\s*(?:-|:|\.{3}|\bto\b)\s*(\d+)(:\d+)?")
"""Ranges in the syntax of other tools."""


class Axis(Node):
    """A varied hyperparameter. `is_integer` is whether all its values are integers."""

    name: str
    values: Sequence[PlainValue]
    is_integer: bool


class Block(Node):
    """Designs that share the values of all hyperparameters that are not integers.

    `values` are the values of the varied hyperparameters, and `numbers` the positions of the designs in the space.
    """

    numbers: Array
    values: dict[str, Value]

    def value(self, name: str) -> Value:
        return self.values[name]

    def quantity(self, quantity: Quantity) -> Value:
        raise AssertionError(f"{quantity} is unknown before designs are examined")


class Space:
    """All combinations. The last integer varies fastest, hyperparameters that are not integers vary slowest."""

    def __init__(self, axes: Sequence[Axis], derived: Mapping[str, Expression]) -> None:
        self.names = [axis.name for axis in axes] + list(derived)
        self.derived = derived
        self._integers = [axis for axis in axes if axis.is_integer]
        self._others = [axis for axis in axes if not axis.is_integer]
        self._columns = {axis.name: _column_reader(axis.values) for axis in self._integers}
        self._inner = prod(len(axis.values) for axis in self._integers)
        self.size = self._inner * prod(len(axis.values) for axis in self._others)

    def blocks(self, maximum: int) -> Iterator[Block]:
        """Yield all designs, at most `maximum` at a time."""
        for variant, values in enumerate(product(*[axis.values for axis in self._others])):
            fixed = {axis.name: value for axis, value in zip(self._others, values, strict=True)}
            for start in range(0, self._inner, maximum):
                inner = numpy().arange(start, min(start + maximum, self._inner))
                yield self._block(inner + variant * self._inner, inner, fixed)

    def values(self, number: int) -> dict[str, PlainValue]:
        """Return the values of the varied hyperparameters in the design at a position."""
        variant, inner = divmod(number, self._inner)
        block = self._block(numpy().array([number]), numpy().array([inner]), self._fixed_values(variant))
        return {name: plain_value(block.values[name], 0) for name in self.names}

    def columns(self, numbers: Array) -> dict[str, Array]:
        """Return the values of the varied hyperparameters in the designs at `numbers`, which are sorted."""
        np = numpy()
        columns: dict[str, list[Array]] = {name: [] for name in self.names}
        variants, starts = np.unique(numbers // self._inner, return_index=True)
        for variant, start, end in zip(variants, starts, [*starts[1:], len(numbers)], strict=True):
            part = numbers[start:end]
            block = self._block(part, part % self._inner, self._fixed_values(int(variant)))
            for name in self.names:
                columns[name].append(_to_array(block.values[name], len(part)))
        return {name: np.concatenate(parts) for name, parts in columns.items()}

    def _fixed_values(self, variant: int) -> dict[str, PlainValue]:
        """Return the values of the hyperparameters that are not integers."""
        fixed: dict[str, PlainValue] = {}
        for axis in reversed(self._others):
            variant, position = divmod(variant, len(axis.values))
            fixed[axis.name] = axis.values[position]
        return fixed

    def _block(self, numbers: Array, inner: Array, fixed: Mapping[str, PlainValue]) -> Block:
        values: dict[str, Value] = {n: as_exact(v) if isinstance(v, float) else v for n, v in fixed.items()}
        for axis in reversed(self._integers):
            inner, positions = numpy().divmod(inner, len(axis.values))
            values[axis.name] = self._columns[axis.name](positions)
        block = Block(numbers, values)
        for name, expr in self.derived.items():
            block.values[name] = evaluate_expression(expr, block)
        return block


def _column_reader(values: Sequence[PlainValue]) -> Callable[[Array], Column]:
    """Return a function from positions to integers."""
    if isinstance(values, range):  # may have MAX_DESIGNS items, so it is not expanded
        first, last, step = values[0], values[-1], values.step
        if max(abs(first), abs(last)) <= MAX_INT64:
            return lambda positions: Column(first + step * positions, min(first, last), max(first, last))
    return column([value for value in values if isinstance(value, int)]).take


def _to_array(value: Value, length: int) -> Array:
    """Return the values of `length` designs as an array."""
    if is_column(value):
        return value.values
    array = numpy().empty(length, dtype=object)
    array[:] = [plain_value(value, 0)] * length
    return array


def plain_value(value: Value, position: int) -> PlainValue:
    """Return the value of one design in the form that `archspec.load` accepts."""
    if isinstance(value, Column):
        return value.item(position)
    if isinstance(value, list):
        return [plain_value(item, position) for item in value]
    return float(value) if isinstance(value, Fraction) else value


def build_space(varied: Mapping[str, object], names: Collection[str]) -> Space:
    """Build the space of the varied hyperparameters. `names` are all hyperparameters of the model.

    A choice is a sequence of values, or text: a range `2..24:2`, whose end is included, a list, or an expression over
    other varied hyperparameters. Raises ArchError (`usage`).
    """
    axes: list[Axis] = []
    texts: dict[str, str] = {}
    for name, choice in varied.items():
        values = _values(name, choice, names)
        if isinstance(values, str):
            texts[name] = values
        else:
            is_integer = isinstance(values, range) or all(type(value) is int for value in values)
            axes.append(Axis(name, values, is_integer))
    size = prod(len(axis.values) for axis in axes)
    if size > MAX_DESIGNS:
        sizes = " x ".join(f"{len(axis.values):,}" for axis in axes)
        message = f"the search has {size:,} designs ({sizes}): the limit is {MAX_DESIGNS:,}"
        raise make_error("usage", message, help="vary fewer hyperparameters, or use larger steps (`256..1024:64`)")
    others = [name for name in names if name not in varied]
    return Space(
        axes,
        _sort_by_dependency(
            {name: read_expression(text, _label(name), varied, others) for name, text in texts.items()}
        ),
    )


def parse_vary(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUES`. Raises ArchError (`usage`)."""
    match = _NAMED.fullmatch(text)
    if match is None:
        raise make_error(
            "usage", f"invalid --vary `{text}`: expected NAME=VALUES", help="write `--vary layers=2..24`, for example"
        )
    return match[1], match[2]


def _label(name: str) -> str:
    return f"--vary {name}"


def _values(name: str, choice: object, names: Collection[str]) -> Sequence[PlainValue] | str:
    """Return the values of an axis, or the text of an expression."""
    if isinstance(choice, range):
        return _check_not_empty(name, choice, str(choice))
    if not isinstance(choice, str):
        values = cast("Iterable[PlainValue]", choice) if isinstance(choice, Iterable) else ()
        return _check_not_empty(name, list(islice(values, MAX_DESIGNS + 1)), f"{choice!r:.80}")
    match = _RANGE.fullmatch(choice.strip())
    if match is not None:
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if step < 1:
            raise make_error("usage", f"invalid step of `{name}={choice}`: expected a positive integer")
        return _check_not_empty(name, range(first, last + 1, step), choice)
    foreign = _OTHER_RANGE.fullmatch(choice.strip())
    if foreign is not None:
        help = f"write `--vary {name}={foreign[1]}..{foreign[2]}{foreign[3] or ''}`, which includes the end"
        raise make_error("usage", f"invalid range `{choice.strip()}` of `{name}`", help=help)
    value = parse_literal(choice)
    if isinstance(value, list):
        return _check_not_empty(name, value, choice)
    if value is ... or (isinstance(value, str) and value in names):
        return choice
    return [value]


def _check_not_empty(name: str, values: Sequence[PlainValue], text: str) -> Sequence[PlainValue]:
    if not values:
        help = "use a range (`2..24`, with its end), a list (`[2, 4, 8]`) or an expression (`hidden // 64`)"
        raise make_error("usage", f"`{name}={text}` has no values", help=help)
    return values


def _sort_by_dependency(derived: Mapping[str, Expression]) -> dict[str, Expression]:
    """Sort expressions by their dependencies. Raises ArchError if they are circular or depend on other values."""
    ordered: dict[str, Expression] = {}
    for name, expr in derived.items():
        if isinstance(expr.node, tree.ListLiteral):
            help = "list values (`[2, 4, 8]`), or use an expression without brackets"
            raise make_error("usage", f"the value of `{name}` cannot be a list of expressions", help=help)
        if expr.quantity_by_offset:
            quantity = next(iter(expr.quantity_by_offset.values()))
            is_other = quantity.kind == "hyperparameter"
            help = f"vary it or fix it: `--vary {quantity}=...`" if is_other else None
            cause = f"`{quantity}`, which is not varied" if is_other else f"`{quantity}`"
            raise make_error("usage", f"the value of `{name}` cannot depend on {cause}", help=help)
    while len(ordered) < len(derived):
        ready = [
            n for n, e in derived.items() if n not in ordered and not (set(e.names) & derived.keys()) - ordered.keys()
        ]
        if not ready:
            names = ", ".join(f"`{name}`" for name in derived if name not in ordered)
            raise make_error("usage", f"circular definition of {names}")
        ordered |= {name: derived[name] for name in ready}
    return ordered


# Designs under examination --------------------------------------------------------------------------------------------


class Designs:
    """Designs with their positions in the space and the values of the varied hyperparameters.

    `formulas` are formulas of quantities in the varied integers; they are evaluated on demand.
    """

    def __init__(self, numbers: Array, values: Mapping[str, Value]) -> None:
        self.numbers = numbers
        self.values = values
        self.formulas: Mapping[Quantity, algebra.Expression] = {}
        self.quantities: dict[Quantity, Value] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def value(self, name: str) -> Value:
        return self.values[name]

    def quantity(self, quantity: Quantity) -> Value:
        if quantity not in self.quantities:
            self.quantities[quantity] = evaluate_integers(self.formulas[quantity], self.columns, len(self))
        return self.quantities[quantity]

    def has_quantity(self, quantity: Quantity) -> bool:
        return quantity in self.quantities or quantity in self.formulas

    @property
    def columns(self) -> dict[str, Column]:
        """The values that differ between the designs."""
        return {name: value for name, value in self.values.items() if is_column(value)}

    def take(self, selection: Array | slice) -> Designs:
        """Return the designs at the selected positions, or where an array of booleans is true."""
        designs = Designs(
            self.numbers[selection], {name: _take(value, selection) for name, value in self.values.items()}
        )
        designs.formulas = self.formulas
        designs.quantities = {quantity: _take(value, selection) for quantity, value in self.quantities.items()}
        return designs

    def where(self, condition: Value) -> Designs:
        """Return the designs for which a condition holds."""
        if is_column(condition):
            if not condition.is_flag:
                raise TypeError("expected a condition")
            return self.take(condition.values)
        if not isinstance(condition, bool):
            raise TypeError("expected a condition")
        return self if condition else self.take(slice(0))


def _take(value: Value, selection: Array | slice) -> Value:
    return value.take(selection) if is_column(value) else value
