"""Sums of what is different in parts of an axis, as over the axis of a concatenation: a sum for each part.

A sum over axes that are flattened is one over each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from archspec.core.algebra import Dim, Expression, substitute, symbols
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.core.record import Record
from archspec.ir.normal.axes import join_divisions
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import OPAQUE, Element, divisors, index_name
from archspec.ir.normal.rebuilding import rebuild

# Replacing indices in elements by other integers.

Values: TypeAlias = Mapping[str, Expression]


class IndexSubstitution:
    """Replaces indices in the elements of a table; each result is kept."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self._known: dict[tuple[Element, tuple[tuple[str, Expression], ...]], Element] = {}

    def element(self, element: Element, values: Values) -> Element:
        """Return an element with other integers in the place of indices."""
        node = self.elements.nodes[element]
        relevant = tuple([(name, values[name]) for name in sorted(node.names) if name in values])
        if not relevant:
            return element
        key = element, relevant
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = self._remade(element, dict(relevant))
        return result

    def integer(self, value: Expression, values: Values) -> Expression:
        """Return an integer with other integers in the place of indices."""
        replaced: dict[str, Expression] = {}
        for name in sorted(symbols(value), key=_by_number):
            if name in values:
                replaced[name] = values[name]
            elif name.startswith(OPAQUE):
                inner = int(name[2:])
                changed = self.element(inner, values)
                if changed != inner:
                    replaced[name] = self.elements.polynomial(changed)
        return join_divisions(self.elements.axes.simplify(substitute(value, replaced))) if replaced else value

    def _remade(self, element: Element, values: Values) -> Element:
        return rebuild(
            self.elements,
            element,
            lambda part: self.element(part, values),
            lambda value: self.integer(value, values),
        )


def _by_number(name: str) -> tuple[int, str]:
    """Return a key by which elements are in the order of their numbers: as they are made, as terms are sorted."""
    return len(name), name


SumIndices: TypeAlias = "Sequence[tuple[Expression, Dim]]"
"""The indices of a sum, with their extents."""


class Summation(Record):
    """An element, and the indices that it is summed over."""

    body: Element
    over: SumIndices


class _Place(Record):
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
            summands = self._split(body, over, place)
            if summands:
                return summands
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
        summands: list[Summation] = []
        for holds, at, index, extent in (
            (coefficient == -1, below, below, least),
            (coefficient == 1, least + above, above, place.extent - least),
        ):
            inside = self._beside(body, place.condition, holds)
            summands.append(self._with(inside, over, place.at, at, [(index, extent)]))
        return summands

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
        others = [item for item in over if item[0] != at]
        return Summation(self._replacing.element(body, {index_name(at): value}), [*others, *parts])

    def _is_within(self, value: Expression, extent: Dim) -> bool:
        return self.axes.is_at_least(value, 1) and self.axes.is_at_least(extent - value, 1)

    def _beside(self, body: Element, place: Element, holds: bool) -> Element:
        """Return a real where a place condition holds, or does not, also if others are around it."""
        body = self.elements.places.restrict(body, place, holds)
        node = self.elements.nodes[body]
        if node.kind != "where" or node.dtype != "real" or not self.elements.places.is_place(node.parts[0]):
            return body
        condition, *sides = node.parts
        return self.elements.where(condition, *[self._beside(side, place, holds) for side in sides])


def _atoms(value: Expression) -> Sequence[Expression]:
    """Return the products of an integer that are one index, quotient or remainder."""
    monomials = [monomial for monomial, _ in terms_of(value) if len(monomial) == 1 and monomial[0][0].kind != "symbol"]
    return [expression(((monomial, 1),)) for monomial in monomials]


# Sums of which a condition selects the terms: a single one, or all of them.


class SelectionSums:
    """Selections in the sums over one table of elements."""

    def __init__(self, elements: Elements, replacing: IndexSubstitution) -> None:
        self.elements = elements
        self.axes = elements.axes
        self._replacing = replacing

    def selected(self, body: Element, over: SumIndices) -> Summation | None:
        """Return the sum of what is not 0 where an index has one value alone, without this index; None for others."""
        elements = self.elements
        if elements.nodes[body].kind != "where":
            return None
        condition, value, other = elements.nodes[body].parts
        if elements.as_number(other) != 0:
            return None
        node = elements.nodes[condition]
        for part in node.parts if node.kind == "and" else (condition,):
            for index, extent in over:
                at = self._value(part, index)
                if at is not None:
                    inside = [elements.at_least_zero(elements.integer(side)) for side in (at, extent - 1 - at)]
                    condition, value = [
                        self._replacing.element(item, {index_name(index): at}) for item in (condition, value)
                    ]
                    chosen = elements.where(elements.conjunction([*inside, condition]), value, other)
                    return Summation(chosen, [item for item in over if item[0] != index])
        return None

    def _value(self, condition: Element, index: Expression) -> Expression | None:
        """Return the only value of an index for which a condition may hold; None if that is not seen."""
        node = self.elements.nodes[condition]
        if node.kind != "eq0":
            return None
        for monomial, coefficient in terms_of(node.integer):
            if coefficient in (1, -1) and expression(((monomial, 1),)) == index:
                at = index - int(coefficient) * node.integer
                return None if index_name(index) in self.elements.table.names_in(at) else at
        return None

    def whole(self, element: Element) -> Summation | None:
        """Return the full sum if a running total is read at its last position; None otherwise."""
        elements = self.elements
        node = elements.nodes[element]
        if node.kind != "load" or elements.nodes[node.base].kind != "total":
            return None
        inside: Element = elements.nodes[node.base].arguments[0]
        body = elements.nodes[inside]
        if body.kind != "where" or elements.nodes[body.parts[0]].kind != "ge0":
            return None
        values: dict[str, Expression] = {}
        over: list[tuple[Expression, Expression]] = []
        for name in sorted(body.names):
            kind = name.partition(".")[0]
            if kind.startswith("#i"):
                values[name] = node.indices[int(kind[2:])]
            else:
                extent = self.axes.extent(name)
                values[name] = self.axes.index(f"u{kind[2:]}", extent)
                over.append((values[name], extent))
        if self._replacing.element(body.parts[0], values) != elements.true:
            return None
        return Summation(self._replacing.element(body.parts[1], values), over)
