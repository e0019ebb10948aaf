"""What a compilation with open hyperparameters begins with, what it assumes, and what makes another one necessary."""

from __future__ import annotations

from typing import Any, NamedTuple

from archspec.algebra import (
    Dim,
    Expression,
    Polynomial,
    atoms,
    by_power,
    expression,
    number,
    ratio,
    substitute,
    symbol,
)
from archspec.source import Span

MARK = "\u02b9"  # no name of a spec has it


class Assumption(NamedTuple):
    """`left operator right`; "divisible" says that left is divisible by right. `span` is what asks for it."""

    operator: str
    left: Expression
    right: Expression
    span: Span

    @property
    def written(self) -> str:
        """What the spec says there."""
        return " ".join(self.span.source.text[self.span.start : self.span.end].split())

    def substitute(self, values: dict[str, Expression]) -> Assumption:
        return self._replace(left=substitute(self.left, values), right=substitute(self.right, values))

    def holds(self, values: dict[str, int]) -> bool:
        """Whether it does where every name has a value."""
        left, right = number(substitute(self.left, values)), number(substitute(self.right, values))
        assert left is not None and right is not None
        match self.operator:
            case "divisible":
                return right != 0 and left % right == 0
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<" | ">":
                return (left < right) == (self.operator == "<") and left != right
            case _:
                return left == right or (left < right) == (self.operator == "<=")


class Schedule(NamedTuple):
    """How the rounds of a loop with an open count are taken apart: so many at its beginning and at its end one by one,
    those between in classes of every `stride`-th.
    """

    prefix: int = 0
    tail: int = 0
    stride: int = 1


class Segment(NamedTuple):
    """Rounds of a loop that are compiled as one, at the index `position`: an expression of `symbol`, which goes from 1
    to `number`.

    `text` stands for the index in addresses, and `variable` is its name in the spec; `first` is its first value.
    """

    key: Any
    symbol: str
    position: Dim
    number: Dim
    text: str
    variable: str
    first: Dim
    stride: int


class Rounds(NamedTuple):
    """The rounds of a loop: single ones by their index, classes of those from `start` up to `stop` without `stop`, and
    single ones again.
    """

    head: tuple[Dim, ...]
    segments: tuple[Segment, ...]
    tail: tuple[Dim, ...]
    start: Dim
    stop: Dim
    schedule: Schedule


class State(NamedTuple):
    """What a compilation begins with.

    `hyperparameters` are those left open, in symbols; `meanings` are the symbols in hyperparameters, for messages;
    `point` gives the symbols' values at the model's own hyperparameters, None where it is none of those allowed;
    `closed` are the other integers among these.
    """

    hyperparameters: dict[str, Dim]
    meanings: dict[str, Expression]
    point: dict[str, int | None]
    closed: dict[str, int]
    schedules: dict[Any, Schedule]

    def replaced(self, old: str, by: Dim, fresh: str | None, value: int | None, meaning: Expression) -> State:
        """With a symbol replaced by an expression of another one, whose value and meaning are given.

        How loops are taken apart is found anew, as less may be needed then.
        """
        point, meanings = dict(self.point), dict(self.meanings)
        del point[old], meanings[old]
        if fresh is not None:
            point[fresh], meanings[fresh] = value, meaning
        changed = {n: substitute(dim, {old: by}) for n, dim in self.hyperparameters.items()}
        return State(changed, meanings, point, self.closed, {})


class Step(Exception):
    """Something that another compilation has to begin with."""


class Solved(Step):
    """`old` is `by`, an expression of `fresh`, which is `inverse` in the symbols there were; so `assumption` holds."""

    def __init__(self, old: str, by: Dim, fresh: str, inverse: Expression, assumption: Assumption) -> None:
        self.old, self.by, self.fresh, self.inverse, self.assumption = old, by, fresh, inverse, assumption


class Cases(Step):
    """Something at `span` is decided by whether a symbol is at most `upto`."""

    def __init__(self, name: str, upto: int, span: Span) -> None:
        self.name, self.upto, self.span = name, upto, span


class Rescheduled(Step):
    """The rounds of a loop are to be taken apart differently."""

    def __init__(self, key: Any, schedule: Schedule) -> None:
        self.key, self.schedule = key, schedule


class Probed(Rescheduled):
    """Something is wrong with a round of a loop; single rounds may show what they change."""


class Widened(Step):
    """Something can be assumed only if these hyperparameters are open too."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names


class Refusal(Exception):
    """No formula can be derived; why has been reported."""


def slope_of(dim: Dim, name: str) -> int | None:
    """The a where `dim` is a * name + b with no `name` in b; None if it is not so."""
    powers = by_power(dim, name)
    if powers is None or not powers.keys() <= {0, 1}:
        return None
    slope = powers.get(1, 0)
    return slope if isinstance(slope, int) else None


def divided_by(name: str, by: Dim) -> Expression | None:
    """The symbol of that name divided by `by`; None if that is not a polynomial."""
    try:
        return ratio(symbol(name), by)
    except ValueError:
        return None


def threshold(dim: Dim, name: str) -> int | None:
    """The integer from which on, exclusive, the sign of `dim` = a * name + b stays what it is."""
    slope = slope_of(dim, name)
    if not slope:
        return None
    rest = dim - slope * symbol(name)
    return -rest // slope if isinstance(rest, int) else None


def divided(dim: Dim) -> tuple[Dim, Dim] | None:
    """(a, b) if `dim` is 0 where a is divisible by b, and nowhere else."""
    if not isinstance(dim, Polynomial) or len(dim.terms) != 1:
        return None
    compound = [atom for atom in atoms(dim) if atom.kind != "symbol"]
    if len(compound) != 1 or compound[0].kind != "%":
        return None
    part, divisor = compound[0].arguments
    return expression(part), expression(divisor)
