"""Comparison of what models with the same tensors compute."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.comparisons.compare import Computation
from archspec.diffs.api import diff
from archspec.model import ModelLike
from archspec.pipeline.compile import model_of
from archspec.source import ArchError
from archspec.table import Plain


def computation_of(
    first: tuple[ModelLike, Mapping[str, Plain]], other: tuple[ModelLike, Mapping[str, Plain]]
) -> Computation:
    """Compare the operations of a model with those of the first; None if there are too many."""
    try:
        found = diff(model_of(*first), model_of(*other))
    except ArchError:
        return None
    return "different" if found.operations else "equal up to rounding" if found.unified else "equal"
