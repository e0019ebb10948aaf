"""`archspec.explain_flops`: the counting conventions behind a published number of floating-point operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from archspec.analysis.cost.api import cost
from archspec.analysis.cost.cost import Cost
from archspec.analysis.explain.numbers import PublishedNumber, Reading, read_number
from archspec.analysis.explain.tensor_groups import table_types
from archspec.core.algebra import symbols
from archspec.core.diagnostics import make_error
from archspec.core.reports.results import Result
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

MAX_RELATIVE_DIFFERENCE = Fraction(2, 100)
"""The largest relative difference of a number that is shown as the nearest one."""


class FlopConvention(NamedTuple):
    """A convention: its description, the number of its adjustments to the plain count, and the operations."""

    text: str
    rank: int
    flops: int


class FlopReadingMatches(NamedTuple):
    """The conventions with the fewest adjustments for a reading of a number; without any, the `nearest` within 2 %."""

    reading: Reading
    matches: tuple[FlopConvention, ...]
    nearest: tuple[FlopConvention, ...]


class FlopExplanation(Result):
    """The answers for the readings of a number of operations, coarsest first; `cost` is that of the model."""

    cost: Cost
    number: PublishedNumber
    answers: tuple[FlopReadingMatches, ...]

    @property
    def fits(self) -> bool:
        """Whether any reading of the number has a match."""
        return any(answer.matches for answer in self.answers)


def explain_flops(
    model: ModelLike,
    number: str | int,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
) -> FlopExplanation:
    """Find the counting conventions under which a model takes a published number of operations.

    `model` is a Model, or what `archspec.load` takes. `number` is exact or rounded ("22.5G"). `batch`, `seq`, `dims`
    are the sizes of the dimensions, as for `archspec.cost`; all need a size, which is 1 for a batch without one.

    Raises ArchError if `number` is not a number, if a dimension has no size, and as `archspec.cost` does.
    """
    try:
        read = read_number(str(number))
    except ValueError as problem:
        raise make_error("usage", str(problem), help="write it as 22348431360 or 22.3G") from None
    compiled = as_model(model)
    has_batch = any("batch" in symbols(size) for type in compiled.inputs.values() for size in type.shape)
    if batch is None and has_batch and "batch" not in (dims or {}):
        batch = 1
    full = cost(compiled, batch, seq, dims=dims)
    missing = [name for name, size in full.dims.items() if size is None]
    if missing:
        raise make_error("usage", f"FLOPs depend on the dimension `{missing[0]}`", help="use --seq N or --dim NAME=N")
    half = cost(compiled, batch, seq, dims=dims, causal_half=True)
    known = list(_distinct([*_forward(full, half), *_estimates(compiled, full)]))
    return FlopExplanation(full, read, tuple([_answer(reading, known) for reading in read.readings]))


def _answer(reading: Reading, known: list[FlopConvention]) -> FlopReadingMatches:
    matches = [convention for convention in known if reading.fits(convention.flops)]
    if matches:
        least = min(match.rank for match in matches)
        return FlopReadingMatches(reading, tuple([match for match in matches if match.rank == least]), ())
    middle = (reading.low + reading.high) / 2
    near = [convention for convention in known if abs(convention.flops - middle) <= MAX_RELATIVE_DIFFERENCE * middle]
    near.sort(key=lambda convention: (abs(convention.flops - middle), convention.rank))
    return FlopReadingMatches(reading, (), tuple(near[:2]))


def _distinct(conventions: list[FlopConvention]) -> Iterator[FlopConvention]:
    """Yield the simplest convention for each number of operations."""
    seen: set[int] = set()
    for convention in sorted(conventions, key=lambda convention: convention.rank):
        if convention.flops not in seen:
            seen.add(convention.flops)
            yield convention


def _forward(full: Cost, half: Cost) -> Iterator[FlopConvention]:
    """Yield the counts of products, with and without some of them, and of elementwise operations."""
    attention = _number(full.work.score_macs) + _number(full.work.mix_macs)
    products = [("matrix products", 0, _number(full.work.macs)), *_without_attention(full, attention)]
    if half.causal:
        products.append(("matrix products, causal attention as half", 1, _number(half.work.macs)))
    units = (", 2 per multiply-accumulate", 0, 2), (", 1 per multiply-accumulate", 1, 1)
    elementwise = ("", 0, 0), (", with elementwise operations", 1, _number(full.work.elementwise))
    passes = ("", 0, 1), (", forward and backward pass (3 times)", 1, 3)
    for (what, a, macs), (unit, b, each), (more, c, added), (times, d, factor) in product(
        products, units, elementwise, passes
    ):
        yield FlopConvention(what + unit + more + times, a + b + c + d, (macs * each + added) * factor)


def _without_attention(full: Cost, attention: int) -> Iterator[tuple[str, int, int]]:
    if attention:
        yield "matrix products without those of attention", 1, _number(full.work.macs) - attention


def _estimates(model: Model, full: Cost) -> Iterator[FlopConvention]:
    """Yield estimates from the number of parameters, for models of a single sequence."""
    shapes = {type.shape for type in model.inputs.values()}
    if len(shapes) != 1:
        return
    tokens = 1
    for size in next(iter(shapes)):
        tokens *= size if isinstance(size, int) else size.at({n: s for n, s in full.dims.items() if s is not None})
    tables = table_types(get_compilation(model).body)
    params = model.params.total
    without = params - sum(tensor.params for tensor in model.tensors if tensor.type in tables)
    counts = [("all parameters", 0, params), ("parameters without embedding tables", 1, without)]
    active = get_compilation(model).table.active
    if active is not None:
        counts.append(("active parameters", 1, active.total))
    attention = _number(full.work.score_flops) + _number(full.work.mix_flops)
    for (what, a, count), each, (more, b, added) in product(
        counts, (2, 6), (("", 0, 0), (" and the products of attention", 1, attention))
    ):
        text = f"estimate: {each} x {what} x tokens{more}"
        yield FlopConvention(text, 1 + a + b, each * count * tokens + added * (each // 2))


def _number(amount: object) -> int:
    assert isinstance(amount, int)
    return amount
