"""`archspec.explain_flops`: the counting conventions behind a published number of floating-point operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from archspec.analysis.cost.api import cost
from archspec.analysis.cost.cost import Cost
from archspec.analysis.explain.numbers import PublishedNumber, Reading, is_near, read_count
from archspec.analysis.explain.tensor_groups import find_table_types
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.core.reports.results import Result
from archspec.ir.index_ranges import dimensions
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


class FlopConvention(NamedTuple):
    """A convention: its description, the number of adjustments to the plain count, and the operations."""

    text: str
    rank: int
    flops: int


class FlopReadingMatches(NamedTuple):
    """The conventions with the fewest adjustments that match a reading; without a match, the `nearest` within 2 %."""

    reading: Reading
    matches: tuple[FlopConvention, ...]
    nearest: tuple[FlopConvention, ...]


class FlopExplanation(Result):
    """The answers for the readings of a number of operations, coarsest first; `cost` is the cost of the model."""

    cost: Cost
    number: PublishedNumber
    answers: tuple[FlopReadingMatches, ...]

    @property
    def fits(self) -> bool:
        """Whether any reading of the number has a match."""
        return any(answer.matches for answer in self.answers)


@check_arguments
def explain_flops(
    model: ModelLike,
    number: str | int,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
) -> FlopExplanation:
    """Find the counting conventions under which a model performs a published number of operations.

    `model` is a Model or an argument of `archspec.load`. `number` is exact or rounded ("22.5G"). `batch`, `seq`, `dims`
    are the sizes of the dimensions, as for `archspec.cost`. All dimensions require a size (default of `batch`: 1).

    Raises ArchError if `number` is not a number, if a dimension has no size, and as `archspec.cost` does.
    """
    published = read_count(number, "a number of operations", "write the number as 22348431360 or 22.3G")
    compiled = as_model(model)
    has_batch = "batch" in dimensions(compiled.inputs.items())
    if batch is None and has_batch and "batch" not in (dims or {}):
        batch = 1
    full = cost(compiled, batch, seq, dims=dims)
    missing = [name for name, size in full.dims.items() if size is None]
    if missing:
        raise make_error("usage", f"FLOPs depend on the dimension `{missing[0]}`", help="use --seq N or --dim NAME=N")
    half = cost(compiled, batch, seq, dims=dims, causal_half=True)
    conventions = list(_iter_distinct([*_iter_forward_counts(full, half), *_iter_estimates(compiled, full)]))
    return FlopExplanation(
        full, published, tuple([_match_reading(reading, conventions) for reading in published.readings])
    )


def _match_reading(reading: Reading, conventions: list[FlopConvention]) -> FlopReadingMatches:
    matches = [convention for convention in conventions if reading.fits(convention.flops)]
    if matches:
        lowest_rank = min(match.rank for match in matches)
        return FlopReadingMatches(reading, tuple([match for match in matches if match.rank == lowest_rank]), ())
    value = (reading.low + reading.high) / 2
    nearest = [convention for convention in conventions if is_near(convention.flops, reading)]
    nearest.sort(key=lambda convention: (abs(convention.flops - value), convention.rank))
    return FlopReadingMatches(reading, (), tuple(nearest[:2]))


def _iter_distinct(conventions: list[FlopConvention]) -> Iterator[FlopConvention]:
    """Yield the simplest convention for each number of operations."""
    seen: set[int] = set()
    for convention in sorted(conventions, key=lambda convention: convention.rank):
        if convention.flops not in seen:
            seen.add(convention.flops)
            yield convention


def _iter_forward_counts(full: Cost, half: Cost) -> Iterator[FlopConvention]:
    """Yield counts of matrix products, with and without attention, with and without elementwise operations."""
    attention = _as_integer(full.work.score_macs) + _as_integer(full.work.mix_macs)
    products = [("matrix products", 0, _as_integer(full.work.macs)), *_iter_products_without_attention(full, attention)]
    if half.causal:
        products.append(("matrix products, causal attention as half", 1, _as_integer(half.work.macs)))
    units = (", 2 per multiply-accumulate", 0, 2), (", 1 per multiply-accumulate", 1, 1)
    elementwise = ("", 0, 0), (", with elementwise operations", 1, _as_integer(full.work.elementwise))
    passes = ("", 0, 1), (", forward and backward pass (3 times)", 1, 3)
    for (products_text, a, macs), (unit, b, per_mac), (elementwise_text, c, elementwise_count), (
        passes_text,
        d,
        factor,
    ) in product(products, units, elementwise, passes):
        yield FlopConvention(
            products_text + unit + elementwise_text + passes_text,
            a + b + c + d,
            (macs * per_mac + elementwise_count) * factor,
        )


def _iter_products_without_attention(full: Cost, attention: int) -> Iterator[tuple[str, int, int]]:
    if attention:
        yield "matrix products without attention", 1, _as_integer(full.work.macs) - attention


def _iter_estimates(model: Model, full: Cost) -> Iterator[FlopConvention]:
    """Yield estimates from the parameter count, for models with inputs of one shape."""
    shapes = {type.shape for type in model.inputs.values()}
    if len(shapes) != 1:
        return
    tokens = 1
    for size in next(iter(shapes)):
        tokens *= size if isinstance(size, int) else size.at({n: s for n, s in full.dims.items() if s is not None})
    tables = find_table_types(get_compilation(model).body)
    params = model.params.total
    without_tables = params - sum(tensor.params for tensor in model.tensors if tensor.type in tables)
    counts = [("all parameters", 0, params), ("parameters without embedding tables", 1, without_tables)]
    active = get_compilation(model).table.active
    if active is not None:
        counts.append(("active parameters", 1, active.total))
    attention = _as_integer(full.work.score_flops) + _as_integer(full.work.mix_flops)
    for (counted, a, count), flops_per_parameter, (suffix, b, attention_flops) in product(
        counts, (2, 6), (("", 0, 0), (" and the products of attention", 1, attention))
    ):
        text = f"estimate: {flops_per_parameter} x {counted} x tokens{suffix}"
        yield FlopConvention(
            text, 1 + a + b, flops_per_parameter * count * tokens + attention_flops * (flops_per_parameter // 2)
        )


def _as_integer(amount: object) -> int:
    assert isinstance(amount, int)
    return amount
