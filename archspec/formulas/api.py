"""Numbers of parameters as polynomials in hyperparameters left open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from archspec.algebra import Polynomial, cleared, notation
from archspec.formulas.derivation import derive
from archspec.formulas.restarts import Assumption
from archspec.formulas.totals import Outcome, Term
from archspec.pipeline import compile_file, written
from archspec.source import Diagnostic, fail, suggest


class Formula:
    """A model's number of parameters with hyperparameters left open. Made by `archspec.formula`.

    `open` has these with their values in the model, `hyperparameters` all. `total`, `trainable` and `frozen` are
    polynomials; `terms` say what the total is made of. They hold for all positive integers for which the `assumptions`
    do and the spec compiles.
    """

    def __init__(
        self,
        model: str,
        open: dict[str, int],
        hyperparameters: dict[str, Any],
        overrides: dict[str, Any],
        outcome: Outcome,
        warnings: tuple[Diagnostic, ...],
    ) -> None:
        self.model = model
        self.open = open
        self.hyperparameters = hyperparameters
        self.overrides = overrides
        self.total = outcome.total
        self.frozen = outcome.frozen
        self.trainable = outcome.total - outcome.frozen
        self.terms: tuple[Term, ...] = outcome.terms
        self.assumptions = outcome.assumptions
        self.warnings = warnings

    def __repr__(self) -> str:
        return f"<Formula {self.model!r}: {self.text(self.total)}>"

    def at(self, **values: int) -> int:
        """The number of parameters where hyperparameters have these values, and those left out the model's own.

        Raises ValueError for a name that is not open, a value that is no positive integer, or values for which an
        assumption does not hold.
        """
        for hyperparameter, value in values.items():
            if hyperparameter not in self.open:
                raise ValueError(
                    f"`{hyperparameter}` is not open; open hyperparameters: {', '.join(f'`{n}`' for n in self.open)}"
                )
            if value.__class__ is not int or value < 1:
                raise ValueError(f"expected a positive integer for `{hyperparameter}`, found {value!r}")
        numbers = {**self.open, **values}
        for assumption in self.assumptions:
            if not assumption.holds(numbers):
                raise ValueError(f"the formula assumes {self.assumed(assumption)}")
        return self.total.at(numbers)

    def text(self, polynomial: Polynomial, collect: bool = True) -> str:
        """A polynomial as text that Python reads too; with `collect`, numbers of rounds stand before brackets."""
        return notation.text(polynomial, tuple(self.open), self._counts if collect else ())

    def latex(self) -> str:
        """The numbers, what repeats unevenly as sums, and the assumptions, as LaTeX: an `align*` environment."""
        latex, order = notation.latex, tuple(self.open)
        lines = [rf"\text{{{what}}} &= {latex(number, order, self._counts)}" for what, number in self.numbers()]
        for term in self.terms:
            if term.variable and term.stride == 1:
                first, last = latex(term.first, order), latex(term.first + term.rounds - 1, order)
                sums = rf"\sum_{{{term.variable}={first}}}^{{{last}}} \left( {latex(term.each, order)} \right)"
                address = term.address.replace("_", r"\_")
                lines.append(rf"\text{{{address}}} &= {sums} = {latex(term.total, order)}")
        for assumption in self.assumptions:
            lines.append(rf"\text{{assuming}} &\quad {self.assumed(assumption, latex, _LATEX)}")
        return "\\begin{align*}\n  " + " \\\\\n  ".join(lines) + "\n\\end{align*}\n"

    def numbers(self) -> Iterable[tuple[str, Polynomial]]:
        """The total, and what of it is trainable and frozen if something is."""
        yield "parameters", self.total
        if self.frozen:
            yield "trainable", self.trainable
            yield "frozen", self.frozen

    def assumed(
        self,
        assumption: Assumption,
        write: Callable[[Polynomial, Sequence[str]], str] = notation.text,
        words: dict[str, str] | None = None,
    ) -> str:
        """An assumption as a sentence's end, or with `notation.latex` for `write` and words of it for math mode."""
        left, operator, right, order = assumption.left, assumption.operator, assumption.right, tuple(self.open)
        if operator == "divisible":
            left, right = cleared(left, right)
        else:
            left, operator, right = _sorted(left, operator, right)
        word = (words or _WORDS).get(operator, operator)
        return f"{write(left, order)} {word} {write(right, order)}"

    @property
    def _counts(self) -> tuple[str, ...]:
        """The open hyperparameters that say how often something is repeated."""
        return tuple(n for n in self.open if any(n in term.rounds.names for term in self.terms))


def _sorted(left: Polynomial, operator: str, right: Polynomial) -> tuple[Polynomial, str, Polynomial]:
    """A comparison with nothing taken off on either side, and names on the left."""
    above, below = Polynomial({}), Polynomial({})
    for powers, scale in (left - right).terms.items():
        term = Polynomial({powers: abs(scale)})
        if scale > 0:
            above += term
        else:
            below += term
    if above.value is not None:
        return below, operator.translate(str.maketrans("<>", "><")), above
    return above, operator, below


_WORDS = {"divisible": "is divisible by"}
_LATEX = {"divisible": r"\text{ is divisible by }", "==": "=", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq"}


def formula(spec: str | os.PathLike[str], /, open: Sequence[str], **overrides: Any) -> Formula:
    """The number of parameters of a model as a polynomial in the hyperparameters named in `open`.

    `spec` and `overrides` are as for `load`; a value given for an open hyperparameter is the one it has in the model.

    Raises ArchError if the model does not compile, if what is to be open is no integer hyperparameter of it (`usage`),
    or if no formula can be derived (`no-formula`).
    """
    return formula_of(written(spec), open, overrides)


def formula_of(spec: str, names: Sequence[str], overrides: dict[str, Any]) -> Formula:
    """As `formula`, with the overrides in a dictionary."""
    model, loaded = compile_file(spec, overrides)
    integers = {n: value for n, value in model.hyperparameters.items() if value.__class__ is int}
    choices = (
        f"integer hyperparameters: {', '.join(integers)}" if integers else "the model has no integer hyperparameters"
    )
    if not names:
        raise fail("usage", "no open hyperparameters specified", help=f"use `--open NAME,NAME`; {choices}")
    for name in names:
        if name not in model.hyperparameters:
            help = suggest(name, list(integers)) or choices
            raise fail("usage", f'unknown hyperparameter `{name}` of "{model.name}"', help=help)
        if name not in integers or integers[name] < 1:
            message = f"`{name}` cannot be open: its value is not a positive integer"
            raise fail("usage", message, help=choices)
    values = {name: integers[name] for name in names}
    outcome = derive(loaded.unit, loaded.unit.models[model.name], overrides, values, integers)
    derived = Formula(model.name, values, model.hyperparameters, overrides, outcome, model.warnings)
    if (derived.at(), derived.frozen.at(values)) != (model.params.total, model.params.frozen):
        raise fail(
            "internal",
            f"the formula for {model.name} does not evaluate to its total; this is a bug in archspec; please report it",
        )
    return derived
