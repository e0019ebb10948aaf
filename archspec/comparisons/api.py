"""From models to a comparison: what `archspec compare` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.comparisons.compare import Comparison, Costs, Figure, compare_tables
from archspec.costs.dimension_sizes import given_sizes
from archspec.source import ArchError, fail

if TYPE_CHECKING:
    from archspec.costs.cost import Cost
    from archspec.model import Model
    from archspec.table import Table
    from archspec.work import Quantity


def compare(
    first: Model | str | os.PathLike[str],
    /,
    *others: Model | str | os.PathLike[str],
    depth: int = 1,
    batch: int | None = None,
    seq: int | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison:
    """Two or more models side by side: hyperparameters that differ, parameters in all, by role and by part.

    Each is a compiled model, or what `archspec.load` takes; parts are opened to `depth`. With sizes (`batch`, `seq`,
    or any by name in `dims`) costs are compared too; a size is for those models that have a dimension of its name.

    Raises ArchError for a size that no model has a dimension for, ValueError for a depth below 1 or a single model,
    and all that `archspec.load` raises.
    """
    if depth < 1:
        raise ValueError(f"depth is 1 or more, not {depth}")
    if not others:
        raise ValueError("there is nothing to compare one model with")
    models = (first, *others)
    sizes = given_sizes(dims, batch, seq)
    if not sizes:
        return compare_tables([_table(model) for model in models], depth)
    compiled = [_compiled(model) for model in models]
    return compare_tables([model.table for model in compiled], depth, costs(compiled, sizes))


def _table(model: Model | str | os.PathLike[str]) -> Table:
    from archspec.pipeline import table_of, written

    return table_of(written(model), {})[0] if isinstance(model, str | os.PathLike) else model.table


def _compiled(model: Model | str | os.PathLike[str]) -> Model:
    from archspec.pipeline import load

    return load(model) if isinstance(model, str | os.PathLike) else model


def costs(models: Sequence[Model], sizes: Mapping[str, int]) -> Costs:
    """What models cost at sizes, each given those of the dimensions that it has. Raises ArchError for a size that none
    has a dimension for.
    """
    from archspec.costs.api import cost
    from archspec.costs.cost import dimensions

    open_dims = [dimensions(model.body.inputs) for model in models]
    for name in sizes:
        if all(name not in dims for dims in open_dims):
            known = ", ".join(dict.fromkeys(name for dims in open_dims for name in dims))
            help = f"they have {known}" if known else "all their sizes are fixed"
            raise fail("usage", f"none of the models has a dimension called `{name}`", help=help)
    found: list[Cost | None] = []
    notes: list[str] = []
    for model, dims in zip(models, open_dims, strict=True):
        note = [f"has no dimension `{name}`" for name in sizes if name not in dims]
        left = [name for name in dims if name not in sizes]
        note += [f"{', '.join(left)} left open"] if left else []
        try:
            found.append(cost(model, dims={name: size for name, size in sizes.items() if name in dims}))
        except ArchError as error:
            found.append(None)
            note = [diagnostic.message for diagnostic in error.diagnostics]
        notes.append("; ".join(note))
    return Costs(dict(sizes), tuple(_figures(found)), tuple(notes))


def _figures(found: Sequence[Cost | None]) -> list[Figure]:
    def figure(name: str, values: Sequence[Quantity | None]) -> Figure:
        return Figure(name, tuple(values))

    def training(cost: Cost, name: str) -> int:
        return next(scheme.total for scheme in cost.memory.schemes if scheme.name == name)

    return [
        figure("FLOPs of matrix products", [cost and cost.work.flops for cost in found]),
        figure("of these, attention scores", [cost and cost.work.score_flops for cost in found]),
        figure("of these, attention mixes", [cost and cost.work.mix_flops for cost in found]),
        figure("elementwise operations", [cost and cost.work.elementwise for cost in found]),
        figure("bytes of weights, float32", [cost and cost.memory.weights for cost in found]),
        figure("bytes of training, Adam", [cost and training(cost, "Adam") for cost in found]),
    ]
