"""The sizes of dimensions that a page starts with, and the largest that a model can run with."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.core.diagnostics import ArchError
from archspec.ir.index_ranges import check_sizes, dimensions
from archspec.ir.module import Body
from archspec.pipeline.model import Model, get_compilation

DEFAULT_SIZE = 512
"""The first size of a dimension, unless it is the number of examples or the model is limited to fewer."""

UNLIMITED = 2**31
"""A model that can run with this size is taken to have no limit."""


def sizes_of(model: Model) -> dict[str, tuple[int, int | None]]:
    """Return the size that each dimension starts with, and the largest that the model can run with, if it has one."""
    body = get_compilation(model).body
    names = dimensions(body.inputs)
    found: dict[str, tuple[int, int | None]] = {}
    for name in names:
        largest = _largest(body, name, {other: found.get(other, (1, None))[0] for other in names})
        usual = 1 if name == "batch" else DEFAULT_SIZE
        found[name] = (usual if largest is None else min(usual, largest), largest)
    return found


def _largest(body: Body, name: str, sizes: Mapping[str, int]) -> int | None:
    """Return the largest size of a dimension at these sizes of the others; None if there is no limit."""
    if _runs(body, {**sizes, name: UNLIMITED}):
        return None
    valid, invalid = 1, UNLIMITED
    while invalid - valid > 1:
        middle = (valid + invalid) // 2
        if _runs(body, {**sizes, name: middle}):
            valid = middle
        else:
            invalid = middle
    return valid


def _runs(body: Body, sizes: Mapping[str, int]) -> bool:
    try:
        check_sizes(body, sizes)
    except ArchError:
        return False
    return True
