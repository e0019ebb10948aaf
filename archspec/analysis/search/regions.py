"""Formulas for the designs of a search, each for the region in which it holds.

A formula is derived with all varied integers open. Where its assumptions do not hold, one of their integers is fixed at
each of its values, and further formulas are derived. Designs that no formula covers are compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from archspec.analysis.formula import measures
from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.derivation import derive
from archspec.analysis.formula.restarts import Assumption
from archspec.analysis.search.columns import Array, Column, Scalar, as_exact, numpy
from archspec.analysis.search.compilations import Compiler, describe_condition
from archspec.analysis.search.polynomials import find_where_holds
from archspec.analysis.search.quantities import COMPILED_ONLY, Quantity, measure
from archspec.analysis.search.space import Designs, plain_value
from archspec.compiler.elaborate.models import CompiledModel
from archspec.compiler.evaluate.values import UNKNOWN, to_plain
from archspec.core.algebra import Expression, Polynomial, evaluate, number, symbols
from archspec.core.diagnostics import ArchError, Span, internal_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue
from archspec.pipeline.model import Model, get_compilation

MIN_DESIGNS_FOR_FORMULA = 6
"""Minimum number of designs for which a formula is derived. A derivation takes as long as a few compilations."""

MAX_SAMPLES = 4
"""Maximum number of designs from which a derivation is attempted, in addition to the model of the spec."""


class Formulas(Node):
    """Formulas in the integers `open`, the quantities that are constant in them, and the assumptions of both."""

    open: tuple[str, ...]
    quantities: dict[Quantity, Expression]
    constants: dict[Quantity, Scalar]
    assumptions: tuple[Assumption, ...]


class Regions:
    """The regions of designs that share the values of all hyperparameters that are not integers."""

    def __init__(self, compiler: Compiler, quantities: Sequence[Quantity], fixed: Mapping[str, PlainValue]) -> None:
        self.compiler = compiler
        self.fixed = fixed
        self.quantities = [quantity for quantity in quantities if quantity.kind not in COMPILED_ONLY]
        self.refusals = Counter[str]()
        self.reason = ""  # why some designs have no formula
        self._checked: set[int] = set()  # identities of formulas for which one refused design was compiled
        self._formulas: dict[tuple[tuple[str, PlainValue], ...], Formulas | None] = {}
        self._splits: dict[tuple[tuple[str, PlainValue], ...], str | None] = {}

    def divide(self, designs: Designs, fixed_integers: dict[str, PlainValue] | None = None) -> Iterator[Designs]:
        """Yield the designs that the spec does not refuse, with formulas where there are any.

        Designs without formulas must be compiled, which may refuse them. `fixed_integers` are those that all designs
        share.
        """
        fixed_integers = fixed_integers or {}
        columns = {name: column for name, column in designs.columns.items() if name not in self.compiler.helpers}
        flag_name = next(
            (name for name, column in columns.items() if column.is_flag and name not in fixed_integers), None
        )
        if flag_name is not None:
            yield from self._divide_by_value(designs, fixed_integers, flag_name)
            return
        open = [name for name in columns if name not in fixed_integers]
        if not len(designs):
            return
        formulas = (
            self._find_formulas(designs, fixed_integers, open)
            if open and len(designs) >= MIN_DESIGNS_FOR_FORMULA
            else None
        )
        if formulas is None:
            name = self._find_split(designs, fixed_integers, open) if len(designs) >= MIN_DESIGNS_FOR_FORMULA else None
            yield from [designs] if name is None else self._divide_by_value(designs, fixed_integers, name)
            return
        yield from self._iter_covered(designs, fixed_integers, formulas)

    def _iter_covered(
        self, designs: Designs, fixed_integers: dict[str, PlainValue], formulas: Formulas
    ) -> Iterator[Designs]:
        """Yield designs as `divide` does: first those for which the assumptions of the formulas hold."""
        np, length = numpy(), len(designs)
        columns = {name: designs.columns[name] for name in formulas.open}
        uncovered, refused = np.zeros(length, dtype=bool), np.zeros(length, dtype=bool)
        suspects: dict[str, None] = {}
        unmet: list[tuple[str, Array]] = []
        for name, column in columns.items():
            if column.low < 1 and bool((column.values < 1).any()):
                uncovered |= column.values < 1
                suspects[name] = None
        safe = {name: _at_least_1(column) for name, column in columns.items()}
        for assumption in formulas.assumptions:
            fails = ~find_where_holds(assumption, safe, length)
            if assumption.is_required:
                refused |= fails
                unmet.append((describe_condition(assumption.span), fails))
            elif bool((fails & ~uncovered).any()):
                uncovered |= fails
                cause = f"`{assumption.written}` ({assumption.span.location})"
                self.reason = self.reason or f"no formula for some designs because of {cause}"
                suspects |= dict.fromkeys(symbols(assumption.left) | symbols(assumption.right))
        refused &= ~uncovered
        if bool(refused.any()):
            if id(formulas) not in self._checked:
                self._checked.add(id(formulas))
                self._check_refused(designs.take(refused))
            left = refused
            for condition, fails in unmet:
                self.refusals[condition] += int((left & fails).sum())
                left = left & ~fails
        covered = designs.take(~(uncovered | refused))
        covered.formulas = formulas.quantities
        covered.quantities = dict(formulas.constants)
        if len(covered):
            yield covered
        if suspects:
            uncovered_designs = designs.take(uncovered)
            name = min(sorted(suspects), key=lambda name: len(np.unique(uncovered_designs.columns[name].values)))
            yield from self._divide_by_value(uncovered_designs, fixed_integers, name)

    def _divide_by_value(self, designs: Designs, fixed_integers: dict[str, PlainValue], name: str) -> Iterator[Designs]:
        column = designs.columns[name]
        for value in numpy().unique(column.values):
            part = designs.take(column.values == value)
            yield from self.divide(part, {**fixed_integers, name: plain_value(part.values[name], 0)})

    def _check_refused(self, designs: Designs) -> None:
        """Check that the spec refuses a design that violates a requirement of the formulas. Raises ArchError."""
        values = _design_values(designs, len(designs) // 2)
        try:
            model = self.compiler.compile(values)
            for quantity in self.quantities:
                measure(model, quantity)
        except ArchError:
            return
        raise internal_error(f"the formulas of {model.name} refuse a design that compiles: {values}")

    # Derivation -------------------------------------------------------------------------------------------------------

    def _find_formulas(
        self, designs: Designs, fixed_integers: dict[str, PlainValue], open: Sequence[str]
    ) -> Formulas | None:
        """Return the formulas with the integers `open`; None if there are none."""
        key = tuple(fixed_integers.items())
        if key not in self._formulas:
            self._formulas[key] = self._derive_first(designs, fixed_integers, open)
        return self._formulas[key]

    def _derive_first(
        self, designs: Designs, fixed_integers: dict[str, PlainValue], open: Sequence[str]
    ) -> Formulas | None:
        bases = list(self._iter_bases(designs, fixed_integers, open))
        for quantities in self._quantity_sets():
            for model in bases:
                try:
                    return self._derive(model, open, quantities)
                except ArchError as error:
                    if any(diagnostic.code == "internal" for diagnostic in error.diagnostics):
                        raise
                    self.reason = self.reason or f"no formula: {_format_reason(error)}"
        return None

    def _quantity_sets(self) -> list[list[Quantity]]:
        """Return the sets of quantities to derive: all, then those that do not depend on operations."""
        plain = [quantity for quantity in self.quantities if not quantity.sizes and quantity.kind != "active"]
        return [self.quantities, plain] if len(plain) < len(self.quantities) else [self.quantities]

    def _iter_bases(
        self, designs: Designs, fixed_integers: dict[str, PlainValue], open: Sequence[str]
    ) -> Iterator[Model]:
        """Yield models from whose values a formula can be derived: the model of the spec, and designs that compile."""
        positions = sorted({len(designs) * position // MAX_SAMPLES for position in range(MAX_SAMPLES)})
        samples = [_design_values(designs, position) for position in positions]
        for values in ({**self.fixed, **fixed_integers}, *samples):
            try:
                model = self.compiler.compile(values)
            except ArchError:
                continue
            open_values = [model.hyperparameters[name] for name in open]
            if all(type(value) is int and value > 0 for value in open_values):
                yield model

    def _derive(self, model: Model, open: Sequence[str], quantities: Sequence[Quantity]) -> Formulas:
        compilation = get_compilation(model)
        integers = {name: value for name, value in model.hyperparameters.items() if type(value) is int}
        point = {name: integers[name] for name in open}
        derivation = _Derivation(quantities)
        outcome = derive(compilation.unit, compilation.node, model.overrides, point, integers, derivation)
        formulas = {
            quantity: outcome.measures[str(quantity)] for quantity in quantities if quantity not in derivation.constants
        }
        for quantity, expr in formulas.items():
            value = number(expr)
            if measure(model, quantity) != (evaluate(expr, point) if value is None else value):
                raise internal_error(f"the formula of `{quantity}` is wrong for {model.name}")
        return Formulas(tuple(open), formulas, derivation.constants, outcome.assumptions)

    def _find_split(self, designs: Designs, fixed_integers: dict[str, PlainValue], open: Sequence[str]) -> str | None:
        """Return the integer with the fewest values such that fixing it makes formulas derivable; None if none does."""
        key = tuple(fixed_integers.items())
        if key not in self._splits:
            counts = {name: len(numpy().unique(designs.columns[name].values)) for name in open}
            self._splits[key] = None
            for name in sorted(open, key=lambda name: counts[name]) if len(open) > 1 else ():
                value = plain_value(designs.values[name], 0)
                part = designs.take(designs.columns[name].values == value)
                remaining = [n for n in open if n != name]
                if self._find_formulas(part, {**fixed_integers, name: value}, remaining) is not None:
                    self._splits[key] = name
                    break
        return self._splits[key]


class _Derivation:
    """Derivation of quantities. `constants` are hyperparameters that are not integers."""

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self.quantities = quantities
        self.constants: dict[Quantity, Scalar] = {}

    def __call__(self, solver: Solver, compiled: CompiledModel) -> dict[str, Expression]:
        formulas: dict[str, Expression] = {}
        for quantity in self.quantities:
            if not self._is_constant(solver, compiled, quantity):
                formulas[str(quantity)] = _derive_quantity(solver, compiled, quantity)
        return formulas

    def _is_constant(self, solver: Solver, compiled: CompiledModel, quantity: Quantity) -> bool:
        value = compiled.hyperparameters.get(quantity.subject) if quantity.kind == "hyperparameter" else 0
        if isinstance(value, int | Polynomial) and not isinstance(value, bool):
            return False
        constant = to_plain(value) if value is not UNKNOWN else None
        constant = as_exact(constant) if isinstance(constant, float) else constant
        if value is UNKNOWN or self.constants.setdefault(quantity, constant) != constant:
            solver.refuse(f"`{quantity}` depends on an open hyperparameter", _location(compiled))
        return True


def _derive_quantity(solver: Solver, compiled: CompiledModel, quantity: Quantity) -> Expression:
    """Return a quantity as an expression. Raises Refusal."""
    module = compiled.module
    match quantity.kind:
        case "params" if quantity.subject:
            return measures.parameters_matching(solver, module, quantity.subject, _location(compiled))
        case "role_params":
            return measures.parameters_where(solver, module, lambda tensor: tensor.role == quantity.subject)
        case "params":
            return measures.total(solver, module).total
        case "trainable":
            totals = measures.total(solver, module)
            return totals.total - totals.frozen
        case "frozen":
            return measures.total(solver, module).frozen
        case "active":
            return measures.active(solver, compiled, _location(compiled))
        case "weight_bytes":
            return measures.parameter_bytes(solver, module, quantity.text("dtype"))
        case "hyperparameter":
            value = compiled.hyperparameters[quantity.subject]
            assert isinstance(value, int | Polynomial)
            return value
        case kind:
            work = measures.work(solver, compiled.body, quantity.dims)
            return {"flops": work.flops, "macs": work.macs, "elementwise": work.elementwise}[kind]


def _location(compiled: CompiledModel) -> Span:
    return compiled.module.span


def _design_values(designs: Designs, position: int) -> dict[str, PlainValue]:
    return {name: plain_value(value, position) for name, value in designs.values.items()}


def _at_least_1(column: Column) -> Column:
    if column.low >= 1:
        return column
    return Column(numpy().maximum(column.values, 1), 1, max(column.high, 1))


def _format_reason(error: ArchError) -> str:
    diagnostic = error.diagnostics[0]
    return diagnostic.message + (f" ({diagnostic.span.location})" if diagnostic.span is not None else "")
