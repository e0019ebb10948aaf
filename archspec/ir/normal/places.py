"""Conditions that divide an axis in two, like the parts of a concatenation: what is computed on both sides of one."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.core.algebra.polynomial import expression, terms_of
from archspec.core.algebra.terms import Monomial
from archspec.ir.normal.discrete import Discrete
from archspec.ir.normal.nodes import Element, index_name


class PlaceConditions:
    """The places in elements over one table."""

    def __init__(self, discrete: Discrete) -> None:
        self._discrete = discrete
        self.nodes = discrete.nodes

    def is_place(self, condition: Element) -> bool:
        """Whether a condition divides an axis in two, like the parts of a concatenation."""
        node = self.nodes[condition]
        terms = terms_of(node.integer) if node.kind == "ge0" else ()
        indices = [monomial for monomial, _ in terms if any(atom.kind != "symbol" for atom, _ in monomial)]
        return len(indices) == 1 and _is_index(indices[0])

    def are_places(self, condition: Element) -> bool:
        """Whether a condition is made of several place conditions, by `and` and `or`."""
        node = self.nodes[condition]
        parts = node.parts if node.kind in ("and", "or") else ()
        return bool(parts) and all(self.is_place(part) or self.are_places(part) for part in parts)

    def first_in(self, parts: Iterable[Element]) -> Element | None:
        """Return the first of the places that reals are divided at; None if they are not. What is computed from divided
        reals is divided at the same places.
        """
        found: Element | None = None
        for part in parts:
            node = self.nodes[part]
            if node.kind == "where" and node.dtype == "real":
                condition = node.parts[0]
                if self.is_place(condition):
                    place = min(condition, self._discrete.negation(condition))
                    found = place if found is None else min(found, place)
        return found

    def beside(self, part: Element, place: Element, holds: bool) -> Element:
        """Return what a real is where a place condition holds, or does not."""
        node = self.nodes[part]
        if node.kind == "where" and node.dtype == "real":
            condition, a, b = node.parts
            if self.is_place(condition):
                decided = self._decided(condition, place, holds)
                return part if decided is None else self.beside(a if decided else b, place, holds)
        return part

    def _decided(self, condition: Element, place: Element, holds: bool) -> bool | None:
        """Whether a place condition holds where another one does, or does not; None if that does not decide it."""
        value, other = (self.nodes[item].integer for item in (condition, place))
        least = other if holds else -other - 1  # which is 0 or more
        if self._discrete.axes.is_at_least(value - least, 0):
            return True
        return False if self._discrete.axes.is_at_least(-value - 1 - least, 0) else None


def _is_index(monomial: Monomial) -> bool:
    """Whether a product is the index of an axis, or its quotient or remainder: an index where the axis is divided."""
    if len(monomial) != 1 or monomial[0][1] != 1:
        return False
    atom = monomial[0][0]
    if atom.kind in ("//", "%"):
        index, by = [expression(argument) for argument in atom.arguments]
        return isinstance(by, int) and "." in index_name(index)
    return atom.kind == "index" and "." in atom.text
