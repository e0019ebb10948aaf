"""`archspec.search`: the designs of a spec that satisfy conditions, and the best of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.search.collecting import Collector, SelectedDesigns
from archspec.analysis.search.columns import Array, Scalar, exact, numpy
from archspec.analysis.search.compilations import Compiler, pool
from archspec.analysis.search.conditions import Expression, evaluated, expression, parse_condition
from archspec.analysis.search.designs import Designs
from archspec.analysis.search.plot import Plot, PlotPoint
from archspec.analysis.search.quantities import PARAMS, Quantity, count_of, measured
from archspec.analysis.search.result import Design, SearchResult
from archspec.analysis.search.search import Progress, examine
from archspec.analysis.search.space import Space, space
from archspec.analysis.variant.lines import imports_for, model_line
from archspec.core.diagnostics import make_error, suggest
from archspec.ir.index_ranges import dimensions
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.pipeline.compile import compile_text_in_folder
from archspec.pipeline.locate import locate
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    from archspec.pipeline.locate import SpecLike

MAX_COMPILED = 200
"""The designs of a long list that are compiled, evenly chosen, in addition to the best."""

MOST_SHOWN, MOST_BEST = 50, 1_000
"""The designs that are listed of all that satisfy the conditions, and of the best ones."""

_TARGET = re.compile(r"(.*?[^=<>!])=([^=].*)", re.DOTALL)


def search(
    spec: SpecLike,
    /,
    vary: Mapping[str, object],
    *,
    where: str | Sequence[str] = (),
    best: str | Sequence[str] = (),
    near: str | None = None,
    all: bool = False,
    jobs: int = 1,
    overrides: Mapping[str, PlainValue] | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search all combinations of some hyperparameters for the designs that satisfy conditions.

    `spec` is what `archspec.load` takes, and `overrides` set hyperparameters as there. `vary` has the values of the
    varied hyperparameters: a sequence (`range(2, 25)`, `["OneLayer", "OtherLayer"]`), or text, a range with its end
    (`"2..24"`, `"256..1024:64"`), a list, or an expression over the others (`"hidden // 64"`). `where` are conditions
    (`"params < 30M"`), `best` expressions that should be large (`"layers"`, `"-params"`), and `near` is an expression
    with the value that it should have (`"params = 50M"`). With `all`, `every` of the result has all designs that
    satisfy the conditions. Designs without formulas are compiled by so many processes (`jobs`). `progress` is called
    with the numbers of examined and satisfying designs. An interruption (Ctrl-C) returns what has been found.
    `docs/search.md` describes the expressions.

    Raises ArchError for unknown names, wrong expressions, too many designs, and as `archspec.load` does; ValueError for
    less than one job. Requires numpy.
    """
    if jobs < 1:
        raise ValueError(f"expected at least one job, found {jobs}")
    numpy()
    if isinstance(spec, Model):
        raise TypeError("a search compiles models; give it what `archspec.load` takes")
    for name in overrides or ():
        if name in vary:
            raise make_error("usage", f"`{name}` is both set and varied", help="remove one of them")
    compiler = Compiler(locate(spec), overrides or {})
    model = compiler.compiled({})
    _check_names(model, vary)
    found_space = space(vary, model.hyperparameters)
    others = [name for name in model.hyperparameters if name not in vary]

    def read(text: str, label: str) -> Expression:
        found = expression(text, label, found_space.names, others)
        for quantity in found.quantities:
            _check(model, quantity)
        return found

    conditions = [read(text, "--where") for text in _texts(where)]
    goals = {text.strip(): read(text, "--best") for text in _texts(best)}
    target = _target(near) if near is not None else None
    if target is not None and goals:
        raise make_error("usage", "--near cannot be combined with --best", help="use one of them")
    aim = (target[0], read(target[0], "--near")) if target is not None else None
    expressions = [*conditions, *goals.values(), *([aim[1]] if aim is not None else [])]
    quantities = list(dict.fromkeys([PARAMS, *[q for expr in expressions for q in expr.quantities]]))
    values = _kept(quantities, goals, aim)
    collector = Collector(values, list(goals), target, all)
    with pool(compiler, jobs) as processes:
        tally = examine(found_space, compiler, processes, conditions, quantities, collector, progress)
    chosen, every = collector.chosen, collector.all()
    listed = chosen if chosen is not None else every
    figures = tuple(name for name in values if not (isinstance(values[name], Expression) and name in found_space.names))
    checked = _Checked(compiler, found_space, values, conditions, figures)
    designs = checked.designs(listed, MOST_SHOWN if chosen is None else MOST_BEST)
    if every is not None:
        checked.sample(every)
    return SearchResult(
        model.name,
        dict(model.overrides),
        tuple(found_space.names),
        tuple(map(str, conditions)),
        tuple(goals),
        f"{aim[0]} = {target[1]}" if aim and target else "",
        tally,
        figures,
        len(listed) if listed is not None else 0,
        tuple(designs),
        tuple(checked.imports),
        _plot(model.name, found_space, designs, collector, goals),
        _columns(found_space, every, figures) if every is not None else None,
    )


def _columns(space: Space, every: SelectedDesigns, figures: Sequence[str]) -> dict[str, Array]:
    """Return all values of many designs, by name."""
    known = every.columns()
    return {**space.columns(every.numbers), **{name: known[name] for name in figures}}


def _scalar(value: PlainValue) -> Scalar:
    return exact(value) if isinstance(value, float) else value


def _texts(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _check_names(model: Model, vary: Mapping[str, object]) -> None:
    """Raise ArchError for a name that is not that of a hyperparameter."""
    if not vary:
        raise make_error(
            "usage", "no hyperparameters to vary", help="use `--vary NAME=VALUES`, such as `--vary layers=2..24`"
        )
    for name in vary:
        if name not in model.hyperparameters:
            help = suggest(name, [*model.hyperparameters])
            known = f"hyperparameters: {', '.join(model.hyperparameters)}"
            raise make_error("usage", f'unknown hyperparameter `{name}` of "{model.name}"', help=help or known)


def _check(model: Model, quantity: Quantity) -> None:
    """Raise ArchError for a dimension, role or pattern that the model does not have."""
    names = dimensions(get_compilation(model).body.inputs)
    for name in quantity.dims:
        if name not in names:
            help = suggest(name, names) or (f"dimensions: {', '.join(names)}" if names else None)
            raise make_error("usage", f"unknown dimension or argument `{name}` of `{quantity.kind}`", help=help)
    if quantity.kind == "role_params":
        roles = sorted({tensor.role for tensor in model.tensors if tensor.role is not None})
        if quantity.subject not in roles:
            help = suggest(quantity.subject, roles) or f"roles: {', '.join(roles)}"
            raise make_error("usage", f'unknown role `{quantity.subject}` of "{model.name}"', help=help)
    if quantity.kind == "params" and quantity.subject and not count_of(model, quantity.subject):
        message = f'no parameters of "{model.name}" match `{quantity.subject}`'
        raise make_error("usage", message, help=f"run `archspec count {model.name} --by tensor` to list their names")


def _target(text: str) -> tuple[str, int]:
    """Parse `EXPRESSION=NUMBER`. Raises ArchError."""
    found = _TARGET.fullmatch(text.strip())
    node = parse_condition(found[2], "--near")[0] if found is not None else None
    if found is None or not isinstance(node, tree.Literal) or not isinstance(node.value, int):
        message = f"invalid --near `{text}`: expected EXPRESSION=NUMBER"
        raise make_error("usage", message, help="write it as `--near params=50M`")
    return found[1].strip(), node.value


def _kept(
    quantities: Sequence[Quantity], goals: Mapping[str, Expression], aim: tuple[str, Expression] | None
) -> dict[str, Expression | Quantity]:
    """Return what is kept of each design, by name: its quantities, and expressions over them."""
    found: dict[str, Expression | Quantity] = {
        str(quantity): quantity for quantity in quantities if quantity.kind != "hyperparameter"
    }
    for name, expr in [*goals.items(), *([aim] if aim is not None else [])]:
        found.setdefault(name, expr)
    return found


class _Checked:
    """Compiles chosen designs by their model statements, and compares them with what the search found."""

    def __init__(
        self,
        compiler: Compiler,
        space: Space,
        values: Mapping[str, Expression | Quantity],
        conditions: Sequence[Expression],
        figures: Sequence[str],
    ) -> None:
        self.compiler = compiler
        self.space = space
        self.values = values
        self.conditions = conditions
        self.figures = figures
        self.imports: dict[str, None] = {}

    def designs(self, chosen: SelectedDesigns | None, most: int) -> list[Design]:
        """Return the first designs, compiled. Raises ArchError if a figure differs."""
        if chosen is None:
            return []
        places = range(min(most, len(chosen)))
        values = [self.space.values(int(chosen.numbers[place])) for place in places]
        stated = self._stated([self.compiler.compiled(each) for each in values])
        found: list[Design] = []
        for place, each, (line, model) in zip(places, values, stated, strict=True):
            row = chosen.row(place)
            self._compare(model, each, row)
            figures = {name: row[name] for name in self.figures}
            found.append(Design(each, figures, int(chosen.counts[place]), line))
        return found

    def sample(self, chosen: SelectedDesigns) -> None:
        """Compile designs of a long list, evenly chosen. Raises ArchError if a figure differs."""
        for place in range(0, len(chosen), -(-len(chosen) // MAX_COMPILED)):
            values = self.space.values(int(chosen.numbers[place]))
            self._compare(self.compiler.compiled(values), values, chosen.row(place))

    def _compare(self, model: Model, values: Mapping[str, PlainValue], row: Mapping[str, int]) -> None:
        """Evaluate everything for a compiled design. Raises ArchError if the search found anything else."""
        design = Designs(numpy().empty(0), {name: _scalar(value) for name, value in values.items()})
        used = [expr for expr in (*self.values.values(), *self.conditions) if isinstance(expr, Expression)]
        needed = [value for value in self.values.values() if isinstance(value, Quantity)]
        for quantity in dict.fromkeys([*needed, *[quantity for expr in used for quantity in expr.quantities]]):
            design.quantities[quantity] = _scalar(measured(model, quantity))
        for name, value in self.values.items():
            real = design.quantities[value] if isinstance(value, Quantity) else evaluated(value, design)
            if real != row[name]:
                message = f"`{name}` of {model.name} is {real}, but the search found {row[name]}"
                raise make_error("internal", f"{message}; this is a bug in archspec; please report it")
        for condition in self.conditions:
            if evaluated(condition, design) is not True:
                message = f"`{condition}` does not hold for {model.name}, but the search found that it does"
                raise make_error("internal", f"{message}; this is a bug in archspec; please report it")

    def _stated(self, models: Sequence[Model]) -> list[tuple[str, Model]]:
        """Return the statements of models, and what they compile to in the file of the spec.

        Raises ArchError if that is another model.
        """
        unit = get_compilation(models[0]).unit
        names: list[str] = []
        for model in models:
            number = len(names) + 1
            while f"{model.name}-{number}" in {*unit.models, *names}:
                number += len(models)
            names.append(f"{model.name}-{number}")
        lines: list[str] = []
        for model, name in zip(models, names, strict=True):
            compilation = get_compilation(model)
            lines.append(model_line(compilation, name, compilation.overrides))
            self.imports |= dict.fromkeys(imports_for(unit, compilation.overrides))
        imported = f"import std {{ {', '.join(self.imports)} }}\n" if self.imports else ""
        text = "\n".join([unit.source.text, imported, *lines, ""])
        compiled = compile_text_in_folder(text, unit.source.label, unit.folder, unit.root, names)
        for model, again in zip(models, compiled, strict=True):  # both have the same figures, which are compared later
            if (again.params, again.hyperparameters) != (model.params, model.hyperparameters):
                message = f"the statement of {again.name} does not give the model of the search"
                raise make_error("internal", f"{message}; this is a bug in archspec; please report it")
        return list(zip(lines, compiled, strict=True))


# Plots ----------------------------------------------------------------------------------------------------------------


def _plot(
    model: str, space: Space, designs: Sequence[Design], collector: Collector, goals: Mapping[str, Expression]
) -> Plot | None:
    """Return the plot of the first two figures that the search is about; None if nothing was found."""
    if not designs:
        return None
    first = designs[0]
    known = {**first.figures, **{n: v for n, v in first.values.items() if type(v) is int}}
    names = [name for name in dict.fromkeys([*goals, *first.figures, *known]) if name in known]
    x, y = (names + names[:1])[:2]

    small = {name for name, expr in goals.items() if _is_negative(expr.node)}  # what is plotted without its sign

    def figure(name: str, value: PlainValue) -> int:
        assert isinstance(value, int)
        return -value if name in small else value

    def dot(values: Mapping[str, PlainValue], text: str) -> PlotPoint:
        return PlotPoint(figure(x, values[x]), figure(y, values[y]), text)

    def described(values: Mapping[str, PlainValue]) -> str:
        named = {name: value for name, value in values.items() if name not in small}
        return ", ".join(f"{n} = {v:,}" if type(v) is int else f"{n} = {v}" for n, v in named.items())

    chosen = [dot(known, described(known)) for known in ({**design.values, **design.figures} for design in designs)]
    others = collector.dots()
    columns = {**space.columns(others.numbers), **others.columns()} if others is not None else {}
    places = zip(columns[x].tolist(), columns[y].tolist(), strict=True) if columns else ()
    shown = [dot({x: one, y: other}, "") for one, other in places]
    title_x, title_y = (name.removeprefix("-").lstrip() if name in small else name for name in (x, y))
    return Plot(f"designs of {model}", title_x, title_y, tuple(shown), tuple(chosen))


def _is_negative(node: tree.Expr) -> bool:
    """Whether an expression has the sign before it: all of it, or its first factor."""
    if isinstance(node, tree.Binary) and node.operator == "*":
        return _is_negative(node.left)
    return isinstance(node, tree.Unary) and node.operator == "-"
