"""Descriptions of differences between computations: at one address, and collapsed over numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.addresses.repeats import Fold, fold


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
    fold: Fold
    what: str
    before: str
    after: str


def folded(changes: Sequence[OperationChange]) -> list[OperationChanges]:
    """Combine changes that differ only in the numbers in their addresses."""
    alike: dict[tuple[str, str, str, str], dict[str, None]] = {}
    for kind, address, what, before, after in changes:
        alike.setdefault((kind, what, before, after), {})[address] = None
    found: list[tuple[int, OperationChanges]] = []
    order = {address: i for i, address in reversed([*enumerate(c.address for c in changes)])}
    for (kind, what, before, after), addresses in alike.items():
        for names, _ in fold((address, None) for address in addresses):
            place = min(order[name] for name in names.names)
            found.append((place, OperationChanges(kind, names, what, before, after)))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]
