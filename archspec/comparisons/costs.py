"""The costs of compared models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.comparisons.compare import CostComparison, Figure
from archspec.costs.api import cost
from archspec.costs.cost import Cost, dimensions
from archspec.model import Model, internals
from archspec.source import ArchError, fail
from archspec.work import Quantity


def costs_of(models: Sequence[Model], sizes: Mapping[str, int]) -> CostComparison:
    """Compute the costs of models; each receives the sizes of the dimensions that it has.

    Raises ArchError for a size of a dimension that no model has.
    """
    open_dims = [dimensions(internals(model).body.inputs) for model in models]
    for name in sizes:
        if all(name not in dims for dims in open_dims):
            known = ", ".join(dict.fromkeys(name for dims in open_dims for name in dims))
            help = f"dimensions: {known}" if known else "all their sizes are fixed"
            raise fail("usage", f"unknown dimension `{name}`: no model has it", help=help)
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
    return CostComparison(dict(sizes), tuple(_figures(found)), tuple(notes))


def _figures(found: Sequence[Cost | None]) -> list[Figure]:
    def figure(name: str, values: Sequence[Quantity | None]) -> Figure:
        return Figure(name, tuple(values))

    def training(cost: Cost, name: str) -> int:
        return next(scheme.total for scheme in cost.memory.schemes if scheme.name == name)

    return [
        figure("FLOPs of matrix products", [cost and cost.work.flops for cost in found]),
        figure("of which attention scores", [cost and cost.work.score_flops for cost in found]),
        figure("of which attention mixes", [cost and cost.work.mix_flops for cost in found]),
        figure("elementwise operations", [cost and cost.work.elementwise for cost in found]),
        figure("bytes of weights, float32", [cost and cost.memory.weights for cost in found]),
        figure("bytes of training, Adam", [cost and training(cost, "Adam") for cost in found]),
    ]
