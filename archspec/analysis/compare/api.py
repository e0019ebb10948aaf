"""`archspec.compare`: models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.compare.compare import Comparison, Computation, compare_tables
from archspec.analysis.cost.dimension_sizes import given_sizes
from archspec.analysis.diff.structure import contents
from archspec.core.diagnostics import Diagnostic
from archspec.ir.table import PlainValue
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.pipeline.model import ModelLike


def compare(
    first: ModelLike,
    /,
    *others: ModelLike,
    depth: int = 1,
    batch: int | None = None,
    seq: int | None = None,
    dims: Mapping[str, int] | None = None,
) -> Comparison:
    """Compare models side by side: the hyperparameters that differ, and parameters in total, by role, by component.

    Each is a Model, or what `archspec.load` takes. Components are expanded to `depth`. With sizes of dimensions
    (`batch`, `seq`, or any by name in `dims`) costs are compared too; a size applies to the models that have a
    dimension of its name.

    Raises ArchError for a size of a dimension that no model has, ValueError for a negative depth or a single model, and
    as `archspec.load` does.
    """
    if depth < 0:
        raise ValueError(f"expected a depth of at least 0, found {depth}")
    if not others:
        raise ValueError("expected at least two models")
    models = [(model, dict[str, PlainValue]()) for model in (first, *others)]
    return compare_models(models, depth, given_sizes(dims, batch, seq))[0]


def compare_models(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]], depth: int, sizes: Mapping[str, int]
) -> tuple[Comparison, list[Diagnostic]]:
    """Compare models with their overrides; also returns the warnings about the overrides.

    Models are compiled only if there are sizes, or if their tensors are the same; otherwise their tables suffice.
    """
    costs = None
    if sizes:
        from archspec.analysis.compare.costs import compiled_costs  # slow to import, because this compiles

        compiled, costs = compiled_costs(models, sizes)
        models = [(model, {}) for model in compiled]
    found = [load_table(model, overrides) for model, overrides in models]
    warnings = [warning for _, each in found for warning in each]
    tables = [table for table, _ in found]
    operations: list[Computation] = [None for _ in tables]
    alike = [i for i, table in enumerate(tables) if contents(table) == contents(tables[0])]
    if len(alike) > 1:
        from archspec.analysis.compare.computations import computation_of  # slow to import, because this compiles

        for i in alike:
            operations[i] = computation_of(models[0], models[i])
    return compare_tables(tables, depth, costs).replace(operations=tuple(operations)), warnings
