"""`archspec.search`: the designs of a spec that satisfy conditions, and the best of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.search.columns import Array, Scalar, as_exact, numpy
from archspec.analysis.search.compilations import Compiler, open_pool
from archspec.analysis.search.conditions import Expression, evaluate_expression, parse_condition, read_expression
from archspec.analysis.search.plot import Plot, PlotPoint
from archspec.analysis.search.quantities import PARAMS, SIGNATURES, Quantity, count_matching, measure
from archspec.analysis.search.result import Design, SearchResult
from archspec.analysis.search.search import Collector, Progress, SelectedDesigns, examine
from archspec.analysis.search.space import Designs, Space, build_space
from archspec.analysis.variant.lines import find_imports, format_model_statement
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import internal_error, make_error, suggest
from archspec.ir.index_ranges import dimensions
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.pipeline.compile import compile_text_in_folder
from archspec.pipeline.locate import locate
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    from archspec.pipeline.locate import SpecLike

MAX_COMPILED = 200
"""Maximum number of designs of a long list that are compiled, evenly chosen, in addition to the best."""

MAX_LISTED, MAX_LISTED_BEST = 50, 1_000
"""Maximum numbers of listed designs, of all that satisfy the conditions and of the best."""

_TARGET = re.compile(r"(.*?[^=<>!])=([^=].*)", re.DOTALL)


@check_arguments
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

    `spec` and `overrides` are as for `archspec.load`, except that `spec` cannot be a Model. `vary` has the values of
    the varied hyperparameters: a sequence (`range(2, 25)`, `["OneLayer", "OtherLayer"]`), or text: a range with its end
    (`"2..24"`, `"256..1024:64"`), a list, or an expression over varied names (`"hidden // 64"`). A name that only
    occurs in such expressions is a helper, which need not be a hyperparameter. `where` are conditions
    (`"params < 30M"`), `best` are expressions to maximize (`"layers"`, `"-params"`), and `near` is an expression with
    its target value (`"params = 50M"`). With `all`, `every` of the result has all designs that satisfy the conditions.
    `jobs` processes compile designs without formulas. `progress` is called with the numbers of examined and of
    satisfying designs. After an interruption (Ctrl-C) the result has the designs found so far.
    `docs/search.md` describes the expressions.

    Raises ArchError for unknown names, invalid expressions, too many designs, and as `archspec.load` does; ValueError
    if `jobs` is less than 1. Requires numpy.
    """
    if jobs < 1:
        raise ValueError(f"expected at least one job, found {jobs}")
    numpy()
    if isinstance(spec, Model):
        raise TypeError("expected a spec that `archspec.load` accepts, found a compiled Model")
    for name in overrides or ():
        if name in vary:
            raise make_error("usage", f"`{name}` is both set and varied", help="remove one of the two options")
    compiler = Compiler(locate(spec), overrides or {})
    model = compiler.compile({})
    _check_varied(vary)
    design_space = build_space(vary, dict.fromkeys([*model.hyperparameters, *vary]))
    compiler.helpers = _find_helpers(model, design_space)
    others = [name for name in model.hyperparameters if name not in vary]

    def read(text: str, label: str) -> Expression:
        expression = read_expression(text, label, design_space.names, others)
        for quantity in expression.quantities:
            _check_quantity(model, quantity)
        return expression

    conditions = [read(text, "--where") for text in _as_list(where)]
    goals = {text.strip(): read(text, "--best") for text in _as_list(best)}
    target = _parse_target(near) if near is not None else None
    if target is not None and goals:
        raise make_error("usage", "--near cannot be combined with --best", help="use one of the two options")
    near_expression = (target[0], read(target[0], "--near")) if target is not None else None
    expressions = [*conditions, *goals.values(), *([near_expression[1]] if near_expression is not None else [])]
    quantities = list(dict.fromkeys([PARAMS, *[q for expr in expressions for q in expr.quantities]]))
    values = _collected_values(quantities, goals, near_expression)
    collector = Collector(values, list(goals), target, all)
    with open_pool(compiler, jobs) as processes:
        tally = examine(design_space, compiler, processes, conditions, quantities, collector, progress)
    chosen, every = collector.chosen, collector.all()  # None for designs that were not collected
    listed = chosen if chosen is not None else every
    figures = tuple(
        name for name in values if not (isinstance(values[name], Expression) and name in design_space.names)
    )
    check = _DesignCheck(compiler, design_space, values, conditions, figures)
    designs = check.compile_listed(listed, MAX_LISTED if chosen is None else MAX_LISTED_BEST)
    if every is not None:
        check.check_sample(every)
    return SearchResult(
        model.name,
        dict(model.overrides),
        tuple(design_space.names),
        tuple(map(str, conditions)),
        tuple(goals),
        f"{near_expression[0]} = {target[1]}" if near_expression and target else "",
        tally,
        figures,
        len(listed) if listed is not None else 0,
        tuple(designs),
        tuple(check.imports),
        _build_plot(model.name, design_space, designs, collector, goals),
        _build_columns(design_space, every, figures) if every is not None else None,
        tuple(name for name in design_space.names if name in compiler.helpers),
    )


def _build_columns(space: Space, satisfying: SelectedDesigns, figures: Sequence[str]) -> dict[str, Array]:
    """Return the varied hyperparameters and the figures of all designs, by name."""
    collected = satisfying.columns()
    return {**space.columns(satisfying.numbers), **{name: collected[name] for name in figures}}


def _as_scalar(value: PlainValue) -> Scalar:
    return as_exact(value) if isinstance(value, float) else value


def _as_list(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _check_varied(vary: Mapping[str, object]) -> None:
    if not vary:
        raise make_error(
            "usage", "no hyperparameters to vary", help="use `--vary NAME=VALUES`, such as `--vary layers=2..24`"
        )


def _find_helpers(model: Model, space: Space) -> frozenset[str]:
    """Return the varied names that are not hyperparameters: they occur in the values of others.

    Raises ArchError for a name that does not.
    """
    used = {name for expression in space.derived.values() for name in expression.names}
    helpers = [name for name in space.names if name not in model.hyperparameters]
    for name in helpers:
        if name not in used or name in SIGNATURES:
            help = suggest(name, [*model.hyperparameters])
            choices = f"hyperparameters: {', '.join(model.hyperparameters)}"
            raise make_error("usage", f'unknown hyperparameter `{name}` of "{model.name}"', help=help or choices)
    return frozenset(helpers)


def _check_quantity(model: Model, quantity: Quantity) -> None:
    """Raise ArchError for a dimension, role or pattern that the model does not have, and for a missing size."""
    names = dimensions(get_compilation(model).body.inputs)
    for name in quantity.dims:
        if name not in names:
            help = suggest(name, names) or (f"dimensions: {', '.join(names)}" if names else None)
            raise make_error("usage", f"unknown dimension or argument `{name}` of `{quantity.kind}`", help=help)
    if quantity.kind == "time" and dict(quantity.named)["past"] is None:
        missing = [name for name in names if name not in quantity.dims]
        if missing:
            sizes = ", ".join([f"{name} = {quantity.dims.get(name, '...')}" for name in names])
            message = f"`time` needs sizes of the dimensions {', '.join(missing)}"
            raise make_error("usage", message, help=f"write `time(device = ..., {sizes})`, or `past = ...`")
    if quantity.kind == "role_params":
        roles = sorted({tensor.role for tensor in model.tensors if tensor.role is not None})
        if quantity.subject not in roles:
            help = suggest(quantity.subject, roles) or f"roles: {', '.join(roles)}"
            raise make_error("usage", f'unknown role `{quantity.subject}` of "{model.name}"', help=help)
    if quantity.kind == "params" and quantity.subject and not count_matching(model, quantity.subject):
        message = f'no parameters of "{model.name}" match `{quantity.subject}`'
        raise make_error("usage", message, help=f"run `archspec count {model.name} --by tensor` to list their names")


def _parse_target(text: str) -> tuple[str, int]:
    """Parse `EXPRESSION=NUMBER`. Raises ArchError."""
    match = _TARGET.fullmatch(text.strip())
    node = parse_condition(match[2], "--near")[0] if match is not None else None
    if match is None or not isinstance(node, tree.Literal) or not isinstance(node.value, int):
        message = f"invalid --near `{text}`: expected EXPRESSION=NUMBER"
        raise make_error("usage", message, help="write `--near params=50M`, for example")
    return match[1].strip(), node.value


def _collected_values(
    quantities: Sequence[Quantity], goals: Mapping[str, Expression], near_expression: tuple[str, Expression] | None
) -> dict[str, Expression | Quantity]:
    """Return the values to collect of each design, by name: the used quantities, and expressions over them."""
    values: dict[str, Expression | Quantity] = {
        str(quantity): quantity for quantity in quantities if quantity.kind != "hyperparameter"
    }
    for name, expr in [*goals.items(), *([near_expression] if near_expression is not None else [])]:
        values.setdefault(name, expr)
    return values


class _DesignCheck:
    """Compilation of designs from their model statements, and comparison with the values that the search computed."""

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

    def compile_listed(self, chosen: SelectedDesigns | None, maximum: int) -> list[Design]:
        """Return the first designs, each compiled and compared. Raises ArchError if a figure differs."""
        if chosen is None:
            return []
        positions = range(min(maximum, len(chosen)))
        values = [self.space.values(int(chosen.numbers[position])) for position in positions]
        stated = self._compile_statements([self.compiler.compile(design_values) for design_values in values])
        designs: list[Design] = []
        for position, design_values, (line, model) in zip(positions, values, stated, strict=True):
            row = chosen.row(position)
            self._compare(model, design_values, row)
            figures = {name: row[name] for name in self.figures}
            designs.append(Design(design_values, figures, int(chosen.counts[position]), line))
        return designs

    def check_sample(self, chosen: SelectedDesigns) -> None:
        """Compile and compare designs of a long list, evenly chosen. Raises ArchError if a figure differs."""
        for position in range(0, len(chosen), -(-len(chosen) // MAX_COMPILED)):
            values = self.space.values(int(chosen.numbers[position]))
            self._compare(self.compiler.compile(values), values, chosen.row(position))

    def _compare(self, model: Model, values: Mapping[str, PlainValue], row: Mapping[str, int]) -> None:
        """Evaluate all values and conditions for a compiled design. Raises ArchError if the search differs."""
        design = Designs(numpy().empty(0), {name: _as_scalar(value) for name, value in values.items()})
        used = [expr for expr in (*self.values.values(), *self.conditions) if isinstance(expr, Expression)]
        needed = [value for value in self.values.values() if isinstance(value, Quantity)]
        for quantity in dict.fromkeys([*needed, *[quantity for expr in used for quantity in expr.quantities]]):
            design.quantities[quantity] = _as_scalar(measure(model, quantity))
        for name, value in self.values.items():
            actual = design.quantities[value] if isinstance(value, Quantity) else evaluate_expression(value, design)
            if actual != row[name]:
                raise internal_error(f"`{name}` of {model.name} is {actual}, but the search found {row[name]}")
        for condition in self.conditions:
            if evaluate_expression(condition, design) is not True:
                raise internal_error(f"`{condition}` does not hold for {model.name}, but the search found that it does")

    def _compile_statements(self, models: Sequence[Model]) -> list[tuple[str, Model]]:
        """Return the statements of models, each with the model it compiles to in the file of the spec.

        Raises ArchError if the two models differ.
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
            lines.append(format_model_statement(compilation, name, compilation.overrides))
            self.imports |= dict.fromkeys(find_imports(unit, compilation.overrides))
        imported = f"import std {{ {', '.join(self.imports)} }}\n" if self.imports else ""
        text = "\n".join([unit.source.text, imported, *lines, ""])
        compiled = compile_text_in_folder(text, unit.source.label, unit.folder, unit.root, names)
        for model, compiled_model in zip(models, compiled, strict=True):  # figures are compared later
            if (compiled_model.params, compiled_model.hyperparameters) != (model.params, model.hyperparameters):
                message = f"the statement of {compiled_model.name} does not compile to the model of the search"
                raise internal_error(message)
        return list(zip(lines, compiled, strict=True))


# Plots ----------------------------------------------------------------------------------------------------------------


def _build_plot(
    model: str, space: Space, designs: Sequence[Design], collector: Collector, goals: Mapping[str, Expression]
) -> Plot | None:
    """Return a plot of the first two goals or figures; None if no design satisfies the conditions."""
    if not designs:
        return None
    first = designs[0]
    numbers = {**first.figures, **{n: v for n, v in first.values.items() if type(v) is int}}
    names = [name for name in dict.fromkeys([*goals, *first.figures, *numbers]) if name in numbers]
    x, y = (names + names[:1])[:2]

    minimized = {name for name, expr in goals.items() if _is_negative(expr.node)}  # plotted without the sign

    def figure(name: str, value: PlainValue) -> int:
        assert isinstance(value, int)
        return -value if name in minimized else value

    def dot(values: Mapping[str, PlainValue], text: str) -> PlotPoint:
        return PlotPoint(figure(x, values[x]), figure(y, values[y]), text)

    def describe(values: Mapping[str, PlainValue]) -> str:
        named = {name: value for name, value in values.items() if name not in minimized}
        return ", ".join(f"{n} = {v:,}" if type(v) is int else f"{n} = {v}" for n, v in named.items())

    chosen_points = [
        dot(numbers, describe(numbers)) for numbers in ({**design.values, **design.figures} for design in designs)
    ]
    sample = collector.dots()
    columns = {**space.columns(sample.numbers), **sample.columns()} if sample is not None else {}
    points = zip(columns[x].tolist(), columns[y].tolist(), strict=True) if columns else ()
    other_points = [dot({x: value_x, y: value_y}, "") for value_x, value_y in points]
    title_x, title_y = (name.removeprefix("-").lstrip() if name in minimized else name for name in (x, y))
    return Plot(f"designs of {model}", title_x, title_y, tuple(other_points), tuple(chosen_points))


def _is_negative(node: tree.Expr) -> bool:
    """Whether an expression, or its first factor, has a minus sign."""
    if isinstance(node, tree.Binary) and node.operator == "*":
        return _is_negative(node.left)
    return isinstance(node, tree.Unary) and node.operator == "-"
