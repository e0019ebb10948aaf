"""Comparison of models: hyperparameters, parameter counts and components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from archspec.analysis.compare.components import Alignment, Component, align, find_components
from archspec.analysis.count.groups import count_by_role
from archspec.analysis.count.select import select
from archspec.core.reports.results import Result
from archspec.ir.table import Table

if TYPE_CHECKING:
    from archspec.ir.work import Quantity

Value: TypeAlias = "Quantity | None"
"""A number, a formula in symbolic dimensions, or None if the model has no such value."""

Computation: TypeAlias = 'Literal["equal", "equal up to rounding", "different"] | None'
"""Comparison of a model's operations with the operations of the first model; None if they were not compared."""


class ComparisonRow(NamedTuple):
    """A row of numbers, one for each model.

    A value is an integer, a Polynomial in symbolic dimensions, or None if the model has no such value.
    """

    name: str
    values: tuple[Value, ...]

    @property
    def differences(self) -> tuple[int | None, ...]:
        """Return each value minus the first; None unless both are integers."""
        return tuple(None if pair is None else pair[1] - pair[0] for pair in self._pairs())

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Return each value divided by the first; None unless both are integers and the first is not 0."""
        return tuple(None if pair is None or not pair[0] else pair[1] / pair[0] for pair in self._pairs())

    @property
    def plain(self) -> tuple[int | str | None, ...]:
        """Return the values with formulas as Python expressions."""
        return tuple(value if value is None or isinstance(value, int) else str(value) for value in self.values)

    def _pairs(self) -> Iterator[tuple[int, int] | None]:
        """Yield the first value with each value; None unless both are integers."""
        first = self.values[0]
        for value in self.values:
            yield (first, value) if isinstance(first, int) and isinstance(value, int) else None


class DifferingHyperparameter(NamedTuple):
    """A hyperparameter that differs, with its value in each model that has it, by the index of the model."""

    name: str
    values: dict[int, object]


class DifferingDefinition(NamedTuple):
    """A layer, block or function of one name whose definition differs from that of the first model.

    `changes` has one mapping for each model: the numbers of changes by kind, as `archspec.diff` lists them for one
    application; empty for a model without a difference.
    """

    name: str
    changes: tuple[dict[str, int], ...]


class ReplacedPart(NamedTuple):
    """A part that models have in place of each other: attention, state space, feed-forward, experts, norm, activation.

    `address` is that of its stack in the first model, and `layers` are the indices there; both are "" outside stacks.
    `parts` has the names in each model, "" for a model without such a layer.
    """

    name: str
    address: str
    layers: str
    parts: tuple[str, ...]


class ComponentRow(NamedTuple):
    """Corresponding components, with the parameter count of each."""

    row: Alignment
    params: ComparisonRow


class CostComparison(NamedTuple):
    """The costs of models with the sizes `dims`: FLOPs, operations, and bytes.

    `notes` has one text for each model: missing or symbolic dimensions, or the reason for missing costs; "" for none.
    """

    dims: dict[str, int]
    figures: tuple[ComparisonRow, ...]
    notes: tuple[str, ...]


class Comparison(Result):
    """Models side by side.

    `settings` are the hyperparameters that differ. `totals` and `roles` are parameter counts, in total and by role; a
    tensor with several names is counted once. `parts` are the components, and `costs` is None without sizes.
    `operations` compares the operations of each model with the first model: "equal", "equal up to rounding" (some are
    written differently, but have equal normal forms), "different", or None if the tensors differ. `definitions` are the
    layers, blocks and functions that differ from those of one name in the first model. `replaced` are the parts of
    layers that differ; () for bundled models that were compared without compiling them.
    """

    models: tuple[Table, ...]
    settings: tuple[DifferingHyperparameter, ...]
    totals: tuple[ComparisonRow, ...]
    roles: tuple[ComparisonRow, ...]
    parts: tuple[ComponentRow, ...]
    costs: CostComparison | None
    operations: tuple[Computation, ...] = ()
    definitions: tuple[DifferingDefinition, ...] = ()
    replaced: tuple[ReplacedPart, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(repr(table.model) for table in self.models)}>"


def compare_tables(tables: Sequence[Table], depth: int, costs: CostComparison | None = None) -> Comparison:
    """Compare the models of these tables, with components expanded to `depth`; no components at depth 0."""
    groups = [find_components(table) for table in tables]
    rows = align(groups, depth) if depth else []
    parts = [
        ComponentRow(row, ComparisonRow(_format_addresses(row), tuple(map(_total_params, row.groups)))) for row in rows
    ]
    settings, totals, roles = _differing_hyperparameters(tables), _total_rows(tables, groups), _role_rows(tables)
    return Comparison(tuple(tables), tuple(settings), tuple(totals), tuple(roles), tuple(parts), costs)


def _differing_hyperparameters(tables: Sequence[Table]) -> list[DifferingHyperparameter]:
    values: dict[str, dict[int, object]] = {}
    for i, table in enumerate(tables):
        for name, value in table.hyperparameters.items():
            values.setdefault(name, {})[i] = value
    return [
        DifferingHyperparameter(name, values_by_model)
        for name, values_by_model in values.items()
        if len(values_by_model) < len(tables) or len({*map(repr, values_by_model.values())}) > 1
    ]


def _total_rows(tables: Sequence[Table], groups: Sequence[tuple[Component, ...]]) -> list[ComparisonRow]:
    return [
        ComparisonRow("all", tuple(table.params.total for table in tables)),
        ComparisonRow("trainable", tuple(table.params.trainable for table in tables)),
        ComparisonRow("frozen", tuple(table.params.frozen for table in tables)),
        ComparisonRow("without embeddings", tuple(map(_without_embeddings, tables))),
        ComparisonRow("per layer of its stack", tuple(map(_params_per_layer, groups))),
        ComparisonRow("tensors", tuple(sum(not tensor.tied_to for tensor in table.tensors) for table in tables)),
    ]


def _without_embeddings(table: Table) -> int | None:
    """Return the parameter count of all roles except `embedding`; None for a model without this role."""
    if all(tensor.role != "embedding" for tensor in table.tensors):
        return None
    return sum(tensor.params for tensor in table.tensors if tensor.role != "embedding")


def _params_per_layer(parts: Sequence[Component]) -> int | None:
    """Return the parameter count of one layer of a model with a single stack; None for other models."""
    stacks = [part for part in parts if part.numbered]
    return stacks[0].each if len(stacks) == 1 else None


def _role_rows(tables: Sequence[Table]) -> list[ComparisonRow]:
    sums = [{group.name: group.params for group in count_by_role(table, select(table))} for table in tables]
    names = dict.fromkeys(name for groups in sums for name in groups)
    return [ComparisonRow(name, tuple(groups.get(name, 0) for groups in sums)) for name in names]


def _total_params(group: Sequence[Component]) -> int | None:
    return sum(part.total for part in group) if group else None


def _format_addresses(row: Alignment) -> str:
    """Return the addresses of the components of the first model that has any in this row."""
    group = next(group for group in row.groups if group)
    return " + ".join(part.address or "(the model)" for part in group)
