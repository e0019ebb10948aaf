"""The costs of compared models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archspec.analysis.compare.compare import ComparisonRow, CostComparison
from archspec.analysis.cost.api import cost
from archspec.analysis.cost.cost import Cost
from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.index_ranges import dimensions
from archspec.ir.table import PlainValue
from archspec.ir.work import Quantity
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


def compiled_costs(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]], sizes: Mapping[str, int]
) -> tuple[list[Model], CostComparison]:
    """Compile models with their overrides, and compute their costs. Raises ArchError as `costs_of` does."""
    compiled = [as_model(model, overrides) for model, overrides in models]
    return compiled, costs_of(compiled, sizes)


def costs_of(models: Sequence[Model], sizes: Mapping[str, int]) -> CostComparison:
    """Compute the costs of models; each receives the sizes of the dimensions that it has.

    Raises ArchError for a size of a dimension that no model has.
    """
    open_dims = [dimensions(get_compilation(model).body.inputs) for model in models]
    for name in sizes:
        if all(name not in dims for dims in open_dims):
            known = ", ".join(dict.fromkeys(name for dims in open_dims for name in dims))
            help = f"dimensions: {known}" if known else "all their sizes are fixed"
            raise make_error("usage", f"unknown dimension `{name}`: no model has it", help=help)
    found: list[Cost | None] = []
    notes: list[str] = []
    for model, dims in zip(models, open_dims, strict=True):
        note = [f"has no dimension `{name}`" for name in sizes if name not in dims]
        left = [name for name in dims if name not in sizes]
        note += [f"{', '.join(left)} symbolic"] if left else []
        try:
            found.append(cost(model, dims={name: size for name, size in sizes.items() if name in dims}))
        except ArchError as error:
            found.append(None)
            note = [diagnostic.message for diagnostic in error.diagnostics]
        notes.append("; ".join(note))
    figures = [
        ComparisonRow(name, tuple(None if each is None else measure(each) for each in found))
        for name, measure in _MEASURES.items()
    ]
    return CostComparison(dict(sizes), tuple(figures), tuple(notes))


def _adam(cost: Cost) -> int:
    return next(scheme.total for scheme in cost.memory.schemes if scheme.name == "Adam")


_MEASURES: dict[str, Callable[[Cost], Quantity]] = {
    "FLOPs of matrix products": lambda cost: cost.work.flops,
    "of which attention scores": lambda cost: cost.work.score_flops,
    "of which attention mixes": lambda cost: cost.work.mix_flops,
    "elementwise operations": lambda cost: cost.work.elementwise,
    "bytes of weights, float32": lambda cost: cost.memory.weights,
    "bytes of training, Adam": _adam,
}
