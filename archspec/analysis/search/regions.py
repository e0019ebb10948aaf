"""Formulas for the designs of a search, each for the region in which it holds.

A formula is derived with all varied integers open. Where its assumptions do not hold, one of the integers in them is
fixed at each of its values, and further formulas are derived. Designs for which that does not help are compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from archspec.analysis.formula import measures
from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.derivation import derive
from archspec.analysis.formula.restarts import Assumption
from archspec.analysis.search.columns import Column, Scalar, exact, numpy
from archspec.analysis.search.compilations import Compiler
from archspec.analysis.search.designs import Designs
from archspec.analysis.search.polynomials import holds
from archspec.analysis.search.quantities import COMPILED_ONLY, Quantity, measured
from archspec.analysis.search.space import plain_at
from archspec.compiler.elaborate.models import CompiledModel
from archspec.compiler.evaluate.values import UNKNOWN, to_plain
from archspec.core.algebra import Expression, Polynomial, evaluate, number, symbols
from archspec.core.diagnostics import ArchError, Span, make_error
from archspec.core.record import Node
from archspec.ir.table import PlainValue
from archspec.pipeline.model import Model, get_compilation

MIN_DESIGNS_FOR_FORMULA = 6
"""The designs from which on a formula is derived for them: a derivation takes as long as a few compilations."""

MAX_SAMPLES = 4
"""The designs that are tried as the one from which a formula is derived, in addition to the model of the spec."""


class Formulas(Node):
    """Formulas in some integers, the quantities that are constant there, and the assumptions of both."""

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
        self.refused = 0
        self.reason = ""  # why some designs have no formula
        self._checked: set[int] = set()  # the formulas of which a refused design was compiled
        self._known: dict[tuple[tuple[str, PlainValue], ...], Formulas | None] = {}
        self._split: dict[tuple[tuple[str, PlainValue], ...], str | None] = {}

    def divided(self, designs: Designs, closed: dict[str, PlainValue] | None = None) -> Iterator[Designs]:
        """Yield the designs that the spec does not refuse, with formulas where there are any.

        The others are to be compiled, which may refuse them. `closed` are integers that these designs share.
        """
        closed = closed or {}
        flag = next((name for name, column in designs.columns.items() if column.is_flag and name not in closed), None)
        if flag is not None:
            yield from self._by_value(designs, closed, flag)
            return
        open = [name for name in designs.columns if name not in closed]
        if not len(designs):
            return
        formulas = self._formulas(designs, closed, open) if open and len(designs) >= MIN_DESIGNS_FOR_FORMULA else None
        if formulas is None:
            name = self._split_at(designs, closed, open) if len(designs) >= MIN_DESIGNS_FOR_FORMULA else None
            yield from [designs] if name is None else self._by_value(designs, closed, name)
            return
        yield from self._covered(designs, closed, formulas)

    def _covered(self, designs: Designs, closed: dict[str, PlainValue], formulas: Formulas) -> Iterator[Designs]:
        """Yield designs as `divided` does; the formulas give those for which their assumptions hold."""
        np, length = numpy(), len(designs)
        columns = {name: designs.columns[name] for name in formulas.open}
        uncovered, refused = np.zeros(length, dtype=bool), np.zeros(length, dtype=bool)
        suspects: dict[str, None] = {}
        for name, column in columns.items():
            if column.low < 1 and bool((column.values < 1).any()):
                uncovered |= column.values < 1
                suspects[name] = None
        safe = {name: _at_least_1(column) for name, column in columns.items()}
        for assumption in formulas.assumptions:
            fails = ~holds(assumption, safe, length)
            if assumption.is_required:
                refused |= fails
            elif bool((fails & ~uncovered).any()):
                uncovered |= fails
                place = f"`{assumption.written}` ({assumption.span.place})"
                self.reason = self.reason or f"no formula for some designs because of {place}"
                suspects |= dict.fromkeys(symbols(assumption.left) | symbols(assumption.right))
        refused &= ~uncovered
        if bool(refused.any()):
            if id(formulas) not in self._checked:
                self._checked.add(id(formulas))
                self._check_refused(designs.take(refused))
            self.refused += int(refused.sum())
        found = designs.take(~(uncovered | refused))
        found.formulas = formulas.quantities
        found.quantities = dict(formulas.constants)
        if len(found):
            yield found
        if suspects:
            rest = designs.take(uncovered)
            name = min(sorted(suspects), key=lambda name: len(np.unique(rest.columns[name].values)))
            yield from self._by_value(rest, closed, name)

    def _by_value(self, designs: Designs, closed: dict[str, PlainValue], name: str) -> Iterator[Designs]:
        column = designs.columns[name]
        for value in numpy().unique(column.values):
            chosen = designs.take(column.values == value)
            yield from self.divided(chosen, {**closed, name: plain_at(chosen.values[name], 0)})

    def _check_refused(self, designs: Designs) -> None:
        """Check that the spec refuses a design for which a requirement does not hold in a formula."""
        values = _values(designs, len(designs) // 2)
        try:
            model = self.compiler.compiled(values)
            for quantity in self.quantities:
                measured(model, quantity)
        except ArchError:
            return
        raise _internal(f"the formulas of {model.name} refuse a design that compiles: {values}")

    # Derivation -------------------------------------------------------------------------------------------------------

    def _formulas(self, designs: Designs, closed: dict[str, PlainValue], open: Sequence[str]) -> Formulas | None:
        """Return the formulas with these integers open; None if there are none."""
        key = tuple(closed.items())
        if key not in self._known:
            self._known[key] = self._derived(designs, closed, open)
        return self._known[key]

    def _derived(self, designs: Designs, closed: dict[str, PlainValue], open: Sequence[str]) -> Formulas | None:
        bases = list(self._bases(designs, closed, open))
        for quantities in self._attempts():
            for model in bases:
                try:
                    return self._derive(model, open, quantities)
                except ArchError as problem:
                    if any(found.code == "internal" for found in problem.diagnostics):
                        raise
                    self.reason = self.reason or f"no formula: {_text(problem)}"
        return None

    def _attempts(self) -> list[list[Quantity]]:
        """Return the sets of quantities to derive: all, or those that no computation is needed for."""
        plain = [quantity for quantity in self.quantities if not quantity.sizes and quantity.kind != "active"]
        return [self.quantities, plain] if len(plain) < len(self.quantities) else [self.quantities]

    def _bases(self, designs: Designs, closed: dict[str, PlainValue], open: Sequence[str]) -> Iterator[Model]:
        """Yield a model from whose values a formula can be derived: that of the spec, or designs that compile."""
        places = sorted({len(designs) * place // MAX_SAMPLES for place in range(MAX_SAMPLES)})
        for values in ({**self.fixed, **closed}, *[_values(designs, place) for place in places]):
            try:
                model = self.compiler.compiled(values)
            except ArchError:
                continue
            own = [model.hyperparameters[name] for name in open]
            if all(type(value) is int and value > 0 for value in own):
                yield model

    def _derive(self, model: Model, open: Sequence[str], quantities: Sequence[Quantity]) -> Formulas:
        compilation = get_compilation(model)
        integers = {name: value for name, value in model.hyperparameters.items() if type(value) is int}
        own = {name: integers[name] for name in open}
        measure = _Measure(quantities)
        outcome = derive(compilation.unit, compilation.node, model.overrides, own, integers, measure)
        found = {
            quantity: outcome.measures[str(quantity)] for quantity in quantities if quantity not in measure.constants
        }
        for quantity, expr in found.items():
            value = number(expr)
            if measured(model, quantity) != (evaluate(expr, own) if value is None else value):
                raise _internal(f"the formula of `{quantity}` is wrong for {model.name}")
        return Formulas(tuple(open), found, measure.constants, outcome.assumptions)

    def _split_at(self, designs: Designs, closed: dict[str, PlainValue], open: Sequence[str]) -> str | None:
        """Return the integer with the fewest values at whose values there are formulas."""
        key = tuple(closed.items())
        if key not in self._split:
            counts = {name: len(numpy().unique(designs.columns[name].values)) for name in open}
            self._split[key] = None
            for name in sorted(open, key=lambda name: counts[name]) if len(open) > 1 else ():
                value = plain_at(designs.values[name], 0)
                chosen = designs.take(designs.columns[name].values == value)
                if self._formulas(chosen, {**closed, name: value}, [n for n in open if n != name]) is not None:
                    self._split[key] = name
                    break
        return self._split[key]


class _Measure:
    """Derives quantities. `constants` are hyperparameters that are not integers."""

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self.quantities = quantities
        self.constants: dict[Quantity, Scalar] = {}

    def __call__(self, solver: Solver, compiled: CompiledModel) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        for quantity in self.quantities:
            if not self._is_constant(solver, compiled, quantity):
                found[str(quantity)] = _derived(solver, compiled, quantity)
        return found

    def _is_constant(self, solver: Solver, compiled: CompiledModel, quantity: Quantity) -> bool:
        value = compiled.hyperparameters.get(quantity.subject) if quantity.kind == "hyperparameter" else 0
        if isinstance(value, int | Polynomial) and not isinstance(value, bool):
            return False
        known = to_plain(value) if value is not UNKNOWN else None
        known = exact(known) if isinstance(known, float) else known
        if value is UNKNOWN or self.constants.setdefault(quantity, known) != known:
            solver.refuse(f"`{quantity}` depends on an open hyperparameter", _place(compiled))
        return True


def _derived(solver: Solver, compiled: CompiledModel, quantity: Quantity) -> Expression:
    """Return a quantity as an expression. Raises Refusal."""
    module = compiled.module
    match quantity.kind:
        case "params" if quantity.subject:
            return measures.parameters_matching(solver, module, quantity.subject, _place(compiled))
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
            return measures.active(solver, compiled, _place(compiled))
        case "weight_bytes":
            return measures.in_bytes(solver, module, quantity.text("dtype"))
        case "hyperparameter":
            value = compiled.hyperparameters[quantity.subject]
            assert isinstance(value, int | Polynomial)
            return value
        case kind:
            work = measures.work(solver, compiled.body, quantity.dims)
            return {"flops": work.flops, "macs": work.macs, "elementwise": work.elementwise}[kind]


def _place(compiled: CompiledModel) -> Span:
    return compiled.module.span


def _values(designs: Designs, place: int) -> dict[str, PlainValue]:
    return {name: plain_at(value, place) for name, value in designs.values.items()}


def _at_least_1(column: Column) -> Column:
    if column.low >= 1:
        return column
    return Column(numpy().maximum(column.values, 1), 1, max(column.high, 1))


def _text(problem: ArchError) -> str:
    found = problem.diagnostics[0]
    return found.message + (f" ({found.span.place})" if found.span is not None else "")


def _internal(message: str) -> ArchError:
    return make_error("internal", f"{message}; this is a bug in archspec; please report it")
