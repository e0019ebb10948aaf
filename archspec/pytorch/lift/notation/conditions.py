"""Conditions on the index of a loop, for what differs between its iterations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias, cast


class Varying(NamedTuple):
    """The values of a number in the iterations of a loop, of which the first has the index `start`.

    None stands for an iteration that does without the number.
    """

    values: tuple[Size | None, ...]
    start: int

    @property
    def kinds(self) -> set[Size]:
        """The values."""
        return {value for value in self.values if value is not None}

    def where(self, holds: Callable[[int], bool], side: bool) -> set[Size]:
        """Return the values in the iterations in which a condition holds, or in those in which it does not."""
        turns = enumerate(self.values, self.start)
        return {value for turn, value in turns if value is not None and holds(turn) == side}

    def follows(self, holds: Callable[[int], bool]) -> bool:
        """Whether there is one value where a condition holds, and another one where it does not."""
        yes, no = self.where(holds, True), self.where(holds, False)
        return len(yes) <= 1 and len(no) <= 1 and not yes & no


class Progression(NamedTuple):
    """Integers each of which is the one before it times a number, or plus one: a function of the index of a loop."""

    start: int
    """The value at index 0, which there may be none of."""
    step: int
    is_geometric: bool

    def text(self, start: str, step: str) -> str:
        """Return the function, given the texts of both numbers."""
        if self.is_geometric:
            return f"{step} ** i" if start == "1" else f"{start} * {step} ** i"
        step = "i" if step == "1" else f"{step} * i"
        return step if start == "0" else f"{start} + {step}"


def progressions(varying: Varying) -> Iterator[Progression]:
    """Yield the progressions that values are."""
    values, start = varying
    if len({*values}) < 2 or not all(type(value) is int and value > 0 for value in values):
        return
    integers = cast("tuple[int, ...]", values)
    pairs = [*pairwise(integers)]
    (first, second), *_ = pairs
    ratio, difference = second // first, second - first
    first_of_ratio = first // ratio**start if ratio > 1 else 0
    if ratio > 1 and first_of_ratio * ratio**start == first and all(b == a * ratio for a, b in pairs):
        yield Progression(first_of_ratio, ratio, True)
    if difference > 0 and first >= difference * start and all(b == a + difference for a, b in pairs):
        yield Progression(first - difference * start, difference, False)


Size: TypeAlias = int | float | str | Varying
"""A number of a definition, which may be another one in each iteration of a loop, or the text of another literal."""

MIN_LISTED_ITERATIONS = 12
"""In loops of fewer iterations, no condition lists indices: a small module does not show those of a large one."""


def conditions(varying: Varying) -> list[tuple[str, Callable[[int], bool]]]:
    """Return conditions on the index of a loop: simple functions of it, and the lists of those with one value."""
    values, start = varying
    found: list[tuple[str, Callable[[int], bool]]] = [(f"i == {start}", start.__eq__)]
    for period in range(2, 9):
        found += [(f"i % {period} == {rest}", _repeats(period, rest, True)) for rest in range(period)]
        found += [(f"i % {period} != {rest}", _repeats(period, rest, False)) for rest in range(period)]
    if len(values) >= MIN_LISTED_ITERATIONS:
        kinds = dict.fromkeys([value for value in values if value is not None])
        lists = [[turn for turn, value in enumerate(values, start) if value == kind] for kind in kinds]
        for indices in sorted(lists, key=len):
            found += [(f"i in {indices}", _is_among(indices, True)), (f"i not in {indices}", _is_among(indices, False))]
    return found


def _repeats(period: int, rest: int, holds: bool) -> Callable[[int], bool]:
    return lambda i: (i % period == rest) == holds


def _is_among(indices: list[int], holds: bool) -> Callable[[int], bool]:
    return lambda i: (i in indices) == holds


def branches_of(kinds: tuple[int, ...], start: int) -> list[Varying]:
    """Return in which iterations each kind but the last is used, among those in which no kind before it is."""
    last = max(kinds)
    return [
        Varying(tuple([None if kind < tested else kind == tested for kind in kinds]), start) for tested in range(last)
    ]


def is_regular(kinds: tuple[int, ...], start: int) -> bool:
    """Whether conditions on the index determine the kind of each iteration."""
    return all(any(test.follows(holds) for _, holds in conditions(test)) for test in branches_of(kinds, start))
