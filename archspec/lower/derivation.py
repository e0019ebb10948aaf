"""Numbers of parameters as polynomials in hyperparameters left open: compiles a model with symbols in their place.

A compilation that meets something it must assume, or decide, ends with a step that another one begins with; what that
one derives is put in terms of what there was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from archspec.algebra import Polynomial, constant, name
from archspec.dims import Dim, substitute, symbol
from archspec.ir import uncollected
from archspec.lower.compile import compile_model
from archspec.lower.opened import OpenFlow, OpenOwner
from archspec.lower.opening import MARK, Cases, Opening, Probed, Refusal, Rescheduled, Solved, State, Widened
from archspec.lower.program import OverBudget, Program
from archspec.lower.tally import Outcome, Tally
from archspec.lower.units import Unit
from archspec.source import ArchError, Diagnostic, Enough, Report, fail
from archspec.syntax import tree

MOST_COMPILATIONS = 200


def derive(
    unit: Unit, model: tree.Model, overrides: Mapping[str, Any], open: Mapping[str, int], closed: Mapping[str, int]
) -> Outcome:
    """The numbers of parameters of a model, with the hyperparameters `open` left open.

    `open` has their values in the model, which compiles without findings, and `closed` those of the other integers.
    Raises ArchError (`no-formula`) where that cannot be.
    """
    wider = dict(open)
    while True:
        marked = {n: n + MARK for n in wider}
        state = State(
            {n: symbol(m) for n, m in marked.items()},
            {m: name(n) for n, m in marked.items()},
            {marked[n]: value for n, value in wider.items()},
            {n: value for n, value in closed.items() if n not in wider},
            {},
        )
        try:
            outcome = Derivation(unit, model, overrides).derive(state)
        except Widened as step:
            wider |= {n: closed[n] for n in step.names}
            continue
        outcome = outcome.substitute({m: name(n) for n, m in marked.items()})
        outcome = outcome.substitute({n: constant(value) for n, value in wider.items() if n not in open})
        assumed = {a[:3]: a for a in outcome.assumptions if a.left.names | a.right.names}
        return outcome._replace(assumptions=tuple(assumed.values()))


class Derivation:
    """The compilations that lead to one formula."""

    def __init__(self, unit: Unit, model: tree.Model, overrides: Mapping[str, Any]) -> None:
        self.unit = unit
        self.model = model
        self.overrides = overrides
        self.compilations = 0

    def derive(self, state: State) -> Outcome:
        """What a compilation that begins with `state` comes to, in its symbols."""
        opening = Opening(state, OpenOwner, OpenFlow)
        try:
            return self._compile(opening)
        except Rescheduled as step:
            outcome = self._divisible(opening) if isinstance(step, Probed) else None
            if outcome is not None:
                return outcome
            return self.derive(state._replace(schedules={**state.schedules, step.key: step.schedule}))
        except Solved as step:
            return self._solved(state, step)
        except Cases as step:
            return self._cases(state, step)
        except ArchError:
            outcome = self._divisible(opening)
            if outcome is None:
                raise
            return outcome

    def _compile(self, opening: Opening) -> Outcome:
        self.compilations += 1
        if self.compilations > MOST_COMPILATIONS:
            raise fail("no-formula", f"more than {MOST_COMPILATIONS} cases would have to be told apart")
        report = Report()
        program = opening.program = Program(opening)
        program.begin(report, self.unit.source)
        compiled = None
        with uncollected(), suppress(Enough, OverBudget, Refusal):
            try:
                compiled = compile_model(
                    program, self.unit, self.model, {**self.overrides, **opening.state.hyperparameters}
                )
                if compiled is not None and not report.failed:
                    return Tally(opening, compiled.module).outcome()
            except OverflowError as problem:
                report.error("no-formula", f"the formula grows too large: {problem}")
        first = next((d for d in report.diagnostics if d.severity == "error"), None)
        if first is None:
            raise fail("internal", "no formula was found, and nothing said why; please report this")
        raise ArchError([_as_refusal(first, opening)])

    def _solved(self, state: State, step: Solved) -> Outcome:
        value = step.inverse.at(state.point)
        meaning = step.inverse.substitute(state.meanings)
        outcome = self.derive(state.replaced(step.old, step.by, step.fresh, value, meaning))
        outcome = outcome.substitute({step.fresh: step.inverse})
        return outcome._replace(assumptions=(step.assumption, *outcome.assumptions))

    def _cases(self, state: State, step: Cases) -> Outcome:
        """What is derived for large values of a symbol, if small ones lead to the same."""
        old, upto = step.name, step.upto
        fresh = old + MARK
        while fresh in state.point:
            fresh += MARK
        meaning = state.meanings[old] - upto
        large = self.derive(state.replaced(old, symbol(fresh) + upto, fresh, state.point[old] - upto, meaning))
        large = large.substitute({fresh: name(old) - upto})
        assumptions = list(large.assumptions)
        for value in range(1, upto + 1):
            small = self.derive(state.replaced(old, value, None, 0, constant(0)))
            if (small.total, small.frozen) != _at(large, {old: constant(value)}):
                message = "the number of parameters depends on what is decided here"
                raise fail("no-formula", message, step.span)
            assumptions += small.assumptions
        return large._replace(assumptions=tuple(assumptions))

    def _divisible(self, opening: Opening) -> Outcome | None:
        """What is derived if something that was divided is assumed to be divisible, as it is in the model."""
        for (part, divisor), span in reversed(opening.floors.items()):
            if _number(part, opening.state) % _number(divisor, opening.state):
                continue
            try:
                opening.assume("==", part % divisor, 0, span)
            except Solved as step:
                with suppress(ArchError):
                    return self._solved(opening.state, step)
            except (Refusal, Widened):
                pass
        return None


def _number(dim: Dim, state: State) -> int:
    number = substitute(dim, state.point)
    assert isinstance(number, int)
    return number


def _at(outcome: Outcome, values: dict[str, Polynomial]) -> tuple[Polynomial, Polynomial]:
    return outcome.total.substitute(values), outcome.frozen.substitute(values)


def _as_refusal(found: Diagnostic, opening: Opening) -> Diagnostic:
    """What kept a model from being compiled, as a reason why there is no formula."""
    names = ", ".join(f"`{n}`" for n in opening.state.hyperparameters)
    message = opening.translate(found.message)
    notes = tuple([note._replace(text=opening.translate(note.text)) for note in found.notes])
    help = f"this is with {names} open; leave out the one it depends on, or give it with `--set`"
    return Diagnostic("no-formula", message, found.span, notes, help)
