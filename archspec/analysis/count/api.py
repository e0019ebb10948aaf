"""The Python function for `archspec count`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.analysis.count.count import Count
from archspec.analysis.count.count import count as count_table
from archspec.analysis.count.select import SelectionRule
from archspec.core.arguments import check_arguments
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.locate import locate
from archspec.pipeline.model import Model
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.pipeline.model import ModelLike


@check_arguments
def count(
    model: ModelLike,
    /,
    by: str | None = None,
    depth: int | None = None,
    *,
    rules: Sequence[SelectionRule] = (),
    **overrides: PlainValue,
) -> Count:
    """Return the parameter counts of a model, as `Model.count` does; a notebook shows them.

    `model` is a Model, or what `archspec.load` takes with its overrides.

    Raises ArchError as `archspec.load` does, TypeError for a Model with overrides, and ValueError for another `by` or a
    negative depth.
    """
    if isinstance(model, Model):
        return as_model(model, overrides).count(by, depth, rules=rules)
    return count_table(load_table(locate(model), dict(overrides))[0], rules, by, depth)
