"""Two figures beside each other: the elements that both have, and what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from archspec.drawing.figure.compose import Composer, Composition, moved
from archspec.drawing.figure.flow import Element
from archspec.drawing.figure.shapes import BADGE, Shape, Text
from archspec.drawing.figure.stacks import Stack

_MARGIN = 8.0


def mark_differences(first: Composer, second: Composer) -> None:
    """Mark what two figures do not share: boxes that only one has, other words or shapes, numbers of layers."""
    own, others = first.flow.elements, second.flow.elements
    looks = [_look(first, element) for element in own]
    other_looks = [_look(second, element) for element in others]
    pairs = _align(looks, other_looks)
    first.marked.update(own[i] for i in range(len(own)) if i not in pairs)
    second.marked.update(others[j] for j in range(len(others)) if j not in pairs.values())
    stacks: dict[Stack, Stack] = {}
    for i, j in pairs.items():
        a, b = own[i], others[j]
        if looks[i] != other_looks[j]:
            first.marked.add(a)
            second.marked.add(b)
        stack, twin = first.node_of.get(a), second.node_of.get(b)
        if isinstance(stack, Stack) and isinstance(twin, Stack):
            stacks.setdefault(stack, twin)
    for stack, twin in stacks.items():
        if (stack.count, stack.marks) != (twin.count, twin.marks):
            first.marked.add(stack)
            second.marked.add(twin)


class _Look(NamedTuple):
    """Attributes of an element that are compared; `shapes` counts the shapes of its parameters in one layer."""

    kind: str
    is_in_stack: bool
    title: str
    details: str
    shapes: Mapping[tuple[int, ...], float]


def _look(composer: Composer, element: Element) -> _Look:
    stack = composer.node_of.get(element)
    number = stack.count if isinstance(stack, Stack) else 1
    counts = Counter(tuple(composer.reading.shapes[name]) for name in element.tensors)
    shapes = {shape: count / number for shape, count in counts.items()}
    return _Look(element.kind, isinstance(stack, Stack), element.title, element.details, shapes)


def _align(own: Sequence[_Look], others: Sequence[_Look]) -> dict[int, int]:
    """Return the numbers of the elements that are each other's, in order (Needleman and Wunsch, 1970)."""

    def likeness(a: _Look, b: _Look) -> int:
        return 2 + 2 * (a.title == b.title) + (a == b) if a[:2] == b[:2] else -1

    best = [[0] * (len(others) + 1) for _ in range(len(own) + 1)]
    for i in reversed(range(len(own))):
        for j in reversed(range(len(others))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + likeness(own[i], others[j]))
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(own) and j < len(others):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs[i] = j
            i, j = i + 1, j + 1
    return pairs


def place_beside(compositions: Sequence[Composition], titles: Sequence[str], breadth: float) -> Composition:
    """Place figures beside each other, with their layers level and their titles above."""
    level = max(composition.level for composition in compositions)
    shapes: list[Shape] = []
    top, x = 0.0, 0.0
    for composition in compositions:
        rise = level - composition.level
        shapes += [moved(shape, x, rise) for shape in composition.shapes]
        top = max(top, composition.height + rise)
        x += composition.breadth + _MARGIN
    x = 0.0
    for composition, title in zip(compositions, titles, strict=True):
        shapes.append(Text(x + composition.breadth / 2, top + 4, title, BADGE, bold=True))
        x += composition.breadth + _MARGIN
    return Composition(shapes, breadth, top + BADGE + 5)


def half(breadth: float) -> float:
    """Return the width of one of two figures."""
    return (breadth - _MARGIN) / 2


def hidden_settings(settings: Sequence[Mapping[str, object]], composers: Sequence[Composer]) -> tuple[str, ...]:
    """Return the hyperparameters that differ, and whose values are not on a marked box."""
    shown = [set(_numbers(composer)) for composer in composers]
    names = dict.fromkeys(name for values in settings for name in values)
    differing = [name for name in names if len({repr(values.get(name)) for values in settings}) > 1]
    return tuple(
        [
            name
            for name in differing
            if any(name in own and str(own[name]) not in numbers for own, numbers in zip(settings, shown, strict=True))
        ]
    )


def _numbers(composer: Composer) -> Iterator[str]:
    """Yield the numbers on marked boxes."""
    for node in composer.marked:
        text = f"{node.count}" if isinstance(node, Stack) else f"{node.title} {node.details}"
        yield from re.findall(r"\d+", text.replace(",", ""))
