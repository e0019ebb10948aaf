"""Comparison of two sides by their normal forms, which are over one table of elements."""

from __future__ import annotations

from typing import NamedTuple

from archspec.equivalence.places import Place, Places
from archspec.normal.arrays import Array, Arrays
from archspec.normal.nodes import Element
from archspec.normal.walking import children


class Unequal(NamedTuple):
    """The first value of each side that the other one does not compute, with its place; None if there is none.

    `output` is the name of the first output that differs.
    """

    output: str
    a: Place | None
    b: Place | None


def first_difference(
    arrays: Arrays, names: list[str], a: list[Array], b: list[Array], places: tuple[Places, Places]
) -> Unequal | None:
    """Return where the outputs of two sides differ; None if they are equal."""
    for name, ours, theirs in zip(names, a, b, strict=True):
        if ours != theirs:
            left, right = _reached(arrays, ours.element), _reached(arrays, theirs.element)
            return Unequal(name, _first(left, right, places[0]), _first(right, left, places[1]))
    return None


def _reached(arrays: Arrays, element: Element) -> set[Element]:
    reached, waiting = set[Element](), [element]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += children(arrays.elements.table, current)
    return reached


def _first(here: set[Element], there: set[Element], places: Places) -> Place | None:
    """Return the place of the first base that only this side reaches, although it depends on none such."""
    return next((place for base, place in places.bases.items() if base in here and base not in there), None)
