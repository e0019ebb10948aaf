"""Sums of what is different in parts of an axis, as over the axis of a concatenation: a sum for each part.

A sum over axes that are flattened is one over each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from archspec.core.algebra import Dim, Expression
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import Element, index_name
from archspec.ir.normal.replacing import IndexSubstitution
from archspec.ir.normal.walking import divisors

SumIndices: TypeAlias = "Sequence[tuple[Expression, Dim]]"
"""The indices of a sum, with their extents."""


class Summation(NamedTuple):
    """An element, and the indices that it is summed over."""

    body: Element
    over: SumIndices


class _Place(NamedTuple):
    """A place condition about an index of a sum, or about its quotient or remainder: these are last."""

    is_divided: bool
    condition: Element
    at: Expression
    extent: Dim


class SumSplitter:
    """The parts of sums over one table of elements."""

    def __init__(self, elements: Elements, replacing: IndexSubstitution) -> None:
        self.elements = elements
        self.axes = elements.axes
        self._replacing = replacing

    def parts(self, body: Element, over: SumIndices) -> list[Summation]:
        """Return sums whose sum is that of a real, in which its first place condition is decided; none if it has none.

        A sum over an index whose quotient or remainder is in the condition, or that only occurs divided, is one over
        both of these.
        """
        if self.elements.nodes[body].infinite:
            return self._flattened(body, over)
        for place in sorted(set(self._places(body, over))):
            found = self._split(body, over, place)
            if found:
                return found
        return self._flattened(body, over)

    def _flattened(self, body: Element, over: SumIndices) -> list[Summation]:
        """Return the sum over the quotient and the remainder of an index that only occurs divided."""
        sizes = divisors(self.elements.table, body)
        for at, extent in over:
            by = sizes.get(index_name(at), extent)
            if by != extent and extent % by == 0:
                return [self._over_both(body, over, at, extent // by, by)]
        return []

    def _places(self, body: Element, over: SumIndices) -> Iterator[_Place]:
        node = self.elements.nodes[body]
        if node.kind != "where" or node.dtype != "real" or not self.elements.places.is_place(node.parts[0]):
            return
        condition, *sides = node.parts
        names = self.elements.nodes[condition].names
        condition = min(condition, self.elements.negation(condition))
        atoms = _atoms(self.elements.nodes[condition].integer)
        yield from [_Place(at not in atoms, condition, at, extent) for at, extent in over if index_name(at) in names]
        for side in sides:
            yield from self._places(side, over)

    def _split(self, body: Element, over: SumIndices, place: _Place) -> list[Summation]:
        value = self.elements.nodes[place.condition].integer
        if place.is_divided:
            return self._divided(body, over, place, value)
        coefficient = next(c for monomial, c in terms_of(value) if expression(((monomial, 1),)) == place.at)
        least = -(value - place.at) if coefficient == 1 else value + place.at + 1
        if coefficient not in (1, -1) or not self._is_within(least, place.extent):
            return []
        kind = index_name(place.at).partition(".")[0][1:]
        below, above = self.axes.index(f"{kind}l", least), self.axes.index(f"{kind}h", place.extent - least)
        found: list[Summation] = []
        for holds, at, index, extent in (
            (coefficient == -1, below, below, least),
            (coefficient == 1, least + above, above, place.extent - least),
        ):
            inside = self._beside(body, place.condition, holds)
            found.append(self._with(inside, over, place.at, at, [(index, extent)]))
        return found

    def _divided(self, body: Element, over: SumIndices, place: _Place, value: Expression) -> list[Summation]:
        """Return the sum over the quotient and the remainder of an index, if that is what a condition is about."""
        for atom in _atoms(value):
            for monomial, _ in terms_of(atom):
                inner, by = [expression(argument) for argument in monomial[0][0].arguments]
                if inner == place.at and isinstance(by, int) and by > 1 and place.extent % by == 0:
                    return [self._over_both(body, over, place.at, place.extent // by, by)]
        return []

    def _over_both(self, body: Element, over: SumIndices, at: Expression, count: Dim, size: Dim) -> Summation:
        """Return a sum over a quotient and a remainder, of these sizes, in the place of an index."""
        kind = index_name(at).partition(".")[0][1:]
        above, below = self.axes.index(f"{kind}q", count), self.axes.index(f"{kind}m", size)
        return self._with(body, over, at, above * size + below, [(above, count), (below, size)])

    def _with(self, body: Element, over: SumIndices, at: Expression, value: Expression, parts: SumIndices) -> Summation:
        """Return a sum with another integer in the place of an index, and over other indices."""
        rest = [item for item in over if item[0] != at]
        return Summation(self._replacing.element(body, {index_name(at): value}), [*rest, *parts])

    def _is_within(self, value: Expression, extent: Dim) -> bool:
        return self.axes.is_at_least(value, 1) and self.axes.is_at_least(extent - value, 1)

    def _beside(self, body: Element, place: Element, holds: bool) -> Element:
        """Return a real where a place condition holds, or does not, also if others are around it."""
        body = self.elements.places.beside(body, place, holds)
        node = self.elements.nodes[body]
        if node.kind != "where" or node.dtype != "real" or not self.elements.places.is_place(node.parts[0]):
            return body
        condition, *sides = node.parts
        return self.elements.where(condition, *[self._beside(side, place, holds) for side in sides])


def _atoms(value: Expression) -> Sequence[Expression]:
    """Return the products of an integer that are one index, quotient or remainder."""
    monomials = [monomial for monomial, _ in terms_of(value) if len(monomial) == 1 and monomial[0][0].kind != "symbol"]
    return [expression(((monomial, 1),)) for monomial in monomials]
