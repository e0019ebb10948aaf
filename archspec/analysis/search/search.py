"""The search: all designs of a space, those that satisfy the conditions, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archspec.analysis.search.collecting import Collector
from archspec.analysis.search.columns import Value, column, exact, flags, numpy
from archspec.analysis.search.compilations import Compiler, Pool
from archspec.analysis.search.conditions import Expression, evaluated
from archspec.analysis.search.designs import Designs
from archspec.analysis.search.quantities import COMPILED_ONLY, Quantity
from archspec.analysis.search.regions import Regions
from archspec.analysis.search.space import Space, plain_at
from archspec.core.diagnostics import Span, make_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue

AT_ONCE = 1 << 16
"""The designs that are examined at a time."""

COMPILED_AT_ONCE = 32
"""The designs that each process compiles before what was found is collected."""

Progress = Callable[[int, int], None]
"""Is told how many designs have been examined, and how many satisfy the conditions."""


class SearchCounts(Node):
    """The numbers of designs: all, those examined, refused by the spec, satisfying the conditions, and compiled."""

    designs: int
    examined: int = 0
    refused: int = 0
    answers: int = 0
    compiled: int = 0
    is_interrupted: bool = False
    reason: str | None = None
    """Why designs were compiled."""


def examine(
    space: Space,
    compiler: Compiler,
    pool: Pool,
    conditions: Sequence[Expression],
    quantities: Sequence[Quantity],
    collector: Collector,
    progress: Progress | None = None,
) -> SearchCounts:
    """Give all designs that satisfy the conditions to a collector. An interruption ends the search early."""
    search = _Search(compiler, pool, conditions, quantities, collector)
    tally = SearchCounts(space.size)
    try:
        for block in space.blocks(AT_ONCE):
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
        self.refused = 0
        self.reason = ""
        self._regions: dict[str, Regions] = {}

    def tally(self, before: SearchCounts, examined: int) -> SearchCounts:
        refused = self.refused + sum(regions.refused for regions in self._regions.values())
        reasons = [regions.reason for regions in self._regions.values()] + [self.reason]
        return before.replace(
            examined=before.examined + examined,
            refused=refused,
            answers=self.answers,
            compiled=self.compiled,
            reason=next(filter(None, reasons), None) if self.compiled else None,
        )

    def examine(self, designs: Designs, examined: int, progress: Progress | None) -> None:
        fixed = {name: plain_at(value, 0) for name, value in designs.values.items() if name not in designs.columns}
        regions = self._regions.get(repr(fixed))
        if regions is None:
            regions = self._regions[repr(fixed)] = Regions(self.compiler, self.quantities, fixed)
        for part in regions.divided(designs):
            early = [c for c in self.conditions if all(part.knows(quantity) for quantity in c.quantities)]
            late = [c for c in self.conditions if c not in early]
            before, part = len(part), satisfying(part, early)
            self.seen += before - len(part)
            unknown = [quantity for quantity in self.quantities if not part.knows(quantity)]
            if not part.formulas or unknown:
                self._explain(unknown)
                self._compile(part, unknown, late, examined, progress)
            else:
                self._collect(part, len(part))

    def _explain(self, unknown: Sequence[Quantity]) -> None:
        """Remember the first quantity that has no formula for any design."""
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
        """Compile designs for the quantities without formulas, and collect those that satisfy the other conditions."""
        most = COMPILED_AT_ONCE * self.pool.jobs
        for start in range(0, len(designs), most):
            part = designs.take(slice(start, start + most))
            each = [_values(part, place) for place in range(len(part))]
            found = list(self.pool.measured(each, unknown))
            kept = [place for place, values in enumerate(found) if values is not None]
            self.compiled += len(part)
            self.refused += len(part) - len(kept)
            part = part.take(numpy().array(kept, dtype=int))
            for i, quantity in enumerate(unknown):
                values = [row[i] for row in found if row is not None]
                part.quantities[quantity] = _value(quantity, values)
            self._collect(satisfying(part, conditions), len(each))
            if progress is not None:
                progress(examined + self.seen, self.answers)

    def _collect(self, designs: Designs, examined: int) -> None:
        """Collect the designs that satisfy the conditions, of so many that have been examined."""
        if len(designs):
            self.collector.add(designs)
        self.answers += len(designs)
        self.seen += examined


def satisfying(designs: Designs, conditions: Sequence[Expression]) -> Designs:
    """Return the designs for which all conditions hold. Raises ArchError for an expression that is not a condition."""
    for condition in conditions:
        if len(designs):
            try:
                designs = designs.where(evaluated(condition, designs))
            except TypeError:
                span = Span(condition.source, condition.node.start, condition.node.end)
                raise make_error("usage", "expected a condition, such as `params < 30M`", span) from None
    return designs


def _values(designs: Designs, place: int) -> Mapping[str, PlainValue]:
    return {name: plain_at(value, place) for name, value in designs.values.items()}


def _value(quantity: Quantity, values: Sequence[object]) -> Value:
    """Return the values of several designs as a column, or as one value if they share it."""
    if values and all(isinstance(value, bool) for value in values):
        return flags(numpy().array(values))
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(integers) == len(values):
        return column(integers)
    if all(value == values[0] for value in values):
        value = values[0]
        return exact(value) if isinstance(value, float) else value  # pyright: ignore[reportReturnType]
    raise make_error(
        "usage", f"`{quantity}` is not an integer in all designs", help="vary it, so that its values are known"
    )
