"""Names that differ only in numbers (`layer.0.weight`, `layer.1.weight`, ...), collapsed to patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias, TypeVar

from archspec.core.addresses import ANY_INDEX, INDEX, Pattern, format_ranges

MAX_NUMBERS = 6
"""The limit on numbers in a name that may become a `*`; those further right are kept."""

T = TypeVar("T", bound=Hashable)

Box: TypeAlias = tuple[tuple[int, ...], ...]
"""Tuples of numbers as a product: the numbers of each position."""


class NamePattern(NamedTuple):
    """Names that differ only in indices, as one `pattern` with `*` for these.

    `numbers` has the indices of each `*` from left to right, ascending. `names` are those of all combinations, in this
    order.
    """

    pattern: Pattern
    numbers: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @property
    def ranges(self) -> str:
        """Return the indices as text: `0-2,5`; those of the second `*` follow a semicolon."""
        return "; ".join(map(format_ranges, self.numbers))


def collapse_names(items: Iterable[tuple[str, T]]) -> list[tuple[NamePattern, T]]:
    """Collapse names with equal descriptions: `items` are names, each with a description.

    Only whole segments of a name count as numbers (`layer.0`, not `layer0` or `layer.00`). Each name is in exactly one
    fold for each of its descriptions, and the folds are in the order of the first of their names.
    """
    alike: dict[tuple[tuple[str, ...], T], dict[tuple[int, ...], str]] = {}
    order: dict[str, int] = {}
    for name, described in items:
        around, numbers = _split(name)
        alike.setdefault((around, described), {})[numbers] = name
        order.setdefault(name, len(order))
    folds: list[tuple[NamePattern, T]] = []
    for (around, described), names in alike.items():
        if len(names) == 1:
            (name,) = names.values()
            folds.append((NamePattern(name, (), (name,)), described))
            continue
        for box in _boxes(sorted(names)):
            folds.append((_fold(around, box, [names[numbers] for numbers in product(*box)]), described))
    return sorted(folds, key=lambda folded: min(order[name] for name in folded[0].names))


def _split(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Split a name into its numbers and the text around them."""
    parts = INDEX.split(name, MAX_NUMBERS)
    return tuple(parts[::2]), tuple(map(int, parts[1::2]))


def _boxes(points: Sequence[tuple[int, ...]]) -> list[Box]:
    """Partition distinct, ascending tuples of numbers into products."""
    if not points[0]:
        return [()]
    by_first: dict[int, list[tuple[int, ...]]] = {}
    for point in points:
        by_first.setdefault(point[0], []).append(point[1:])
    firsts: dict[tuple[Box, ...], list[int]] = {}
    for first, rests in by_first.items():
        firsts.setdefault(tuple(_boxes(rests)), []).append(first)
    return [(tuple(numbers), *box) for boxes, numbers in firsts.items() for box in boxes]


def _fold(around: Sequence[str], box: Sequence[tuple[int, ...]], names: Sequence[str]) -> NamePattern:
    """Keep a number that is the same in all names in the pattern."""
    marks = [ANY_INDEX if len(numbers) > 1 else str(min(numbers)) for numbers in box]
    pattern = "".join(part for pair in zip(around, [*marks, ""], strict=True) for part in pair)
    return NamePattern(pattern, tuple(numbers for numbers in box if len(numbers) > 1), tuple(names))
