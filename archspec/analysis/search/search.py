"""Examination of all designs of a space, and collection of the designs that satisfy the conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from archspec.analysis.search.columns import (
    Array,
    Column,
    Value,
    apply_operator,
    as_exact,
    column,
    concatenate,
    flags,
    is_column,
    numpy,
)
from archspec.analysis.search.compilations import Compiler, Pool, Refusal
from archspec.analysis.search.conditions import Expression, evaluate_expression
from archspec.analysis.search.quantities import COMPILED_ONLY, Quantity
from archspec.analysis.search.regions import Regions
from archspec.analysis.search.space import Designs, Space, plain_value
from archspec.core.diagnostics import Span, make_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue

MAX_BLOCK_DESIGNS = 1 << 16
"""Maximum number of designs that are examined at a time."""

MAX_COMPILED_PER_PROCESS = 32
"""Maximum number of designs that each process compiles before results are collected."""

Progress = Callable[[int, int], None]
"""A callback that receives the numbers of examined and of satisfying designs."""


class SearchCounts(Node):
    """The numbers of designs: all, those examined, refused by the spec, satisfying the conditions, and compiled."""

    designs: int
    examined: int = 0
    refused: int = 0
    answers: int = 0
    compiled: int = 0
    is_interrupted: bool = False
    reason: str | None = None
    """The reason for compilations."""
    refusals: Mapping[str, int] = {}
    """The number of refused designs for each reason, the most frequent first."""


def examine(
    space: Space,
    compiler: Compiler,
    pool: Pool,
    conditions: Sequence[Expression],
    quantities: Sequence[Quantity],
    collector: Collector,
    progress: Progress | None = None,
) -> SearchCounts:
    """Pass all designs that satisfy the conditions to a collector. An interruption ends the search early."""
    search = _Search(compiler, pool, conditions, quantities, collector)
    tally = SearchCounts(space.size)
    try:
        for block in space.blocks(MAX_BLOCK_DESIGNS):
            search.examine(Designs(block.numbers, block.values), tally.examined, progress)
            tally = search.tally(tally, len(block.numbers))
            search.seen = 0
            if progress is not None:
                progress(tally.examined, tally.answers)
    except KeyboardInterrupt:
        return search.tally(tally, search.seen).replace(is_interrupted=True)
    return tally


class _Search:
    def __init__(
        self,
        compiler: Compiler,
        pool: Pool,
        conditions: Sequence[Expression],
        quantities: Sequence[Quantity],
        collector: Collector,
    ) -> None:
        self.compiler = compiler
        self.pool = pool
        self.conditions = conditions
        self.quantities = quantities
        self.collector = collector
        self.seen = 0
        self.answers = 0
        self.compiled = 0
        self.refusals = Counter[str]()
        self._texts: dict[str, str] = {}  # of refusals, by their place
        self.reason = ""
        self._regions: dict[str, Regions] = {}

    def tally(self, previous: SearchCounts, examined: int) -> SearchCounts:
        refusals = sum([regions.refusals for regions in self._regions.values()], self.refusals)
        texts = Counter[str]()
        for place, number in refusals.most_common():
            texts[self._texts.get(place, place)] += number
        reasons = [regions.reason for regions in self._regions.values()] + [self.reason]
        return previous.replace(
            examined=previous.examined + examined,
            refused=refusals.total(),
            refusals=dict(texts),
            answers=self.answers,
            compiled=self.compiled,
            reason=next(filter(None, reasons), None) if self.compiled else None,
        )

    def examine(self, designs: Designs, examined: int, progress: Progress | None) -> None:
        fixed = {name: plain_value(value, 0) for name, value in designs.values.items() if name not in designs.columns}
        regions = self._regions.get(repr(fixed))
        if regions is None:
            regions = self._regions[repr(fixed)] = Regions(self.compiler, self.quantities, fixed)
        for part in regions.divide(designs):
            early = [c for c in self.conditions if all(part.has_quantity(quantity) for quantity in c.quantities)]
            late = [c for c in self.conditions if c not in early]
            size, part = len(part), filter_designs(part, early)
            self.seen += size - len(part)
            unknown = [quantity for quantity in self.quantities if not part.has_quantity(quantity)]
            if not part.formulas or unknown:
                self._explain(unknown)
                self._compile(part, unknown, late, examined, progress)
            else:
                self._collect(part, len(part))

    def _explain(self, unknown: Sequence[Quantity]) -> None:
        """Record the first quantity that has no formula for any design."""
        if not self.reason:
            kinds = [quantity for quantity in unknown if quantity.kind in COMPILED_ONLY]
            self.reason = f"no formula for `{kinds[0]}`" if kinds else ""

    def _compile(
        self,
        designs: Designs,
        unknown: Sequence[Quantity],
        conditions: Sequence[Expression],
        examined: int,
        progress: Progress | None,
    ) -> None:
        """Compile designs for the quantities without formulas, and collect those that satisfy `conditions`."""
        chunk_size = MAX_COMPILED_PER_PROCESS * self.pool.jobs
        for start in range(0, len(designs), chunk_size):
            part = designs.take(slice(start, start + chunk_size))
            chunk_values = [_design_values(part, position) for position in range(len(part))]
            measurements = list(self.pool.measure(chunk_values, unknown))
            accepted = [position for position, row in enumerate(measurements) if not isinstance(row, Refusal)]
            self.compiled += len(part)
            for row in measurements:
                if isinstance(row, Refusal):
                    self.refusals[row.place] += 1
                    self._texts.setdefault(row.place, row.text)
            part = part.take(numpy().array(accepted, dtype=int))
            for i, quantity in enumerate(unknown):
                values = [row[i] for row in measurements if not isinstance(row, Refusal)]
                part.quantities[quantity] = _pack_values(quantity, values)
            self._collect(filter_designs(part, conditions), len(chunk_values))
            if progress is not None:
                progress(examined + self.seen, self.answers)

    def _collect(self, designs: Designs, examined: int) -> None:
        """Collect designs that satisfy the conditions, out of `examined` designs."""
        if len(designs):
            self.collector.add(designs)
        self.answers += len(designs)
        self.seen += examined


def filter_designs(designs: Designs, conditions: Sequence[Expression]) -> Designs:
    """Return the designs for which all conditions hold. Raises ArchError for an expression that is not boolean."""
    for condition in conditions:
        if len(designs):
            try:
                designs = designs.where(evaluate_expression(condition, designs))
            except TypeError:
                span = Span(condition.source, condition.node.start, condition.node.end)
                raise make_error("usage", "expected a condition, such as `params < 30M`", span) from None
    return designs


def _design_values(designs: Designs, position: int) -> Mapping[str, PlainValue]:
    return {name: plain_value(value, position) for name, value in designs.values.items()}


def _pack_values(quantity: Quantity, values: Sequence[object]) -> Value:
    """Return the values of several designs as a column, or as one shared value if it is not an integer."""
    if values and all(isinstance(value, bool) for value in values):
        return flags(numpy().array(values))
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(integers) == len(values):
        return column(integers)
    if all(value == values[0] for value in values):
        value = values[0]
        return as_exact(value) if isinstance(value, float) else value  # pyright: ignore[reportReturnType]
    raise make_error(
        "usage", f"`{quantity}` is not an integer in all designs", help="vary it, so that its values are known"
    )


# Collection -----------------------------------------------------------------------------------------------------------

MAX_COLLECTED_DESIGNS = 10_000_000
MAX_NEAREST = 10
"""Maximum number of designs nearest to a target."""
MAX_DOTS = 2_000
"""Maximum number of designs that a plot shows in addition to the best."""


class SelectedDesigns:
    """Collected designs: positions, values of expressions and quantities, and the numbers of equal designs."""

    def __init__(self, numbers: Array, values: Mapping[str, Column], counts: Array) -> None:
        self.numbers = numbers
        self.values = values
        self.counts = counts

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, selection: Array | slice) -> SelectedDesigns:
        values = {name: values.take(selection) for name, values in self.values.items()}
        return SelectedDesigns(self.numbers[selection], values, self.counts[selection])

    def columns(self) -> dict[str, Array]:
        return {name: values.values for name, values in self.values.items()}

    def row(self, position: int) -> dict[str, int]:
        return {name: values.item(position) for name, values in self.values.items()}

    def sorted(self) -> SelectedDesigns:
        """Return the designs in the order of the space."""
        return self.take(numpy().argsort(self.numbers, kind="stable"))


class Collector:
    """Collector of the best, the nearest, or all designs.

    `values` are the expressions and quantities whose values are collected, by name. `best` are the names of values to
    maximize, and `near` is the name of a value with its target. Without either, or with `keeps_all`, all designs are
    collected.
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
        selected = SelectedDesigns(
            designs.numbers,
            {name: _evaluate_column(value, designs) for name, value in self.values.items()},
            np.ones(len(designs), dtype=np.int64),
        )
        if self.keeps_all:
            if self._seen + len(selected) > MAX_COLLECTED_DESIGNS:
                message = f"too many designs satisfy the conditions: the limit is {MAX_COLLECTED_DESIGNS:,}"
                raise make_error("usage", message, help="add a --where, or a --best without --all")
            self._all.append(selected)
        if self.best:
            self.chosen = self._merge_best(selected)
            self._sample(selected)
        elif self.near is not None:
            self.chosen = self._merge_nearest(selected, *self.near)
        self._seen += len(selected)

    def all(self) -> SelectedDesigns | None:
        """Return all designs in the order of the space; None if none were collected."""
        return _concatenate(self._all).sorted() if self._all else None

    def dots(self) -> SelectedDesigns | None:
        """Return up to MAX_DOTS designs, evenly chosen; None if there are none."""
        return _concatenate(self._dots).sorted() if self._dots else None

    def _merge_best(self, selected: SelectedDesigns) -> SelectedDesigns:
        selected = self._take_undominated(selected)
        if self.chosen is None:
            return selected
        return self._take_undominated(_concatenate([self.chosen, selected]).sorted())

    def _take_undominated(self, selected: SelectedDesigns) -> SelectedDesigns:
        points = rank_columns([selected.values[name].values for name in self.best])
        rows, counts = find_pareto_front(points, selected.counts)
        undominated = selected.take(rows)
        return SelectedDesigns(undominated.numbers, undominated.values, counts)

    def _merge_nearest(self, selected: SelectedDesigns, name: str, target: int) -> SelectedDesigns:
        candidates = _concatenate([self.chosen, selected]) if self.chosen is not None else selected
        distance = apply_operator("-", candidates.values[name], target)
        assert is_column(distance)
        order = numpy().lexsort([candidates.numbers, rank_columns([abs(distance.values)])[:, 0]])
        return candidates.take(order[:MAX_NEAREST])

    def _sample(self, selected: SelectedDesigns) -> None:
        """Keep one of `_stride` designs. The stride is doubled when the sample becomes too large."""
        first = -self._seen % self._stride
        self._dots.append(selected.take(slice(first, None, self._stride)))
        while sum(map(len, self._dots)) > MAX_DOTS:
            self._dots = [_concatenate(self._dots).take(slice(None, None, 2))]
            self._stride *= 2


def _concatenate(parts: Sequence[SelectedDesigns]) -> SelectedDesigns:
    np = numpy()
    values = {name: concatenate([part.values[name] for part in parts]) for name in parts[0].values}
    numbers = np.concatenate([part.numbers for part in parts])
    return SelectedDesigns(numbers, values, np.concatenate([part.counts for part in parts]))


def _evaluate_column(value: Expression | Quantity, designs: Designs) -> Column:
    """Evaluate an expression or a quantity. Raises ArchError if its values are not integers."""
    result: Value = designs.quantity(value) if isinstance(value, Quantity) else evaluate_expression(value, designs)
    if is_column(result) and not result.is_flag:
        return result
    if isinstance(result, int) and not isinstance(result, bool):
        return Column(numpy().full(len(designs), result, dtype=column([result]).values.dtype), result, result)
    span = Span(value.source, value.node.start, value.node.end) if isinstance(value, Expression) else None
    raise make_error("usage", f"expected an integer: `{value}`", span)


# Pareto front ---------------------------------------------------------------------------------------------------------


def rank_columns(values: Sequence[Array]) -> Array:
    """Return a matrix of 64-bit integers, ordered in each column like the values, which may not fit in 64 bits."""
    np = numpy()
    columns = [v if v.dtype == np.int64 else np.unique(v, return_inverse=True)[1] for v in values]
    return np.stack([np.asarray(column, dtype=np.int64) for column in columns], axis=1)


def find_pareto_front(points: Array, weights: Array) -> tuple[Array, Array]:
    """Return the indices of the undominated rows of a matrix, in order, and their weights.

    A row dominates another row if it is at least equal in all columns and greater in one. Of equal rows, the first is
    returned with the sum of their weights.
    """
    np = numpy()
    if not len(points):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # In this order, no row is dominated by a later row.
    order = np.lexsort([np.arange(len(points))[::-1], *points.T[::-1]])[::-1]
    points, weights = points[order], weights[order]
    rows: list[int] = []
    counts: list[int] = []
    while len(order):
        best = points[0]
        dominated = (points <= best).all(axis=1)
        equal = (points == best).all(axis=1)
        rows.append(int(order[0]))
        counts.append(int(weights[equal].sum()))
        points, order, weights = points[~dominated], order[~dominated], weights[~dominated]
    indices = np.array(rows)
    order_of_rows = np.argsort(indices)
    return indices[order_of_rows], np.array(counts)[order_of_rows]
