"""Initial states of compilations with open hyperparameters, their assumptions, and the reasons for restarts."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import NamedTuple

from archspec.core.algebra import (
    Dim,
    Expression,
    Polynomial,
    atoms,
    coefficients_by_power,
    expression,
    number,
    ratio,
    substitute,
    symbol,
)
from archspec.core.diagnostics import Span

MARK = "\u02b9"
"""The suffix of symbols, which cannot occur in a name of a spec."""


class Assumption(NamedTuple):
    """`left operator right`; "divisible" means that left is divisible by right. `span` locates the constraint.

    With `is_required`, the spec refuses all values for which it does not hold; without, there may only be no formula.
    """

    operator: str
    left: Expression
    right: Expression
    span: Span
    is_required: bool = False

    @property
    def written(self) -> str:
        """Return the source of the constraint."""
        return " ".join(self.span.source.text[self.span.start : self.span.end].split())

    def substitute(self, values: dict[str, Expression]) -> Assumption:
        return self._replace(left=substitute(self.left, values), right=substitute(self.right, values))

    def holds(self, values: dict[str, int]) -> bool:
        """Whether the assumption holds for these values of all names."""
        left, right = number(substitute(self.left, values)), number(substitute(self.right, values))
        assert left is not None and right is not None
        if self.operator == "divisible":
            return right != 0 and left % right == 0
        return bool(COMPARE[self.operator](left, right))


COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Schedule(NamedTuple):
    """The division of a loop with an open iteration count.

    There are `prefix` single iterations at the start, `tail` at the end, and residue classes modulo `stride` in
    between.
    """

    prefix: int = 0
    tail: int = 0
    stride: int = 1


class Segment(NamedTuple):
    """Iterations of a loop that are compiled as one.

    The index is `position`, an expression of `symbol`, which runs from 1 to `number`. `text` represents the index in
    addresses, `variable` is its name in the spec, and `first` its first value.
    """

    key: Hashable
    symbol: str
    position: Dim
    number: Dim
    text: str
    variable: str
    first: Dim
    stride: int


def is_segment_index(text: str) -> bool:
    """Whether the text of an index represents the indices of a segment."""
    return "~" in text


class Iterations(NamedTuple):
    """The iterations of a loop: single ones by index, segments from `start` up to but excluding `stop`, single ones."""

    head: tuple[Dim, ...]
    segments: tuple[Segment, ...]
    tail: tuple[Dim, ...]
    start: Dim
    stop: Dim


class State(NamedTuple):
    """The initial state of a compilation.

    `hyperparameters` are the open ones, in symbols; `meanings` are the symbols in terms of hyperparameters, for
    messages; `point` has the symbols' values for the hyperparameters of the model, None for values that are not
    allowed; `closed` are the other integer hyperparameters.
    """

    hyperparameters: dict[str, Dim]
    meanings: dict[str, Expression]
    point: dict[str, int | None]
    closed: dict[str, int]
    schedules: dict[Hashable, Schedule]

    def replace_symbol(self, old: str, replacement: Dim, new_symbol: str = "", inverse: Expression = 0) -> State:
        """Replace a symbol by a number, or by an expression of `new_symbol`, which is `inverse` in the old symbols.

        The division of loops is determined again, because a simpler one may suffice.
        """
        point, meanings = dict(self.point), dict(self.meanings)
        del point[old], meanings[old]
        if new_symbol:
            point[new_symbol], meanings[new_symbol] = self.value(inverse), substitute(inverse, self.meanings)
        changed = {n: substitute(dim, {old: replacement}) for n, dim in self.hyperparameters.items()}
        return State(changed, meanings, point, self.closed, {})

    def unused_symbol(self, old: str) -> str:
        """Return an unused symbol."""
        while old in self.point:
            old += MARK
        return old

    def value(self, expression: Expression) -> int | None:
        """Return the value for the hyperparameters of the model; None if it is not a positive integer."""
        value = substitute(expression, {name: value for name, value in self.point.items() if value is not None})
        return value if isinstance(value, int) and value >= 1 else None


class Restart(Exception):
    """A restart of the compilation with a different state."""


class SubstitutionRestart(Restart):
    """A restart with `old` replaced by an expression of the symbol `fresh`, so that `assumption` holds.

    `inverse` is `fresh` in the old symbols.
    """

    def __init__(self, old: str, replacement: Dim, fresh: str, inverse: Expression, assumption: Assumption) -> None:
        self.old, self.replacement, self.fresh, self.inverse = old, replacement, fresh, inverse
        self.assumption = assumption


class CasesRestart(Restart):
    """A restart by cases: a decision at `span` depends on whether a symbol is at most `upto`."""

    def __init__(self, name: str, upto: int, span: Span) -> None:
        self.name, self.upto, self.span = name, upto, span


class ScheduleRestart(Restart):
    """A restart with a different division of a loop."""

    def __init__(self, key: Hashable, schedule: Schedule) -> None:
        self.key, self.schedule = key, schedule


class ProbeRestart(ScheduleRestart):
    """A restart because an iteration has an error; processing iterations singly may determine the changes in each."""


class OpenRestart(Restart):
    """A restart with more open hyperparameters, which an assumption requires."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names


class NoFormulaError(Exception):
    """No formula can be derived; the reason has been reported."""


def linear_slope(dim: Dim, name: str) -> int | None:
    """Return a if `dim` is a * name + b without `name` in b; otherwise None."""
    powers = coefficients_by_power(dim, name)
    if powers is None or not powers.keys() <= {0, 1}:
        return None
    slope = powers.get(1, 0)
    return slope if isinstance(slope, int) else None


def divide_symbol(name: str, divisor: Dim) -> Expression | None:
    """Divide the symbol of this name; return None if the quotient is not a polynomial."""
    try:
        return ratio(symbol(name), divisor)
    except ValueError:
        return None


def threshold(dim: Dim, name: str) -> int | None:
    """Return the integer above which the sign of `dim` = a * name + b does not change; None for other expressions."""
    slope = linear_slope(dim, name)
    if not slope:
        return None
    constant = dim - slope * symbol(name)
    return -constant // slope if isinstance(constant, int) else None


def as_divisibility(dim: Dim) -> tuple[Dim, Dim] | None:
    """Return (a, b) if `dim` is 0 exactly if a is divisible by b; otherwise None."""
    if not isinstance(dim, Polynomial) or len(dim.terms) != 1:
        return None
    compound = [atom for atom in atoms(dim) if atom.kind != "symbol"]
    if len(compound) != 1 or compound[0].kind != "%":
        return None
    part, divisor = compound[0].arguments
    return expression(part), expression(divisor)
