"""The designs of a search: every combination of the values of the hyperparameters that are varied."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import cast

from archspec.analysis.search.columns import MAX_INT64, Array, Column, Value, column, exact, is_column, numpy
from archspec.analysis.search.conditions import Expression, evaluated, expression
from archspec.analysis.search.quantities import Quantity
from archspec.compiler.literals import parse_literal
from archspec.core.diagnostics import make_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree

MAX_DESIGNS = 10**8

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*\S)\s*", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})(?:\s*:\s*(\d{1,18}))?")
_OTHER_RANGE = re.compile(r"(\d+)\s*(?:-|:|\.{3}|\bto\b)\s*(\d+)(:\d+)?")
"""Ranges as they are written elsewhere."""


class Axis(Node):
    """A hyperparameter that takes several values. `is_integer` is whether all are integers."""

    name: str
    values: Sequence[PlainValue]
    is_integer: bool


class Block(Node):
    """Designs that share the values of all hyperparameters that are not integers.

    `values` are those of the varied hyperparameters, and `numbers` the positions of the designs in the space.
    """

    numbers: Array
    values: dict[str, Value]

    def value(self, name: str) -> Value:
        return self.values[name]

    def quantity(self, quantity: Quantity) -> Value:
        raise AssertionError(f"{quantity} is not known before a design is")


class Space:
    """All combinations. The last hyperparameter varies fastest, those that are not integers slowest."""

    def __init__(self, axes: Sequence[Axis], derived: Mapping[str, Expression]) -> None:
        self.names = [axis.name for axis in axes] + list(derived)
        self.derived = derived
        self._integers = [axis for axis in axes if axis.is_integer]
        self._others = [axis for axis in axes if not axis.is_integer]
        self._columns = {axis.name: _column(axis.values) for axis in self._integers}
        self._inner = prod(len(axis.values) for axis in self._integers)
        self.size = self._inner * prod(len(axis.values) for axis in self._others)

    def blocks(self, most: int) -> Iterator[Block]:
        """Yield all designs, at most so many at a time."""
        for number, values in enumerate(product(*[axis.values for axis in self._others])):
            fixed = {axis.name: value for axis, value in zip(self._others, values, strict=True)}
            for start in range(0, self._inner, most):
                inner = numpy().arange(start, min(start + most, self._inner))
                yield self._block(inner + number * self._inner, inner, fixed)

    def values(self, number: int) -> dict[str, PlainValue]:
        """Return the values of the varied hyperparameters in the design at a position."""
        variant, inner = divmod(number, self._inner)
        block = self._block(numpy().array([number]), numpy().array([inner]), self._fixed(variant))
        return {name: plain_at(block.values[name], 0) for name in self.names}

    def columns(self, numbers: Array) -> dict[str, Array]:
        """Return the values of the varied hyperparameters in the designs at these positions, which are in order."""
        np = numpy()
        found: dict[str, list[Array]] = {name: [] for name in self.names}
        variants, starts = np.unique(numbers // self._inner, return_index=True)
        for variant, start, end in zip(variants, starts, [*starts[1:], len(numbers)], strict=True):
            part = numbers[start:end]
            block = self._block(part, part % self._inner, self._fixed(int(variant)))
            for name in self.names:
                found[name].append(_array(block.values[name], len(part)))
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def _fixed(self, variant: int) -> dict[str, PlainValue]:
        """Return the values of the hyperparameters that are not integers."""
        fixed: dict[str, PlainValue] = {}
        for axis in reversed(self._others):
            variant, position = divmod(variant, len(axis.values))
            fixed[axis.name] = axis.values[position]
        return fixed

    def _block(self, numbers: Array, inner: Array, fixed: Mapping[str, PlainValue]) -> Block:
        values: dict[str, Value] = {n: exact(v) if isinstance(v, float) else v for n, v in fixed.items()}
        for axis in reversed(self._integers):
            inner, positions = numpy().divmod(inner, len(axis.values))
            values[axis.name] = self._columns[axis.name](positions)
        block = Block(numbers, values)
        for name, expr in self.derived.items():
            block.values[name] = evaluated(expr, block)
        return block


def _column(values: Sequence[PlainValue]) -> Callable[[Array], Column]:
    """Return a function from positions to the integers there."""
    if isinstance(values, range):  # of which there may be a hundred million
        first, last, step = values[0], values[-1], values.step
        if max(abs(first), abs(last)) <= MAX_INT64:
            return lambda positions: Column(first + step * positions, min(first, last), max(first, last))
    return column([value for value in values if isinstance(value, int)]).take


def _array(value: Value, length: int) -> Array:
    """Return the values of so many designs."""
    if is_column(value):
        return value.values
    found = numpy().empty(length, dtype=object)
    found[:] = [plain_at(value, 0)] * length
    return found


def plain_at(value: Value, position: int) -> PlainValue:
    """Return the value of one design, as `archspec.load` takes it."""
    if isinstance(value, Column):
        return value.at(position)
    if isinstance(value, list):
        return [plain_at(item, position) for item in value]
    return float(value) if isinstance(value, Fraction) else value


def space(varied: Mapping[str, object], known: Collection[str]) -> Space:
    """Return the space in which these hyperparameters vary; `known` are the names of all those of the model.

    A value is a sequence of values, or text: a range `2..24:2`, whose end is included, a list, or an expression over
    the others. Raises ArchError (`usage`).
    """
    axes: list[Axis] = []
    texts: dict[str, str] = {}
    for name, given in varied.items():
        values = _values(name, given, known)
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
    others = [name for name in known if name not in varied]
    return Space(axes, _ordered({name: expression(text, _label(name), varied, others) for name, text in texts.items()}))


def parse_vary(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUES`. Raises ArchError (`usage`)."""
    found = _NAMED.fullmatch(text)
    if found is None:
        raise make_error(
            "usage", f"invalid --vary `{text}`: expected NAME=VALUES", help="write it as `--vary layers=2..24`"
        )
    return found[1], found[2]


def _label(name: str) -> str:
    return f"--vary {name}"


def _values(name: str, given: object, known: Collection[str]) -> Sequence[PlainValue] | str:
    """Return the values of an axis, or the text of an expression."""
    if isinstance(given, range):
        return _not_empty(name, given, str(given))
    if not isinstance(given, str):
        values = cast("Iterable[PlainValue]", given) if isinstance(given, Iterable) else ()
        return _not_empty(name, list(islice(values, MAX_DESIGNS + 1)), f"{given!r:.80}")
    found = _RANGE.fullmatch(given.strip())
    if found is not None:
        first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if step < 1:
            raise make_error("usage", f"the step of `{name}={given}` is not positive")
        return _not_empty(name, range(first, last + 1, step), given)
    other = _OTHER_RANGE.fullmatch(given.strip())
    if other is not None:
        help = f"write it as `--vary {name}={other[1]}..{other[2]}{other[3] or ''}`, which includes the end"
        raise make_error("usage", f"invalid range `{given.strip()}` of `{name}`", help=help)
    value = parse_literal(given)
    if isinstance(value, list):
        return _not_empty(name, value, given)
    if value is ... or (isinstance(value, str) and value in known):
        return given
    return [value]


def _not_empty(name: str, values: Sequence[PlainValue], given: str) -> Sequence[PlainValue]:
    if not values:
        help = "give a range (`2..24`, with its end), a list (`[2, 4, 8]`) or an expression (`hidden // 64`)"
        raise make_error("usage", f"`{name}={given}` has no values", help=help)
    return values


def _ordered(derived: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return expressions so that each one follows those that it uses. Raises ArchError."""
    found: dict[str, Expression] = {}
    for name, expr in derived.items():
        if isinstance(expr.node, tree.ListLiteral):
            help = "list values (`[2, 4, 8]`), or use an expression without brackets"
            raise make_error("usage", f"the value of `{name}` cannot be a list of expressions", help=help)
        if expr.at:
            quantity = next(iter(expr.at.values()))
            is_other = quantity.kind == "hyperparameter"
            help = f"vary it, too, or fix it: `--vary {quantity}=...`" if is_other else None
            what = f"`{quantity}`, which is not varied" if is_other else f"`{quantity}`"
            raise make_error("usage", f"the value of `{name}` cannot depend on {what}", help=help)
    while len(found) < len(derived):
        ready = [n for n, e in derived.items() if n not in found and not (set(e.names) & derived.keys()) - found.keys()]
        if not ready:
            names = ", ".join(f"`{name}`" for name in derived if name not in found)
            raise make_error("usage", f"circular definition of {names}")
        found |= {name: derived[name] for name in ready}
    return found
