"""Horizontal positions: entries of a row as near as possible to where they are wanted, with their order kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from archspec.core.record import Record

GAP = 18.0
"""Least distance between two entries of a row."""

FIXED = 1e6
"""The weight of an entry that stays where it is wanted."""


class EntryRoom(Record):
    """The room that an entry of a row takes to the left and to the right of its axis."""

    left: float
    right: float


def fit_positions(
    slots: Sequence[EntryRoom], wanted: Sequence[float], weights: Sequence[float], gap: float = GAP
) -> list[float]:
    """Return the positions of the axes with the least sum of weighted squares of the distances to those wanted.

    Entries keep their order and do not overlap (isotonic regression: neighbors that would are moved as one).
    """
    offsets, offset = [0.0][: len(slots)], 0.0
    for before, after in itertools.pairwise(slots):
        offset += before.right + gap + after.left
        offsets.append(offset)
    groups: list[tuple[float, float, int]] = []  # weighted sum, weight, number of entries
    for want, start, weight in zip(wanted, offsets, weights, strict=True):
        groups.append(((want - start) * weight, weight, 1))
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] >= groups[-1][0] / groups[-1][1]:
            last, first = groups.pop(), groups.pop()
            groups.append((first[0] + last[0], first[1] + last[1], first[2] + last[2]))
    places = [total / weight for total, weight, count in groups for _ in range(count)]
    return [place + start for place, start in zip(places, offsets, strict=True)]
