"""`archspec.compare`: comparison of models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.compare.compare import Comparison, Computation, compare_tables
from archspec.analysis.cost.dimension_sizes import merge_sizes
from archspec.analysis.diff.structure import stored_tensors
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import Diagnostic
from archspec.ir.table import PlainValue, Table
from archspec.pipeline.locate import is_spec, locate
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.pipeline.model import ModelLike


@check_arguments
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

    Each is a Model or an argument of `archspec.load`. Components are expanded to `depth`. With sizes of dimensions
    (`batch`, `seq`, or others by name in `dims`) costs are compared too; a size applies to all models with a dimension
    of its name.

    Raises ArchError for a size of a dimension that no model has, ValueError for a negative depth or a single model, and
    as `archspec.load` does.
    """
    if depth < 0:
        raise ValueError(f"expected a depth of at least 0, found {depth}")
    if not others:
        raise ValueError("expected at least two models")
    models = [(model, dict[str, PlainValue]()) for model in (first, *others)]
    return compare_models(models, depth, merge_sizes(dims, batch, seq))[0]


def compare_models(
    models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]], depth: int, sizes: Mapping[str, int]
) -> tuple[Comparison, list[Diagnostic]]:
    """Compare models with their overrides; also returns the warnings about the overrides.

    Bundled models are compiled only if there are sizes or overrides, or if their tensors are equal. Otherwise their
    tables suffice, and their parts are not compared.
    """
    costs = None
    bundled = all(map(_is_bundled, models))
    if sizes or not bundled:
        if sizes:
            compiled, costs = _compiling().compile_and_compute_costs(models, sizes)
            models = [(model, {}) for model in compiled]
        else:
            models = [model if _is_bundled(model) else _compiling().compile_once(model) for model in models]
    loaded = [load_table(model, overrides) for model, overrides in models]
    warnings = [warning for _, diagnostics in loaded for warning in diagnostics]
    tables = [table for table, _ in loaded]
    operations: list[Computation] = [None for _ in tables]
    equal_tables = [i for i, table in enumerate(tables) if stored_tensors(table) == stored_tensors(tables[0])]
    if len(equal_tables) > 1:
        for i in equal_tables:
            operations[i] = _compiling().compare_computations(models[0], models[i])
    comparison = compare_tables(tables, depth, costs).replace(operations=tuple(operations))
    names = _definition_names(tables[0])
    comparable = [not names.isdisjoint(_definition_names(table)) for table in tables]  # a checkpoint has no names
    if sizes or not bundled or any(overrides for _, overrides in models):
        if not bundled and any(comparable[1:]):
            comparison = comparison.replace(definitions=tuple(_compiling().compare_definitions(models, comparable)))
        computable = [_has_computation(model) for model, _ in models]
        replaced = _compiling().compare_parts(models, computable, comparison.parts)
        comparison = comparison.replace(replaced=tuple(replaced))
    return comparison, warnings


def _compiling():  # the type of the module, which has no name
    from archspec.analysis.compare import compiled  # imported late: tables often suffice

    return compiled


def _has_computation(model: ModelLike) -> bool:
    """Whether a model has operations, unlike a checkpoint."""
    return not is_spec(model) or locate(model).kind != "checkpoint"


def _is_bundled(model: tuple[ModelLike, Mapping[str, PlainValue]]) -> bool:
    """Whether the definitions of a model are those of the bundled library, or it has none (a checkpoint)."""
    return is_spec(model[0]) and locate(model[0]).kind in ("bundled", "configuration", "checkpoint")


def _definition_names(table: Table) -> set[str]:
    return {module.type for module in table.modules if module.type}
