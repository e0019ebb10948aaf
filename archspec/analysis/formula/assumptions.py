"""Facts about open hyperparameters that are proved or assumed while a spec is compiled with them.

An open hyperparameter is an expression of symbols that stand for any positive integers. Constraints are discharged by
substitution: if `hidden` must be divisible by 12, it becomes 12 times another symbol. Each substitution ends the
compilation and starts another one; restarts are exceptions, which `derivation` handles.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd, lcm
from typing import TYPE_CHECKING, NoReturn

from archspec.analysis.formula.restarts import (
    COMPARE,
    MARK,
    Assumption,
    CasesRestart,
    Iterations,
    NoFormulaError,
    OpenRestart,
    ProbeRestart,
    Schedule,
    ScheduleRestart,
    Segment,
    State,
    SubstitutionRestart,
    as_divisibility,
    divide_symbol,
    is_segment_index,
    linear_slope,
    threshold,
)
from archspec.compiler.evaluate.program import Program
from archspec.compiler.evaluate.values import COMPARISONS, UNKNOWN, StaticError, Value, arithmetic, is_number
from archspec.core.algebra import (
    Bounds,
    Dim,
    Expression,
    Polynomial,
    atoms,
    bounds,
    expression,
    index,
    ratio,
    substitute,
    symbol,
    symbols,
    terms_of,
    to_text,
)
from archspec.core.diagnostics import Span
from archspec.ir.ops import Op

if TYPE_CHECKING:
    from archspec.ir.module import Call, Module

MAX_CASES = 8
MAX_PEELED_ITERATIONS = 16
MAX_STRIDE = 16


class Solver:
    """Solver of comparisons in one compilation with open hyperparameters; records the assumptions."""

    program: Program

    def __init__(self, state: State) -> None:
        self.state = state
        self.active: list[Segment] = []
        self.assumptions: dict[tuple[str, Expression, Expression], Assumption] = {}
        self.divisions: dict[tuple[Dim, Dim], Span] = {}  # location of each division, by its operands
        self.enclosing_loops: dict[Module, dict[str, tuple[Segment, ...]]] = {}  # by module and address of a member
        self.segments: dict[str, Segment] = {}  # by their symbol
        self.intervals: dict[str, tuple[Dim, Dim]] = {}  # first and last (exclusive) of an index, by its text
        self._loops: dict[Call, tuple[Segment, ...]] = {}
        self._names: dict[tuple[Hashable, int], str] = {}
        self._requires = False

    @contextmanager
    def assumptions_required(self) -> Generator[None]:
        """Mark the assumptions made inside the context as required by the spec."""
        before, self._requires = self._requires, True
        yield
        self._requires = before

    # Calls

    def repeat(self, call: Call, segment: Segment) -> None:
        """Record that a call is applied in every iteration of a segment; later segments enclose earlier ones."""
        self._loops[call] = (segment, *self._loops.get(call, ()))

    def segments_around(self, call: Call) -> tuple[Segment, ...]:
        """Return the segments around a call in its body, outermost first."""
        inner = self.segments_around(call.origin) if call.origin is not None else ()
        return (*self._loops.get(call, ()), *inner)

    # Values

    def combine(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        """Evaluate `left operator right`, one of which is open."""
        if operator in ("==", "!=") and (left is None or right is None):
            return operator == "!="
        if not (is_number(left) and is_number(right)):
            self.refuse(f"`{operator}` is undefined for these operands", span)
        if operator in COMPARISONS:
            if isinstance(left, float) or isinstance(right, float):
                self.refuse("cannot compare a real number that depends on an open hyperparameter", span)
            return self.decide(operator, left, right, span)
        if operator in ("/", "//", "%") and isinstance(right, Polynomial):
            self.assume("!=", right, 0, span)
        if isinstance(left, float) or isinstance(right, float) or operator == "/":
            return UNKNOWN
        if operator == "**" and not (isinstance(right, int) and right >= 0):
            return UNKNOWN
        try:
            value = arithmetic(operator, left, right)
        except StaticError as problem:
            self.refuse(problem.message, span)
        if operator == "//":
            self.divisions.setdefault((left, right), span)
        return value

    def scalar(self, op: Op, values: Sequence[Value], span: Span) -> Value:
        """Apply an operation to numbers, one of which is open."""
        assert op.scalar is not None
        if not any(isinstance(value, float) for value in values):
            try:
                return op.scalar(*values)
            except TypeError:  # the operation supports known numbers only
                pass
            except ArithmeticError as problem:
                self.refuse(f"`{op.name}`: {problem}", span)
        if op.least is not None and isinstance(values[0], Polynomial):
            self.assume_minimum(values[0], op.least, span)
        if op.dtype() in ("int", "bool"):
            self.refuse(f"cannot apply `{op.name}` to a real number that depends on an open hyperparameter", span)
        return UNKNOWN

    def decide(self, operator: str, left: Dim, right: Dim, span: Span) -> bool:
        """Whether `left operator right` holds. Raises Restart or NoFormulaError if that differs between values."""
        decision = self.prove(operator, left - right)
        if decision is None:
            self._split(left - right, span)
            self.refuse(f"cannot decide `{self.describe(left)} {operator} {self.describe(right)}` for all values", span)
        return decision

    def prove(self, operator: str, difference: Dim) -> bool | None:
        """Return True if `difference operator 0` holds for all values, False if it holds for none, otherwise None."""
        low, high = self._bounds(difference)
        signs = {
            -1: low is None or low < 0,
            0: (low is None or low <= 0) and (high is None or high >= 0),
            1: high is None or high > 0,
        }
        answers = {COMPARE[operator](sign, 0) for sign, is_possible in signs.items() if is_possible}
        return all(answers) if len(answers) < 2 else None  # an index of an empty loop has no sign

    def _extreme_values(self, dim: Dim) -> tuple[Dim, Dim]:
        """Return the minimum and the maximum over the indices of loops in which `dim` is linear."""
        limits: list[Dim] = [dim, dim]
        for segment in reversed(self.active):
            for side, limit in enumerate(limits):
                slope = linear_slope(limit, segment.symbol)
                if slope:
                    extreme = 1 if (slope > 0) == (side == 0) else segment.number
                    limits[side] = substitute(limit, {segment.symbol: extreme})
        return limits[0], limits[1]

    def _bounds(self, dim: Dim) -> Bounds:
        """Return the bounds of `dim`, with each index between its first and its last value."""
        own_bounds = bounds(dim)
        minimum, maximum = self._extreme_values(dim)
        low, high = bounds(minimum)[0], bounds(maximum)[1]
        return own_bounds[0] if low is None else low, own_bounds[1] if high is None else high

    def _split(self, difference: Dim, span: Span) -> None:
        """Raise a restart after which the sign of `difference` is known, if possible."""
        for segment in reversed(self.active):
            if segment.symbol in symbols(difference):
                self._split_loop(difference, segment)
        names = symbols(difference)
        if len(names) == 1 and names <= self.state.point.keys():
            (name,) = names
            limit = threshold(difference, name)
            if limit is not None and 1 <= limit <= MAX_CASES:
                raise CasesRestart(name, limit, span)

    def _split_loop(self, difference: Dim, segment: Segment) -> None:
        limit = threshold(difference, segment.symbol)
        if limit is not None and limit >= 1:
            singles = substitute(segment.position, {segment.symbol: limit}) - segment.first + 1
            if isinstance(singles, int):
                self.divide_loop(segment, prefix=singles)
        back = segment.number + 1 - symbol(segment.symbol)
        limit = threshold(substitute(difference, {segment.symbol: back}), segment.symbol)
        if limit is not None and limit >= 1 and segment.stride == 1:
            self.divide_loop(segment, tail=limit)
        self.divide_loop(segment, stride=lcm(*_moduli(difference, segment.symbol)))

    def divide_loop(
        self, segment: Segment, *, prefix: int = 0, tail: int = 0, stride: int = 1, probes: bool = False
    ) -> None:
        """Restart, within limits, with more single iterations at the ends of a loop, or more residue classes.

        `probes`: an iteration has an error, and processing iterations singly may determine the changes in each.
        """
        before = self.state.schedules.get(segment.key, Schedule())
        schedule = Schedule(before.prefix + prefix, before.tail + tail, before.stride * stride)
        within = max(schedule.prefix, schedule.tail) <= MAX_PEELED_ITERATIONS and schedule.stride <= MAX_STRIDE
        if within and schedule != before:
            raise (ProbeRestart if probes else ScheduleRestart)(segment.key, schedule)

    # Assumptions

    def assume(self, operator: str, left: Dim, right: Dim, span: Span) -> None:
        """Make `left operator right` hold, or record it as an assumption, unless it is proved.

        Raises Restart or NoFormulaError.
        """
        difference = left - right
        if self.prove(operator, difference):
            return
        assumption = self._create_assumption(operator, left, right, span)
        if operator == "==":
            parts = as_divisibility(difference)
            if parts is not None:
                self._assume_divisible(*parts, span)
                return
        if operator in (">=", ">", "<=", "<"):
            positive = difference if operator[0] == ">" else -difference
            self._substitute_minimum(positive + operator.count("="), assumption)
        if operator == ">=":
            assumption = self._create_assumption(operator, self._eliminate_division(difference), 0, span)
        self._record(assumption)

    def _create_assumption(self, operator: str, left: Dim, right: Dim, span: Span) -> Assumption:
        """Create the assumption that `left operator right`, which must hold for the values in the model."""
        assumption = Assumption(operator, left, right, span, self._requires)
        point = {name: value for name, value in self.state.point.items() if value is not None}
        names = symbols(left) | symbols(right)
        if not names <= self.state.point.keys() or (names <= point.keys() and not assumption.holds(point)):
            self.refuse(f"cannot prove `{self.describe(left)} {operator} {self.describe(right)}` for all values", span)
        return assumption

    def assume_minimum(self, size: Dim, minimum: int, span: Span) -> None:
        """Make a size that an operation checks at least `minimum`, or record that as an assumption.

        A dimension of an input is any positive integer, and the size must be large enough for one of them.
        """
        difference = size - minimum
        if self.prove(">=", difference):
            return
        limit = self._extreme_values(difference)[0]
        free = symbols(limit) - self.state.point.keys() - {segment.symbol for segment in self.active}
        if free and symbols(limit) == free:
            return
        if free:
            terms = [(expression(((m, 1),)), scale) for m, scale in terms_of(limit)]
            terms = [(term, scale) for term, scale in terms if symbols(term) & free]
            if any(scale > 0 and bounds(term)[1] is None for term, scale in terms):
                return
            if any(atom.kind != "symbol" for term, _ in terms for atom in atoms(term)):
                self.refuse(f"cannot prove `{self.describe(size)} >= {minimum}` for all values", span)
            limit = substitute(limit, dict.fromkeys(free, 1))
            if self.prove(">=", limit):
                return
        # No other decision depends on this, so the compilation continues with the same symbols.
        self._record(self._create_assumption(">=", self._eliminate_division(limit), 0, span))

    def _eliminate_division(self, limit: Dim) -> Dim:
        """Return an expression that is at least 0 exactly if `limit` is: a // b >= n if and only if a >= n * b."""
        for atom in atoms(limit):
            remainder = limit - expression(((((atom, 1),), 1),))
            if atom.kind == "//" and atom not in atoms(remainder):
                part, divisor = map(expression, atom.arguments)
                if self.prove(">", divisor):
                    return part + remainder * divisor
        return limit

    def _record(self, assumption: Assumption) -> None:
        self.assumptions.setdefault(assumption[:3], assumption)

    def _substitute_minimum(self, positive: Dim, assumption: Assumption) -> None:
        """Substitute a symbol that has a minimum because `positive` is positive."""
        names = symbols(positive)
        for name in names if len(names) == 1 else ():
            limit = threshold(positive, name)
            if (linear_slope(positive, name) or 0) > 0 and limit is not None and limit >= 1:
                new_symbol = self.state.unused_symbol(name)
                raise SubstitutionRestart(
                    name, symbol(new_symbol) + limit, new_symbol, symbol(name) - limit, assumption
                )

    def _assume_divisible(self, part: Dim, divisor: Dim, span: Span) -> None:
        assumption = Assumption("divisible", part, divisor, span, self._requires)
        if isinstance(part, int):
            names = tuple(n for n, value in self.state.closed.items() if abs(value) == abs(part))
            if names:
                raise OpenRestart(names)
        elif len(part.terms) == 1 and len(symbols(part)) == 1:
            (only,) = symbols(part)
            scale = linear_slope(part, only)
            factor: Dim | None = None
            if scale and isinstance(divisor, int):
                factor = divisor // gcd(divisor, scale)
            elif scale == 1 and only not in symbols(divisor):
                factor = divisor
            inverse = divide_symbol(only, factor) if factor is not None else None
            if factor is not None and inverse is not None:
                new_symbol = self.state.unused_symbol(only)
                raise SubstitutionRestart(only, factor * symbol(new_symbol), new_symbol, inverse, assumption)
        self._record(assumption)

    # Loops

    def iterations(self, key: Hashable, variable: str, first: Dim, last: Dim, span: Span, depth: int) -> Iterations:
        """Return the iterations of a loop, and assume that there are at least as many as are processed singly."""
        schedule = self.state.schedules.get(key, Schedule())
        single = schedule.prefix + schedule.tail
        self.assume(">=", last - first, single, span)
        start, stop = first + schedule.prefix, last - schedule.tail
        segments: list[Segment] = []
        for part in range(schedule.stride):
            marker = self._names.setdefault((key, part), f"{MARK}{len(self._names)}")
            index = start + part + schedule.stride * (symbol(marker) - 1)
            count = (stop - start - part + schedule.stride - 1) // schedule.stride
            every = f"%{schedule.stride}+{part}" if schedule.stride > 1 else ""
            text = f"{{{start}~{stop}@{depth}{every}}}"
            segment = Segment(key, marker, index, count, text, variable, start + part, schedule.stride)
            self.segments[marker], self.intervals[text] = segment, (start, stop)
            segments.append(segment)
        return Iterations(
            tuple([first + k for k in range(schedule.prefix)]),
            tuple(segments),
            tuple([stop + k for k in range(schedule.tail)]),
            start,
            stop,
        )

    def index_text(self, index: Polynomial) -> str | None:
        """Return the text of a symbolic index in an address; None if it cannot be an index."""
        if not self.prove(">=", index):
            return None
        for segment in self.active:
            if index == segment.position:
                return segment.text
        text = f"{{{index}}}"
        if symbols(index) <= self.state.point.keys():
            self.intervals[text] = (index, index + 1)
        return text

    def refuse_sum(self, summand: Expression, segment: Segment, span: Span) -> NoReturn:
        """Divide a loop differently if the sum of `summand` over it has no closed form, or refuse."""
        self.divide_loop(segment, stride=lcm(*_moduli(summand, segment.symbol)))
        message = f"no closed form for the sum of {self.describe(summand)} over `{segment.variable}`"
        self.program.report.error("no-formula", message, span)
        raise NoFormulaError

    # Messages

    def describe(self, dim: Expression) -> str:
        """Format a size in terms of the hyperparameters and indices of the spec."""
        return to_text(substitute(dim, self._meanings()), tuple(self.state.hyperparameters))

    def translate(self, message: str) -> str:
        """Replace the symbols in a message by their meanings, and indices in addresses as in the terms of a formula."""
        message = re.sub(r"\{([^{}]*)\}", lambda m: "*" if is_segment_index(m[1]) else f"({m[1]})", message)
        for segment in self.segments.values():
            message = message.replace(str(segment.position), segment.variable)
        meanings = {n: to_text(m) for n, m in self._meanings().items()}
        return re.sub(rf"\w*{MARK}\w*", lambda m: _operand(meanings.get(m[0], m[0])), message)

    def _meanings(self) -> dict[str, Expression]:
        meanings = dict(self.state.meanings)
        for segment in self.segments.values():
            first = substitute(segment.first, meanings)
            meanings[segment.symbol] = ratio(index(segment.variable) - first, segment.stride) + 1
        return meanings

    def refuse(self, message: str, span: Span) -> NoReturn:
        self.program.error("no-formula", message, span)
        raise NoFormulaError


def _operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _moduli(value: Expression, name: str) -> Iterator[int]:
    """Yield the integers by which expressions of `name` are divided."""
    for atom in atoms(value):
        arguments = [expression(argument) for argument in atom.arguments]
        if atom.kind in ("//", "%") and isinstance(arguments[1], int) and name in symbols(arguments[0]):
            yield abs(arguments[1])
        for argument in arguments:
            yield from _moduli(argument, name)
