"""Costs and operations of compared models.

Separate from `compare.api`, which imports this module late: a comparison of tables compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archspec.analysis.compare.compare import (
    ComparisonRow,
    ComponentRow,
    Computation,
    CostComparison,
    DifferingDefinition,
    ReplacedPart,
)
from archspec.analysis.compare.parts import find_replaced_parts
from archspec.analysis.cost.api import cost
from archspec.analysis.cost.cost import Cost
from archspec.analysis.diff.api import diff
from archspec.analysis.diff.definitions import find_differing_definitions
from archspec.core.algebra import Dim, substitute, symbols
from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.index_ranges import dimensions
from archspec.ir.table import PlainValue
from archspec.ir.work import Quantity
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


def compare_computations(
    first: tuple[ModelLike, Mapping[str, PlainValue]], second: tuple[ModelLike, Mapping[str, PlainValue]]
) -> Computation:
    """Compare the operations of two models; None if there are too many."""
    try:
        difference = diff(as_model(*first), as_model(*second))
    except ArchError:
        return None
    return "different" if difference.operations else "equal up to rounding" if difference.unified else "equal"


def compile_once(model: tuple[ModelLike, Mapping[str, PlainValue]]) -> tuple[ModelLike, Mapping[str, PlainValue]]:
    """Compile a model with its overrides: a stream can be read only once."""
    return as_model(*model), {}


def compare_definitions(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]], comparable: Sequence[bool]
) -> list[DifferingDefinition]:
    """Compare the definitions of each `comparable` model with those of one name in the first model."""
    first = as_model(*models[0])
    changes: list[Mapping[str, Mapping[str, int]]] = [{}]
    for model, is_comparable in zip(models[1:], comparable[1:], strict=True):
        changes.append(find_differing_definitions(first, as_model(*model)) if is_comparable else {})
    names = dict.fromkeys(name for definitions in changes for name in definitions)
    return [DifferingDefinition(name, tuple(dict(model.get(name, {})) for model in changes)) for name in names]


def compare_parts(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]],
    computable: Sequence[bool],
    components: Sequence[ComponentRow],
) -> list[ReplacedPart]:
    """Compare the parts of models. Those that are not `computable` have none."""
    compiled = [as_model(*model) if has_parts else None for model, has_parts in zip(models, computable, strict=True)]
    return find_replaced_parts(compiled, components)


def compile_and_compute_costs(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]], sizes: Mapping[str, int]
) -> tuple[list[Model], CostComparison]:
    """Compile models with their overrides, and compute their costs. Raises ArchError as `compute_costs` does."""
    compiled = [as_model(model, overrides) for model, overrides in models]
    return compiled, compute_costs(compiled, sizes)


def compute_costs(models: Sequence[Model], sizes: Mapping[str, int]) -> CostComparison:
    """Compute the costs of models, each with the sizes of its own dimensions.

    Raises ArchError for a size of a dimension that no model has.
    """
    open_dims = [dimensions(get_compilation(model).body.inputs) for model in models]
    for name in sizes:
        if all(name not in dims for dims in open_dims):
            choices = ", ".join(dict.fromkeys(name for dims in open_dims for name in dims))
            help = f"dimensions: {choices}" if choices else "all sizes of these models are fixed"
            raise make_error("usage", f"unknown dimension `{name}`: no model has it", help=help)
    costs: list[Cost | None] = []
    notes: list[str] = []
    length_notes = _describe_lengths(models, sizes)
    for model, dims, lengths in zip(models, open_dims, length_notes, strict=True):
        note = lengths + [f"has no dimension `{name}`" for name in sizes if name not in dims]
        symbolic = [name for name in dims if name not in sizes]
        note += [f"{', '.join(symbolic)} symbolic"] if symbolic else []
        try:
            costs.append(cost(model, dims={name: size for name, size in sizes.items() if name in dims}))
        except ArchError as error:
            costs.append(None)
            note = [diagnostic.message for diagnostic in error.diagnostics]
        notes.append("; ".join(note))
    figures = [
        ComparisonRow(name, tuple(None if model_cost is None else measure(model_cost) for model_cost in costs))
        for name, measure in _MEASURES.items()
    ]
    return CostComparison(dict(sizes), tuple(figures), tuple(notes))


def _describe_lengths(models: Sequence[Model], sizes: Mapping[str, int]) -> list[list[str]]:
    """Describe, for each model, the axes of its inputs whose sizes are other expressions of a dimension than elsewhere.

    An input `[batch, 4 * seq]` has another length than `[batch, seq]` at the same `seq`.
    """
    axes = [_axes_by_dimension(model) for model in models]
    notes: list[list[str]] = [[] for _ in models]
    for name in dict.fromkeys(name for model_axes in axes for name in model_axes):
        if len({frozenset(model_axes[name]) for model_axes in axes if name in model_axes}) > 1:
            for note, model_axes in zip(notes, axes, strict=True):
                lengths = [
                    _format_length(size, sizes) for text, size in model_axes.get(name, {}).items() if text != name
                ]
                note += [f"input lengths differ at equal `{name}`: {', '.join(lengths)}"] if lengths else []
    return notes


def _format_length(size: Dim, sizes: Mapping[str, int]) -> str:
    length = substitute(size, sizes)
    return f"{size}" if length == size else f"{size} = {length}"


def _axes_by_dimension(model: Model) -> dict[str, dict[str, Dim]]:
    """Return the sizes of the axes of the inputs that contain each dimension, by their text."""
    result: dict[str, dict[str, Dim]] = {}
    for _, type in get_compilation(model).body.inputs:
        for size in type.shape:
            for name in symbols(size):
                result.setdefault(name, {})[str(size)] = size
    return result


def _adam_bytes(cost: Cost) -> int:
    return next(scheme.total for scheme in cost.memory.schemes if scheme.name == "Adam")


_MEASURES: dict[str, Callable[[Cost], Quantity]] = {
    "FLOPs of matrix products": lambda cost: cost.work.flops,
    "of which attention scores": lambda cost: cost.work.score_flops,
    "of which attention mixes": lambda cost: cost.work.mix_flops,
    "elementwise operations": lambda cost: cost.work.elementwise,
    "bytes of weights, float32": lambda cost: cost.memory.weights,
    "bytes of training, Adam": _adam_bytes,
}
