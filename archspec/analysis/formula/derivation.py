"""Derivation of parameter counts as polynomials, by compiling a model with symbols for its open hyperparameters.

A compilation that must make an assumption or a case distinction ends with a restart; the result of the next compilation
is converted back to the earlier symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import (
    MARK,
    CasesRestart,
    NoFormulaError,
    OpenRestart,
    ProbeRestart,
    Restart,
    ScheduleRestart,
    State,
    SubstitutionRestart,
)
from archspec.analysis.formula.symbolic_numbers import SymbolicArithmetic
from archspec.analysis.formula.totals import Outcome, Totals
from archspec.compiler.elaborate.models import CompiledModel, compile_model, hyperparameters
from archspec.compiler.evaluate.limits import MAX_PROCESSED_CHARACTERS
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.definition import resolve_model, uses_hyperparameter
from archspec.compiler.resolve.unit import Unit
from archspec.core.algebra import Expression, symbol, symbols
from archspec.core.diagnostics import ArchError, Diagnostic, Report, Span, StopCompilation, internal_error, make_error
from archspec.ir.module import gc_paused
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree

Measure: TypeAlias = Callable[[Solver, CompiledModel], dict[str, Expression]]
"""A function that derives numbers by name from a compilation with symbols; it may make further assumptions."""

MAX_COMPILATIONS = 200
MAX_UNREQUIRED = 2


def derive(
    unit: Unit,
    model: tree.Model,
    overrides: Mapping[str, PlainValue],
    open: Mapping[str, int],
    closed: Mapping[str, int],
    measure: Measure | None = None,
) -> Outcome:
    """Derive the parameter counts of a model as polynomials in the hyperparameters `open`.

    `open` has their values in the model, which compiles without errors, and `closed` the values of the other integer
    hyperparameters. `measure` derives further numbers from each compilation.
    Raises ArchError (`no-formula`) if there is no formula.
    """
    open_values = dict(open)
    closed = _find_fixed_values(unit, model, overrides, _initial_state(open_values, closed))
    while True:
        fixed = {n: value for n, value in closed.items() if n not in open_values}
        try:
            # Hyperparameters opened only to state an assumption do not change the values that follow from them.
            outcome = Derivation(unit, model, {**overrides, **fixed}, measure).derive_outcome(
                _initial_state(open_values, fixed)
            )
        except OpenRestart as step:
            open_values |= {n: closed[n] for n in step.names}
            continue
        outcome = outcome.substitute({n + MARK: symbol(n) for n in open_values})
        outcome = outcome.substitute({n: value for n, value in open_values.items() if n not in open})
        assumptions = {a[:3]: a for a in outcome.assumptions if symbols(a.left) | symbols(a.right)}
        return outcome._replace(assumptions=tuple(assumptions.values()))


def _initial_state(open: Mapping[str, int], closed: Mapping[str, int]) -> State:
    marked = {n: n + MARK for n in open}
    return State(
        {n: symbol(m) for n, m in marked.items()},
        {m: symbol(n) for n, m in marked.items()},
        {marked[n]: value for n, value in open.items()},
        dict(closed),
        {},
    )


def _find_fixed_values(
    unit: Unit, model: tree.Model, overrides: Mapping[str, PlainValue], state: State
) -> dict[str, int]:
    """Return the closed integers that are used and depend on no open ones; none if this cannot be determined."""
    solver = Solver(state)
    program = solver.program = Program(SymbolicArithmetic(solver))
    program.begin(Report(), unit.source)
    definition_call = resolve_model(unit, model, program.report)
    assert definition_call is not None
    with suppress(Restart, NoFormulaError, ArchError, StopCompilation, OverflowError):
        values = hyperparameters(program, unit, definition_call, {**overrides, **state.hyperparameters}) or {}
        fixed = {n: value for n, value in state.closed.items() if values.get(n) == value}
        return {
            n: value for n, value in fixed.items() if uses_hyperparameter(definition_call.definition, n, program.report)
        }
    return {}


class Derivation:
    """The compilations for one formula."""

    def __init__(
        self, unit: Unit, model: tree.Model, overrides: Mapping[str, PlainValue], measure: Measure | None = None
    ) -> None:
        self.unit = unit
        self.model = model
        self.overrides = overrides
        self.measure = measure
        self.compilations = 0
        self.work = 0

    def derive_outcome(self, state: State) -> Outcome:
        """Return the outcome of a compilation from `state`, with as few additional assumptions as possible."""
        for unrequired in range(MAX_UNREQUIRED):
            with suppress(ArchError):
                return self.derive(state, unrequired)
        return self.derive(state, MAX_UNREQUIRED)

    def derive(self, state: State, unrequired: int) -> Outcome:
        """Return the outcome of a compilation that starts with `state`, in its symbols.

        `unrequired` limits the assumptions that a quotient is exact although no `require` demands it.
        """
        solver = Solver(state)
        try:
            return self._compile(solver)
        except ScheduleRestart as step:
            outcome = self._derive_divisible(solver, unrequired) if isinstance(step, ProbeRestart) else None
            if outcome is not None:
                return outcome
            return self.derive(state._replace(schedules={**state.schedules, step.key: step.schedule}), unrequired)
        except SubstitutionRestart as step:
            return self._derive_substituted(state, step, unrequired)
        except CasesRestart as step:
            return self._derive_cases(state, step, unrequired)
        except ArchError:
            outcome = self._derive_divisible(solver, unrequired)
            if outcome is None:
                raise
            return outcome

    def _compile(self, solver: Solver) -> Outcome:
        self.compilations += 1
        if self.compilations > MAX_COMPILATIONS:
            raise make_error("no-formula", f"too many case distinctions: the limit is {MAX_COMPILATIONS}")
        if self.work > MAX_PROCESSED_CHARACTERS:
            raise make_error(
                "no-formula", f"too much text to process: the limit is {MAX_PROCESSED_CHARACTERS:,} characters"
            )
        report = Report()
        program = solver.program = Program(SymbolicArithmetic(solver))
        program.begin(report, self.unit.source)
        with gc_paused(), suppress(StopCompilation, NoFormulaError):
            try:
                overrides = {**self.overrides, **solver.state.hyperparameters}
                compiled = compile_model(program, self.unit, self.model, overrides)
                if compiled is not None and not report.failed:
                    measures = self.measure(solver, compiled) if self.measure is not None else {}
                    return Totals(solver, compiled.module).outcome()._replace(measures=measures)
            except OverflowError as problem:
                report.error("no-formula", f"the formula is too large: {problem}")
            finally:
                self.work += program.limits.text
        first = next((d for d in report.diagnostics if d.severity == "error"), None)
        if first is None:
            raise internal_error("no formula was found, but no error was reported")
        raise ArchError([_as_refusal(first, solver)])

    def _derive_substituted(self, state: State, step: SubstitutionRestart, unrequired: int) -> Outcome:
        outcome = self.derive(state.replace_symbol(step.old, step.replacement, step.fresh, step.inverse), unrequired)
        outcome = _substitute_symbol(outcome, step.fresh, step.inverse, step.assumption.span)
        return outcome._replace(assumptions=(step.assumption, *outcome.assumptions))

    def _derive_cases(self, state: State, step: CasesRestart, unrequired: int) -> Outcome:
        """Return the outcome for large values of a symbol if small values have the same outcome."""
        old, upto, fresh = step.name, step.upto, state.unused_symbol(step.name)
        shifted = symbol(old) - upto
        large = self.derive(state.replace_symbol(old, symbol(fresh) + upto, fresh, shifted), unrequired)
        large = _substitute_symbol(large, fresh, shifted, step.span)
        assumptions = list(large.assumptions)
        for value in range(1, upto + 1):
            small = self.derive(state.replace_symbol(old, value), unrequired)
            if _comparable_numbers(small) != _comparable_numbers(_substitute_symbol(large, old, value, step.span)):
                raise make_error("no-formula", "the parameters depend on how this is decided", step.span)
            assumptions += small.assumptions
        # A requirement of one case may not be a requirement of the others.
        return large._replace(assumptions=tuple([a._replace(is_required=False) for a in assumptions]))

    def _derive_divisible(self, solver: Solver, unrequired: int) -> Outcome | None:
        """Return the outcome under the assumption that a quotient is exact, as it is in the model."""
        widened: OpenRestart | None = None
        for (part, divisor), span in reversed(solver.divisions.items()) if unrequired else ():
            dividend_value, divisor_value = solver.state.value(part), solver.state.value(divisor)
            if dividend_value is None or divisor_value is None or dividend_value % divisor_value:
                continue
            try:
                solver.assume("==", part % divisor, 0, span)
            except SubstitutionRestart as step:
                with suppress(ArchError):
                    return self._derive_substituted(solver.state, step, unrequired - 1)
            except OpenRestart as step:
                widened = widened or step
            except NoFormulaError:
                pass
        if widened is not None:
            raise widened
        return None


def _substitute_symbol(outcome: Outcome, symbol: str, replacement: Expression, span: Span) -> Outcome:
    """Substitute a symbol in an outcome."""
    try:
        return outcome.substitute({symbol: replacement})
    except (OverflowError, ValueError) as problem:
        message = f"the consequence of this cannot be written as a polynomial: {problem}"
        raise make_error("no-formula", message, span) from None


def _comparable_numbers(outcome: Outcome) -> dict[str, Expression]:
    """Return the total, the frozen parameters, and the terms without their indices."""
    numbers = {"total": outcome.total, "frozen": outcome.frozen}
    numbers |= {f"measure {name}": number for name, number in outcome.measures.items()}
    for term in outcome.terms:
        pattern = re.sub(r"(?<![^.])(\d+|\(.*?\))(?![^.])", "*", term.address)
        numbers[f".{pattern}"] = numbers.get(f".{pattern}", 0) + term.total
    return {pattern: number for pattern, number in numbers.items() if number}


def _as_refusal(diagnostic: Diagnostic, solver: Solver) -> Diagnostic:
    """Convert the error of a compilation to the reason why there is no formula."""
    names = ", ".join(f"`{n}`" for n in solver.state.hyperparameters)
    notes = tuple([note._replace(text=solver.translate(note.text)) for note in diagnostic.notes])
    help = f"remove what this depends on from --open; open now: {names}"
    return Diagnostic("no-formula", solver.translate(diagnostic.message), diagnostic.span, notes, help)
