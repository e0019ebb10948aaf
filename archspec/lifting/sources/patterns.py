"""Kinds of layers, as lists in a configuration name them, and the rule that they follow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from archspec.lifting.conditions import Varying, conditions

MOST_KINDS = 2
"""A loop has layers of so many kinds."""


def shows_rule(kinds: Sequence[Hashable], few: int) -> bool:
    """Whether the condition on the index of a loop that distinguishes the first few layers is that of all layers.

    Also true without a rule to show: for layers that do not alternate, or that no condition distinguishes.
    """
    start = next(first for first in range(few) if len({*kinds[first:few]}) <= MOST_KINDS)
    some, every = kinds[start:few], kinds[start:]
    if len({*every}) > MOST_KINDS or not _alternates(every):
        return True
    values, others = [Varying(tuple([kind == every[0] for kind in part]), start) for part in (some, every)]
    if not any(others.follows(holds) for _, holds in conditions(others)):
        return True
    found = next((holds for _, holds in conditions(values) if values.follows(holds)), None)
    return _alternates(some) and found is not None and others.follows(found)


def _alternates(kinds: Sequence[Hashable]) -> bool:
    return 1 < len({*kinds}) <= sum([first != second for first, second in pairwise(kinds)])
