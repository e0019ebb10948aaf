"""Collapsing names that differ only in numbers (`layer.0.weight`, `layer.1.weight`, ...) to patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias, TypeVar

from archspec.core.addresses import ANY_INDEX, INDEX, Pattern, format_ranges

MAX_NUMBERS = 6
"""Maximum number of numbers in a name that can become `*`; numbers further right remain."""

T = TypeVar("T", bound=Hashable)

Box: TypeAlias = tuple[tuple[int, ...], ...]
"""A Cartesian product of numbers: the numbers at each position."""


class NamePattern(NamedTuple):
    """Names that differ only in indices: a `pattern` with `*` for each index that differs.

    `numbers` has the ascending indices of each `*`, from left to right. `names` are all combinations, in this order.
    """

    pattern: Pattern
    numbers: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @property
    def ranges(self) -> str:
        """Format the indices: `0-2,5`; a semicolon separates the indices of different `*`."""
        return "; ".join(map(format_ranges, self.numbers))

    def __str__(self) -> str:
        return f"`{self.pattern}`{f' ({self.ranges})' if self.numbers else ''}"


def collapse_names(items: Iterable[tuple[str, T]]) -> list[tuple[NamePattern, T]]:
    """Collapse names with equal descriptions; `items` are pairs of a name and its description.

    Only complete segments of a name count as numbers (`layer.0`, not `layer0` or `layer.00`). Each name is in exactly
    one pattern for each of its descriptions. The patterns are sorted by the first of their names.
    """
    groups: dict[tuple[tuple[str, ...], T], dict[tuple[int, ...], str]] = {}
    order: dict[str, int] = {}
    for name, description in items:
        texts, numbers = _split_numbers(name)
        groups.setdefault((texts, description), {})[numbers] = name
        order.setdefault(name, len(order))
    patterns: list[tuple[NamePattern, T]] = []
    for (texts, description), names in groups.items():
        if len(names) == 1:
            (name,) = names.values()
            patterns.append((NamePattern(name, (), (name,)), description))
            continue
        for box in _partition_into_boxes(sorted(names)):
            patterns.append((_build_pattern(texts, box, [names[numbers] for numbers in product(*box)]), description))
    return sorted(patterns, key=lambda item: min(order[name] for name in item[0].names))


def _split_numbers(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Split a name into the texts between its numbers, and the numbers."""
    parts = INDEX.split(name, MAX_NUMBERS)
    return tuple(parts[::2]), tuple(map(int, parts[1::2]))


def _partition_into_boxes(points: Sequence[tuple[int, ...]]) -> list[Box]:
    """Partition distinct, ascending tuples of numbers into products."""
    if not points[0]:
        return [()]
    by_first: dict[int, list[tuple[int, ...]]] = {}
    for point in points:
        by_first.setdefault(point[0], []).append(point[1:])
    firsts_by_boxes: dict[tuple[Box, ...], list[int]] = {}
    for first, suffixes in by_first.items():
        firsts_by_boxes.setdefault(tuple(_partition_into_boxes(suffixes)), []).append(first)
    return [(tuple(numbers), *box) for boxes, numbers in firsts_by_boxes.items() for box in boxes]


def _build_pattern(texts: Sequence[str], box: Sequence[tuple[int, ...]], names: Sequence[str]) -> NamePattern:
    """Build the pattern of a box; a number that is equal in all names stays in the pattern."""
    segments = [ANY_INDEX if len(numbers) > 1 else str(min(numbers)) for numbers in box]
    pattern = "".join(part for pair in zip(texts, [*segments, ""], strict=True) for part in pair)
    return NamePattern(pattern, tuple(numbers for numbers in box if len(numbers) > 1), tuple(names))
