"""`archspec.formula`: the parameter count of a model as a polynomial in open hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from archspec.analysis.formula.derivation import derive
from archspec.analysis.formula.restarts import Assumption
from archspec.analysis.formula.totals import FormulaTerm, Outcome
from archspec.core.algebra import (
    Expression,
    clear_fractions,
    evaluate,
    expression,
    index,
    number,
    symbols,
    terms_of,
    to_latex,
    to_text,
)
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import internal_error, make_error, suggest
from archspec.core.reports.results import Displayable
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


class Formula(Displayable):
    """The parameter count of a model as polynomials in open hyperparameters, created by `archspec.formula`.

    `open` has the open hyperparameters with their values in the model, `hyperparameters` all of them. `total`,
    `trainable` and `frozen` are polynomials, or integers if nothing in them is open; `terms` are the terms of the
    total. They hold for all positive integers for which the `assumptions` hold and the spec compiles.
    """

    def __init__(self, model: Model, open: dict[str, int], outcome: Outcome) -> None:
        self.model = model.name
        self.hyperparameters = model.hyperparameters
        self.overrides = model.overrides
        self.warnings = model.warnings
        self.open = open
        self.total = outcome.total
        self.frozen = outcome.frozen
        self.trainable = outcome.total - outcome.frozen
        self.terms: tuple[FormulaTerm, ...] = outcome.terms
        self.assumptions = outcome.assumptions

    def __repr__(self) -> str:
        return f"<Formula {self.model!r}: {self.text(self.total)}>"

    def at(self, **values: int) -> int:
        """Return the parameter count for these values; other open hyperparameters have their values in the model.

        Raises ValueError for a name that is not open, a value that is not a positive integer, or values for which an
        assumption does not hold.
        """
        for name, value in values.items():
            if name not in self.open:
                choices = ", ".join(f"`{n}`" for n in self.open)
                raise ValueError(f"`{name}` is not open; open hyperparameters: {choices}")
            if value.__class__ is not int or value < 1:
                raise ValueError(f"expected a positive integer for `{name}`, found {value!r}")
        numbers = {**self.open, **values}
        for assumption in self.assumptions:
            if not assumption.holds(numbers):
                raise ValueError(f"the formula assumes {self.format_assumption(assumption)}")
        return evaluate(self.total, numbers)

    def text(self, value: Expression, collect: bool = True) -> str:
        """Format a total as text that Python can read; with `collect`, factors of repetitions precede parentheses."""
        return to_text(value, tuple(self.open), self._repetition_counts if collect else ())

    def latex(self) -> str:
        """Format the counts, sums over uneven repetitions, and the assumptions as a LaTeX `align*` environment."""
        order = tuple(self.open)
        lines = [
            rf"\text{{{what}}} &= {to_latex(value, order, self._repetition_counts)}" for what, value in self.numbers()
        ]
        for term in self.terms:
            if term.variable and term.stride == 1:
                first, last = to_latex(term.first, order), to_latex(term.first + term.rounds - 1, order)
                variable = to_latex(index(term.variable))
                sums = rf"\sum_{{{variable}={first}}}^{{{last}}} \left( {to_latex(term.each, order)} \right)"
                address = term.address.replace("_", r"\_")
                lines.append(rf"\text{{{address}}} &= {sums} = {to_latex(term.total, order)}")
        for assumption in self.assumptions:
            lines.append(rf"\text{{assuming}} &\quad {self.format_assumption(assumption, as_latex=True)}")
        return "\\begin{align*}\n  " + " \\\\\n  ".join(lines) + "\n\\end{align*}\n"

    def numbers(self) -> Iterable[tuple[str, Expression]]:
        """Yield the total, and the trainable and frozen parts if anything is frozen."""
        yield "parameters", self.total
        if self.frozen:
            yield "trainable", self.trainable
            yield "frozen", self.frozen

    def format_assumption(self, assumption: Assumption, *, as_latex: bool = False) -> str:
        """Format an assumption as text, or as LaTeX for math mode."""
        operator, left, right = assumption[:3]
        if operator == "divisible":
            left, right = clear_fractions(left, right)
        else:
            left, operator, right = _normalize_comparison(left, operator, right)
        write, words = (to_latex, _LATEX) if as_latex else (to_text, _WORDS)
        order = tuple(self.open)
        return f"{write(left, order)} {words.get(operator, operator)} {write(right, order)}"

    @property
    def _repetition_counts(self) -> tuple[str, ...]:
        """The open hyperparameters that occur in iteration counts."""
        return tuple(n for n in self.open if any(n in symbols(term.rounds) for term in self.terms))


def _normalize_comparison(left: Expression, operator: str, right: Expression) -> tuple[Expression, str, Expression]:
    """Normalize a comparison: no subtraction on either side, and names on the left."""
    terms = terms_of(left - right)
    positive = expression(tuple([term for term in terms if term[1] > 0]))
    negative = expression(tuple([(monomial, -coefficient) for monomial, coefficient in terms if coefficient < 0]))
    if number(positive) is not None:
        return negative, operator.translate(str.maketrans("<>", "><")), positive
    return positive, operator, negative


_WORDS = {"divisible": "is divisible by"}
_LATEX = {"divisible": r"\text{ is divisible by }", "==": "=", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq"}


@check_arguments
def formula(model: ModelLike, /, *open: str | Sequence[str], **overrides: PlainValue) -> Formula:
    """Derive the parameter count of a model as a polynomial in the hyperparameters that are named in `open`.

    `model` is a Model or an argument of `archspec.load`, with its `overrides`. The names are separate arguments
    (`formula("path/to/spec.arch", "hidden", "layers")`) or one list, which may also be passed by keyword
    (`open=["hidden", "layers"]`). An override of an open hyperparameter sets its value in the model.

    Raises ArchError if the model does not compile, if a name is not an integer hyperparameter of the model (`usage`),
    or if no formula can be derived (`no-formula`).
    """
    if not open and isinstance(overrides.get("open"), Sequence):
        open = (cast("str | Sequence[str]", overrides.pop("open")),)
    names = [name for item in open for name in ([item] if isinstance(item, str) else item)]
    compiled = as_model(model, overrides)
    compilation = get_compilation(compiled)
    integers = {n: value for n, value in compiled.hyperparameters.items() if type(value) is int}
    values = {name: _model_value(compiled, name, integers) for name in names}
    if not values:
        help = f"use `--open NAME,NAME`; {_choices_help(integers)}"
        raise make_error("usage", "no open hyperparameters specified", help=help)
    outcome = derive(compilation.unit, compilation.node, compiled.overrides, values, integers)
    derived = Formula(compiled, values, outcome)
    for assumption in derived.assumptions:
        if not assumption.holds(values):
            message = f"the derived formula assumes {derived.format_assumption(assumption)}"
            point = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise make_error("no-formula", f"{message}, which is false for {compiled.name} ({point})", assumption.span)
    if (derived.at(), evaluate(derived.frozen, values)) != (compiled.params.total, compiled.params.frozen):
        raise internal_error(f"the formula for {compiled.name} does not evaluate to its total")
    return derived


def _model_value(model: Model, name: str, integers: dict[str, int]) -> int:
    """Return the value of an open hyperparameter in the model. Raises ArchError if it cannot be open."""
    if name not in model.hyperparameters:
        help = suggest(name, list(integers)) or _choices_help(integers)
        raise make_error("usage", f'unknown hyperparameter `{name}` of "{model.name}"', help=help)
    if name not in integers or integers[name] < 1:
        message = f"`{name}` cannot be open: its value is not a positive integer"
        raise make_error("usage", message, help=_choices_help(integers))
    return integers[name]


def _choices_help(integers: dict[str, int]) -> str:
    if not integers:
        return "the model has no integer hyperparameters"
    return f"integer hyperparameters: {', '.join(integers)}"
