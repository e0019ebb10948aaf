"""Descriptions of differences between computations: at one address, and collapsed over numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.core.addresses.repeats import NamePattern, collapse_names


class OperationChange(NamedTuple):
    """A change of the computation at `address`, that of a layer or block ("" for the model).

    `kind` is "reads" (its inputs differ), "moved" (the readers of its outputs differ too), "computes" (the computation
    of a layer differs), "returns" (the output `what` of a block differs), "times" (the number of applications),
    "added", "removed", "input" or "output" (of the model), "table" (the values of a constant tensor), or "differs" (no
    description was found).
    """

    kind: str
    address: str
    what: str
    before: str
    after: str


class OperationChanges(NamedTuple):
    """One change at all addresses of `fold`; the other fields are those of OperationChange."""

    kind: str
    fold: NamePattern
    what: str
    before: str
    after: str


def folded(changes: Sequence[OperationChange]) -> list[OperationChanges]:
    """Combine changes that differ only in the numbers in their addresses."""
    described = ((c.address, (c.kind, c.what, c.before, c.after)) for c in changes)
    return [OperationChanges(kind, names, *words) for names, (kind, *words) in collapse_names(described)]
