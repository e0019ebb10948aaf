"""Names that differ in numbers only (`layer.0.weight`, `layer.1.weight`, ...) said once, with the numbers meant."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

MOST_NUMBERS = 6
"""Numbers in a name that may become a `*`; those further right stay as they are."""

T = TypeVar("T", bound=Hashable)


class Fold(NamedTuple):
    """Names as one. `numbers` has, for each `*` of `pattern` from left to right, the numbers it stands for, ascending.

    The names are those of the pattern with every combination of these, and are listed in this order in `names`.
    """

    pattern: str
    numbers: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @property
    def ranges(self) -> str:
        """The numbers as people write them: `0-2,5`; for the second `*` behind a semicolon."""
        return "; ".join(map(ranges, self.numbers))


def fold(items: Iterable[tuple[str, T]]) -> list[tuple[Fold, T]]:
    """Folds names about which the same is to be said: `items` are distinct names, each with what is said of it.

    Only whole segments of a name count as numbers (`layer.0`, not `layer0` or `layer.00`). Each name is in one of the
    folds, these have nothing in common, and they stand in the order of the first of their names.
    """
    alike: dict[tuple[tuple[str | None, ...], T], dict[tuple[int, ...], str]] = {}
    order: dict[str, int] = {}
    for name, said in items:
        shape, numbers = _split(name)
        alike.setdefault((shape, said), {})[numbers] = name
        order[name] = len(order)
    folds: list[tuple[Fold, T]] = []
    for (shape, said), names in alike.items():
        for box in _boxes(sorted(names)):
            folds.append((_fold(shape, box, [names[numbers] for numbers in product(*box)]), said))
    return sorted(folds, key=lambda folded: min(order[name] for name in folded[0].names))


def ranges(numbers: Sequence[int]) -> str:
    """`0-2,5` of 0, 1, 2, 5; every one of them is said."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ",".join("-".join(map(str, ends)) for ends in found)


def _split(name: str) -> tuple[tuple[str | None, ...], tuple[int, ...]]:
    """The segments of a name, with None for its numbers, and these."""
    shape: list[str | None] = []
    numbers: list[int] = []
    for segment in name.split("."):
        is_number = segment.isascii() and segment.isdigit() and len(segment) < 19 and str(int(segment)) == segment
        if is_number and len(numbers) < MOST_NUMBERS:
            numbers.append(int(segment))
            shape.append(None)
        else:
            shape.append(segment)
    return tuple(shape), tuple(numbers)


def _boxes(points: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], ...]]:
    """Tuples of numbers, distinct and ascending, as products: each is in one of these, and they have no others."""
    if not points[0]:
        return [()]
    by_first: dict[int, list[tuple[int, ...]]] = {}
    for point in points:
        by_first.setdefault(point[0], []).append(point[1:])
    firsts: dict[tuple[Any, ...], list[int]] = {}
    for first, rests in by_first.items():
        firsts.setdefault(tuple(_boxes(rests)), []).append(first)
    return [(tuple(numbers), *box) for boxes, numbers in firsts.items() for box in boxes]


def _fold(shape: Sequence[str | None], box: Sequence[tuple[int, ...]], names: Sequence[str]) -> Fold:
    """A number that is the same in all names stays in the pattern."""
    left = iter(box)
    segments: list[str] = []
    numbers: list[tuple[int, ...]] = []
    for segment in shape:
        if segment is not None:
            segments.append(segment)
            continue
        values = next(left)
        first, *more = values
        if more:
            numbers.append(values)
        segments.append("*" if more else str(first))
    return Fold(".".join(segments), tuple(numbers), tuple(names))
