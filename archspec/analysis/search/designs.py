"""Designs under examination: the values of varied hyperparameters, and of quantities once they are known."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.analysis.search.columns import Array, Column, Value, is_column
from archspec.analysis.search.polynomials import values as values_of
from archspec.analysis.search.quantities import Quantity
from archspec.core.algebra import Expression


class Designs:
    """Some designs: their positions in the space, and the values of their hyperparameters.

    `formulas` are those of quantities in the integers among them; they are evaluated when they are needed.
    """

    def __init__(self, numbers: Array, values: Mapping[str, Value]) -> None:
        self.numbers = numbers
        self.values = values
        self.formulas: Mapping[Quantity, Expression] = {}
        self.quantities: dict[Quantity, Value] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def value(self, name: str) -> Value:
        return self.values[name]

    def quantity(self, quantity: Quantity) -> Value:
        known = self.quantities.get(quantity)
        if known is None:
            known = self.quantities[quantity] = values_of(self.formulas[quantity], self.columns, len(self))
        return known

    def knows(self, quantity: Quantity) -> bool:
        return quantity in self.quantities or quantity in self.formulas

    @property
    def columns(self) -> dict[str, Column]:
        """The values that differ between the designs."""
        return {name: value for name, value in self.values.items() if is_column(value)}

    def take(self, chosen: Array | slice) -> Designs:
        """Return the designs at some positions, or where an array of booleans is true."""
        found = Designs(self.numbers[chosen], {name: _taken(value, chosen) for name, value in self.values.items()})
        found.formulas = self.formulas
        found.quantities = {quantity: _taken(value, chosen) for quantity, value in self.quantities.items()}
        return found

    def where(self, condition: Value) -> Designs:
        """Return the designs for which a condition holds."""
        if is_column(condition):
            if not condition.is_flag:
                raise TypeError("expected a condition")
            return self.take(condition.values)
        if not isinstance(condition, bool):
            raise TypeError("expected a condition")
        return self if condition else self.take(slice(0))


def _taken(value: Value, chosen: Array | slice) -> Value:
    return value.take(chosen) if is_column(value) else value
