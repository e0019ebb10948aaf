"""Comparison of what models with the same tensors compute."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.analysis.compare.compare import Computation
from archspec.analysis.diff.api import diff
from archspec.core.diagnostics import ArchError
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike


def computation_of(
    first: tuple[ModelLike, Mapping[str, PlainValue]], other: tuple[ModelLike, Mapping[str, PlainValue]]
) -> Computation:
    """Compare the operations of a model with those of the first; None if there are too many."""
    try:
        found = diff(as_model(*first), as_model(*other))
    except ArchError:
        return None
    return "different" if found.operations else "equal up to rounding" if found.unified else "equal"
