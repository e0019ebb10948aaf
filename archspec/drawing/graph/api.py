"""The Python function for `archspec graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.core.arguments import check_arguments
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model

if TYPE_CHECKING:
    from archspec.drawing.graph.network import Graph
    from archspec.pipeline.model import ModelLike


@check_arguments
def graph(
    model: ModelLike,
    /,
    level: str = "layer",
    depth: int | None = None,
    *,
    fold: bool = False,
    **overrides: PlainValue,
) -> Graph:
    """Return the graph of a model, as `Model.graph` does; a notebook shows its picture.

    `model` is a Model, or what `archspec.load` takes with its overrides.

    Raises ArchError as `archspec.load` does, TypeError for a Model with overrides, and ValueError as
    `Model.graph` does.
    """
    return as_model(model, overrides).graph(level, depth, fold=fold)
