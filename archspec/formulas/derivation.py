"""Numbers of parameters as polynomials in hyperparameters left open: compiles a model with symbols in their place.

A compilation that meets something it must assume, or decide, ends with a step that another one begins with; what that
one derives is put in terms of what there was before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from archspec.algebra import Expression, substitute, symbol, symbols
from archspec.elaborate.limits import MOST_TEXT, OverLimit
from archspec.elaborate.models import compile_model, hyperparameters
from archspec.elaborate.program import Program
from archspec.formulas.assumptions import Opening
from archspec.formulas.restarts import MARK, Cases, Probed, Refusal, Rescheduled, Solved, State, Step, Widened
from archspec.formulas.symbolic_numbers import SymbolicNumbers
from archspec.formulas.totals import Outcome, Tally
from archspec.ir import uncollected
from archspec.resolve.definition import resolve_model
from archspec.resolve.files import Unit
from archspec.source import ArchError, Diagnostic, Enough, Report, Span, fail
from archspec.syntax import tree

MOST_COMPILATIONS = 200
MOST_UNASKED = 2


def derive(
    unit: Unit, model: tree.Model, overrides: Mapping[str, Any], open: Mapping[str, int], closed: Mapping[str, int]
) -> Outcome:
    """The numbers of parameters of a model, with the hyperparameters `open` left open.

    `open` has their values in the model, which compiles without findings, and `closed` those of the other integers.
    Raises ArchError (`no-formula`) where that cannot be.
    """
    wider = dict(open)
    closed = _fixed(unit, model, overrides, _state(wider, closed))
    while True:
        kept = {n: value for n, value in closed.items() if n not in wider}
        try:
            # What is opened only to tell what is assumed of it changes nothing that follows from it.
            outcome = Derivation(unit, model, {**overrides, **kept}).derived(_state(wider, kept))
        except Widened as step:
            wider |= {n: closed[n] for n in step.names}
            continue
        outcome = outcome.substitute({n + MARK: symbol(n) for n in wider})
        outcome = outcome.substitute({n: value for n, value in wider.items() if n not in open})
        assumed = {a[:3]: a for a in outcome.assumptions if symbols(a.left) | symbols(a.right)}
        return outcome._replace(assumptions=tuple(assumed.values()))


def _state(open: Mapping[str, int], closed: Mapping[str, int]) -> State:
    marked = {n: n + MARK for n in open}
    return State(
        {n: symbol(m) for n, m in marked.items()},
        {m: symbol(n) for n, m in marked.items()},
        {marked[n]: value for n, value in open.items()},
        dict(closed),
        {},
    )


def _fixed(unit: Unit, model: tree.Model, overrides: Mapping[str, Any], state: State) -> dict[str, int]:
    """Of the integers that are closed, those that follow from none that is open; none where that is not plain."""
    opening = Opening(state)
    program = opening.program = Program(SymbolicNumbers(opening))
    program.begin(Report(), unit.source)
    form = resolve_model(unit, model, program.report)
    assert form is not None
    with suppress(Step, Refusal, ArchError, Enough, OverLimit, OverflowError):
        values = hyperparameters(program, unit, form, {**overrides, **state.hyperparameters}) or {}
        return {n: value for n, value in state.closed.items() if values.get(n) == value}
    return {}


class Derivation:
    """The compilations that lead to one formula."""

    def __init__(self, unit: Unit, model: tree.Model, overrides: Mapping[str, Any]) -> None:
        self.unit = unit
        self.model = model
        self.overrides = overrides
        self.compilations = 0
        self.work = 0

    def derived(self, state: State) -> Outcome:
        """What a compilation that begins with `state` comes to, with as few unasked-for assumptions as can be."""
        for unasked in range(MOST_UNASKED):
            with suppress(ArchError):
                return self.derive(state, unasked)
        return self.derive(state, MOST_UNASKED)

    def derive(self, state: State, unasked: int) -> Outcome:
        """What a compilation that begins with `state` comes to, in its symbols.

        So often it may be assumed that what is divided is divisible, though no `require` says so.
        """
        opening = Opening(state)
        try:
            return self._compile(opening)
        except Rescheduled as step:
            outcome = self._divisible(opening, unasked) if isinstance(step, Probed) else None
            if outcome is not None:
                return outcome
            return self.derive(state._replace(schedules={**state.schedules, step.key: step.schedule}), unasked)
        except Solved as step:
            return self._solved(state, step, unasked)
        except Cases as step:
            return self._cases(state, step, unasked)
        except ArchError:
            outcome = self._divisible(opening, unasked)
            if outcome is None:
                raise
            return outcome

    def _compile(self, opening: Opening) -> Outcome:
        self.compilations += 1
        if self.compilations > MOST_COMPILATIONS or self.work > MOST_TEXT:
            raise fail("no-formula", f"too many case distinctions: the limit is {MOST_COMPILATIONS}")
        report = Report()
        program = opening.program = Program(SymbolicNumbers(opening))
        program.begin(report, self.unit.source)
        with uncollected(), suppress(Enough, OverLimit, Refusal):
            try:
                compiled = compile_model(
                    program, self.unit, self.model, {**self.overrides, **opening.state.hyperparameters}
                )
                if compiled is not None and not report.failed:
                    return Tally(opening, compiled.module).outcome()
            except OverflowError as problem:
                report.error("no-formula", f"the formula is too large: {problem}")
            finally:
                self.work += program.limits.text
        first = next((d for d in report.diagnostics if d.severity == "error"), None)
        if first is None:
            raise fail(
                "internal",
                "no formula was found, but no error was reported; this is a bug in archspec; please report it",
            )
        raise ArchError([_as_refusal(first, opening)])

    def _solved(self, state: State, step: Solved, unasked: int) -> Outcome:
        value = _point(step.inverse, state)
        meaning = substitute(step.inverse, state.meanings)
        outcome = self.derive(state.replaced(step.old, step.by, step.fresh, value, meaning), unasked)
        outcome = _restated(outcome, step.fresh, step.inverse, step.assumption.span)
        return outcome._replace(assumptions=(step.assumption, *outcome.assumptions))

    def _cases(self, state: State, step: Cases, unasked: int) -> Outcome:
        """What is derived for large values of a symbol, if small ones lead to the same."""
        old, upto = step.name, step.upto
        fresh = old + MARK
        while fresh in state.point:
            fresh += MARK
        meaning = state.meanings[old] - upto
        shifted = symbol(old) - upto
        value = _point(shifted, state)
        large = self.derive(state.replaced(old, symbol(fresh) + upto, fresh, value, meaning), unasked)
        large = _restated(large, fresh, shifted, step.span)
        assumptions = list(large.assumptions)
        for value in range(1, upto + 1):
            small = self.derive(state.replaced(old, value, None, 0, 0), unasked)
            if _numbers(small) != _numbers(_restated(large, old, value, step.span)):
                message = "the parameters depend on how this is decided"
                raise fail("no-formula", message, step.span)
            assumptions += small.assumptions
        return large._replace(assumptions=tuple(assumptions))

    def _divisible(self, opening: Opening, unasked: int) -> Outcome | None:
        """What is derived if something that was divided is assumed to be divisible, as it is in the model."""
        widened: Widened | None = None
        for (part, divisor), span in reversed(opening.floors.items()) if unasked else ():
            one, other = _point(part, opening.state), _point(divisor, opening.state)
            if one is None or other is None or one % other:
                continue
            try:
                opening.assume("==", part % divisor, 0, span)
            except Solved as step:
                with suppress(ArchError):
                    return self._solved(opening.state, step, unasked - 1)
            except Widened as step:
                widened = widened or step
            except Refusal:
                pass
        if widened is not None:
            raise widened
        return None


def _point(expression: Expression, state: State) -> int | None:
    """A positive integer at the model's own hyperparameters; None if it is none there."""
    value = substitute(expression, {name: value for name, value in state.point.items() if value is not None})
    return value if isinstance(value, int) and value >= 1 else None


def _restated(outcome: Outcome, symbol: str, by: Expression, span: Span) -> Outcome:
    """An outcome with a symbol replaced."""
    try:
        return outcome.substitute({symbol: by})
    except (OverflowError, ValueError) as problem:
        raise fail(
            "no-formula", f"the consequence of this cannot be written as a polynomial: {problem}", span
        ) from None


def _numbers(outcome: Outcome) -> dict[str, Expression]:
    """How many parameters there are, how many are frozen, and where they are, indices left out."""
    found = {"total": outcome.total, "frozen": outcome.frozen}
    for term in outcome.terms:
        place = re.sub(r"(?<![^.])(\d+|\(.*?\))(?![^.])", "*", term.address)
        found[f".{place}"] = found.get(f".{place}", 0) + term.total
    return {place: number for place, number in found.items() if number}


def _as_refusal(found: Diagnostic, opening: Opening) -> Diagnostic:
    """What kept a model from being compiled, as a reason why there is no formula."""
    names = ", ".join(f"`{n}`" for n in opening.state.hyperparameters)
    notes = tuple([note._replace(text=opening.translate(note.text)) for note in found.notes])
    help = f"remove what this depends on from --open; open now: {names}"
    return Diagnostic("no-formula", opening.translate(found.message), found.span, notes, help)
