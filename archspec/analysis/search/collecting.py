"""Collection of the designs that satisfy the conditions of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.analysis.search.columns import Array, Column, Value, binary, column, is_column, joined, numpy
from archspec.analysis.search.conditions import Expression, evaluated
from archspec.analysis.search.designs import Designs
from archspec.analysis.search.front import front, ranks
from archspec.analysis.search.quantities import Quantity
from archspec.core.diagnostics import Span, make_error

MAX_COLLECTED_DESIGNS = 10_000_000
MAX_NEAREST = 10
MAX_DOTS = 2_000
"""The designs that a plot shows in addition to the best ones."""


class SelectedDesigns:
    """Designs that are kept: positions, the values of expressions and quantities, and how many equal ones each has."""

    def __init__(self, numbers: Array, values: Mapping[str, Column], counts: Array) -> None:
        self.numbers = numbers
        self.values = values
        self.counts = counts

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, chosen: Array | slice) -> SelectedDesigns:
        values = {name: values.take(chosen) for name, values in self.values.items()}
        return SelectedDesigns(self.numbers[chosen], values, self.counts[chosen])

    def columns(self) -> dict[str, Array]:
        return {name: values.values for name, values in self.values.items()}

    def row(self, place: int) -> dict[str, int]:
        return {name: values.at(place) for name, values in self.values.items()}

    def sorted(self) -> SelectedDesigns:
        """Return the designs in the order of the space."""
        return self.take(numpy().argsort(self.numbers, kind="stable"))


class Collector:
    """Keeps the best, the nearest, or all designs.

    `values` are the expressions and quantities whose values are kept, by their names. `best` are names of those that
    should be large, and `near` is the name of one with the value that it should have; without either, or with
    `keeps_all`, all designs are kept.
    """

    def __init__(
        self,
        values: Mapping[str, Expression | Quantity],
        best: Sequence[str] = (),
        near: tuple[str, int] | None = None,
        keeps_all: bool = False,
    ) -> None:
        self.values = values
        self.best = best
        self.near = near
        self.keeps_all = keeps_all or not (best or near)
        self.chosen: SelectedDesigns | None = None
        self._all: list[SelectedDesigns] = []
        self._dots: list[SelectedDesigns] = []
        self._stride = 1
        self._seen = 0

    def add(self, designs: Designs) -> None:
        """Add designs that satisfy the conditions."""
        np = numpy()
        found = SelectedDesigns(
            designs.numbers,
            {name: _column(value, designs) for name, value in self.values.items()},
            np.ones(len(designs), dtype=np.int64),
        )
        if self.keeps_all:
            if self._seen + len(found) > MAX_COLLECTED_DESIGNS:
                message = f"more than {MAX_COLLECTED_DESIGNS:,} designs satisfy the conditions"
                raise make_error("usage", message, help="add a --where, or a --best without --all")
            self._all.append(found)
        if self.best:
            self.chosen = self._better(found)
            self._sample(found)
        elif self.near is not None:
            self.chosen = self._nearer(found, *self.near)
        self._seen += len(found)

    def all(self) -> SelectedDesigns | None:
        """Return all designs in the order of the space, if they are kept; None if there are none."""
        return _merged(self._all).sorted() if self._all else None

    def dots(self) -> SelectedDesigns | None:
        """Return some of all designs, evenly chosen; None if there are none."""
        return _merged(self._dots).sorted() if self._dots else None

    def _better(self, found: SelectedDesigns) -> SelectedDesigns:
        found = self._undominated(found)
        return found if self.chosen is None else self._undominated(_merged([self.chosen, found]).sorted())

    def _undominated(self, found: SelectedDesigns) -> SelectedDesigns:
        rows, counts = front(ranks([found.values[name].values for name in self.best]), found.counts)
        kept = found.take(rows)
        return SelectedDesigns(kept.numbers, kept.values, counts)

    def _nearer(self, found: SelectedDesigns, name: str, target: int) -> SelectedDesigns:
        both = _merged([self.chosen, found]) if self.chosen is not None else found
        off = binary("-", both.values[name], target)
        assert is_column(off)
        order = numpy().lexsort([both.numbers, ranks([abs(off.values)])[:, 0]])
        return both.take(order[:MAX_NEAREST])

    def _sample(self, found: SelectedDesigns) -> None:
        """Keep every so many designs, and fewer when they become too many."""
        first = -self._seen % self._stride
        self._dots.append(found.take(slice(first, None, self._stride)))
        while sum(map(len, self._dots)) > MAX_DOTS:
            self._dots = [_merged(self._dots).take(slice(None, None, 2))]
            self._stride *= 2


def _merged(parts: Sequence[SelectedDesigns]) -> SelectedDesigns:
    np = numpy()
    values = {name: joined([part.values[name] for part in parts]) for name in parts[0].values}
    numbers = np.concatenate([part.numbers for part in parts])
    return SelectedDesigns(numbers, values, np.concatenate([part.counts for part in parts]))


def _column(value: Expression | Quantity, designs: Designs) -> Column:
    """Return the values of an expression or a quantity, which must be integers."""
    found: Value = designs.quantity(value) if isinstance(value, Quantity) else evaluated(value, designs)
    if is_column(found) and not found.is_flag:
        return found
    if isinstance(found, int) and not isinstance(found, bool):
        return Column(numpy().full(len(designs), found, dtype=column([found]).values.dtype), found, found)
    span = Span(value.source, value.node.start, value.node.end) if isinstance(value, Expression) else None
    raise make_error("usage", f"expected an integer: `{value}`", span)
