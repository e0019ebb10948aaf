"""Comparison of two sides by their normal forms, which are over one table of elements."""

from __future__ import annotations

from typing import NamedTuple

from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import Element
from archspec.ir.normal.origins import LocationIndex, ModuleLocation
from archspec.ir.normal.walking import children


class FirstDifference(NamedTuple):
    """The first value of each side that the other one does not compute, with its place; None if there is none.

    `output` is the name of the first output that differs.
    """

    output: str
    a: ModuleLocation | None
    b: ModuleLocation | None


def first_difference(
    arrays: Arrays, names: list[str], a: list[Array], b: list[Array], places: tuple[LocationIndex, LocationIndex]
) -> FirstDifference | None:
    """Return where the outputs of two sides differ; None if they are equal."""
    for name, ours, theirs in zip(names, a, b, strict=True):
        if ours != theirs:
            left, right = _reachable_bases(arrays, ours.element), _reachable_bases(arrays, theirs.element)
            return FirstDifference(name, _first(left, right, places[0]), _first(right, left, places[1]))
    return None


def _reachable_bases(arrays: Arrays, element: Element) -> set[Element]:
    reached, waiting = set[Element](), [element]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += children(arrays.elements.table, current)
    return reached


def _first(here: set[Element], there: set[Element], places: LocationIndex) -> ModuleLocation | None:
    """Return the place of the first base that only this side reaches, although it depends on none such."""
    return next((place for base, place in places.bases.items() if base in here and base not in there), None)
