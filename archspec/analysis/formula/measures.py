"""Work and parameters of parts of a model with open hyperparameters, as polynomials, from one compilation with symbols.

Every function may make further assumptions, and raises NoFormulaError after reporting why there is no formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from functools import cache
from typing import NoReturn

from archspec.analysis.cost.dtypes import BITS
from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import NoFormulaError, Segment
from archspec.analysis.formula.totals import ParameterCounts, Totals
from archspec.compiler.elaborate.models import CompiledModel
from archspec.core.algebra import Dim, Expression, Polynomial, expand, substitute, sum_over_index, symbols
from archspec.core.diagnostics import Span
from archspec.ir.fold import has_choices
from archspec.ir.index_ranges import IndexRange, Range, SizeCheck
from archspec.ir.module import Body, Call, Loop, Module, Type
from archspec.ir.ops import Op
from archspec.ir.ops.check import collect_undecided_sizes
from archspec.ir.origins import InputOrigins, Origins
from archspec.ir.table import Tensor
from archspec.ir.tabulate import build_table
from archspec.ir.work import NO_WORK, Work, call_work

_DISTINGUISHING_WILDCARDS = re.compile(r"[0-9?\[]")
"""The characters with which a pattern can distinguish the iterations of a loop."""


def work(solver: Solver, body: Body, sizes: Mapping[str, int]) -> Work:
    """Return the work of a body at sizes of its dimensions, which the model must accept."""
    _Sizes(solver, sizes).outputs(body, tuple([None] * len(body.inputs)))
    return _WorkSum(solver, sizes).body_work(body, ())


def total(solver: Solver, root: Module) -> ParameterCounts:
    """Return the parameter count, and the number of frozen parameters."""
    return Totals(solver, root).model_total()


def parameter_bytes(solver: Solver, root: Module, dtype: str) -> Expression:
    """Return the bytes of the parameters as elements of a type, rounded up to full bytes."""
    return -(-total(solver, root).total * BITS[dtype] // 8)


def active(solver: Solver, compiled: CompiledModel, span: Span) -> Expression:
    """Return the number of parameters that are used for one token: all if the model makes no choices."""
    if has_choices(compiled.body):
        solver.refuse("there is no formula for the parameters that are used for one token", span)
    return total(solver, compiled.module).total


def parameters_where(solver: Solver, root: Module, keep: Callable[[Tensor], bool]) -> Expression:
    """Sum the tensors that `keep` selects, each by the name under which it is counted."""
    totals = Totals(solver, root)
    result: Expression = 0
    for tensor in build_table("", root, {}, {}).tensors:
        if tensor.tied_to is None and keep(tensor):
            result = result + totals.tensor_total(root, tensor.name).total
    return result


def parameters_matching(solver: Solver, root: Module, pattern: str, span: Span) -> Expression:
    """Sum the tensors whose names match a pattern, as `archspec count --select` does."""
    tensors = build_table("", root, {}, {}).tensors
    matches = re.compile(translate(pattern)).match
    chosen: set[str] = set()
    for tensor in tensors:
        fixed = tensor.name.partition("{")[0]
        if fixed != tensor.name and _DISTINGUISHING_WILDCARDS.search(pattern) and _may_match(pattern, fixed):
            solver.refuse(f"`{pattern}` may select single iterations of a loop with an open iteration count", span)
        if matches(tensor.name):
            chosen.add(tensor.name)
    if any(tensor.name in chosen and tensor.tied_to not in (None, *chosen) for tensor in tensors):
        solver.refuse(f"`{pattern}` selects an alias of a tied tensor, but not its canonical name", span)
    return parameters_where(solver, root, lambda tensor: tensor.name in chosen)


def _may_match(pattern: str, fixed: str) -> bool:
    """Whether a pattern may match a name that begins with `fixed`."""
    start = re.split(r"[*?\[]", pattern)[0]
    return start.startswith(fixed) or fixed.startswith(start)


class _WorkSum:
    """Summation of the work of bodies over the iterations of open loops; each body is processed once."""

    def __init__(self, solver: Solver, sizes: Mapping[str, int]) -> None:
        self.solver = solver
        self.sizes = sizes
        self.origins = Origins(sizes)
        self.body_work: Callable[[Body, InputOrigins], Work] = cache(self._compute_work)

    def _compute_work(self, body: Body, inputs: InputOrigins) -> Work:
        macs, elementwise = NO_WORK
        slots = self.origins.slots(body, inputs)
        for call in body.calls:
            if call.body is not None:
                one = self.body_work(call.body, self.origins.inputs(call, slots))
            else:
                one = self._substitute_sizes(call_work(call, body, slots))
            macs = macs + self._sum_over_loops(one.macs, call)
            elementwise = elementwise + self._sum_over_loops(one.elementwise, call)
        if body.loop is not None:
            times = substitute(body.loop.iterations, self.sizes)
            macs, elementwise = macs * times, elementwise * times
        return Work(macs, elementwise)

    def _substitute_sizes(self, amount: Work) -> Work:
        return Work(*[expand(substitute(part, self.sizes)) for part in amount])

    def _sum_over_loops(self, amount: Expression, call: Call) -> Expression:
        for segment in reversed(self.solver.segments_around(call)):
            amount = self._sum_over_segment(amount, segment, call)
        return amount

    def _sum_over_segment(self, amount: Expression, segment: Segment, call: Call) -> Expression:
        result = sum_over_index(amount, segment.symbol, segment.number)
        if result is None:
            self.solver.refuse_sum(amount, segment, call.span)
        return result


_UNKNOWN = IndexRange(1, 0)
"""The range of integers that depend on open hyperparameters: an empty range, which no operation returns."""


class _Sizes(SizeCheck):
    """Checks of sizes that depend on open hyperparameters; undecided checks become assumptions."""

    def __init__(self, solver: Solver, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)
        self.solver = solver

    def with_sizes(self, values: Mapping[str, int]) -> SizeCheck:
        return _Sizes(self.solver, values)

    def check_index(self, range: IndexRange, rows: Dim, call: Call) -> None:
        if range == _UNKNOWN:
            self._refuse(call.span)
        with self.solver.assumptions_required():
            self.solver.assume(">=", range.low, 0, call.span)
            self.solver.assume(">=", rows - range.high, 1, call.span)

    def check_operation(self, call: Call, types: list[Type | None]) -> None:
        with collect_undecided_sizes() as sizes:
            super().check_operation(call, types)
        for size, minimum in sizes:
            self.solver.assume_minimum(size, minimum, call.span)

    def interval(self, op: Op, call: Call, ranges: list[Range]) -> Range:
        if op.interval is None or None in ranges:
            return None
        sizes = [self.value_of(value) for value in call.attributes.values()]
        sizes += [self.value_of(size) for type in call.outputs if type is not None for size in type.shape]
        is_open = any(symbols(size) & self.solver.state.point.keys() for size in sizes if isinstance(size, Polynomial))
        return _UNKNOWN if is_open or _UNKNOWN in ranges else super().interval(op, call, ranges)

    def constant(self, value: object) -> Range:
        value = self.value_of(value)
        return _UNKNOWN if isinstance(value, Polynomial) else super().constant(value)

    def _loop(self, body: Body, loop: Loop, inputs: tuple[Range, ...]) -> list[Range]:
        ends = [substitute(size, self.values) for size in (loop.first, loop.iterations)]
        if not all(isinstance(size, int) for size in ends) and body.calls:
            self._refuse(body.calls[0].span)
        return super()._loop(body, loop, inputs)

    def _refuse(self, span: Span) -> NoReturn:
        self.solver.program.report.error("no-formula", "an index depends on an open hyperparameter", span)
        raise NoFormulaError
