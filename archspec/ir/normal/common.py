"""Terms that a real has on all sides of its choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from archspec.ir.normal.elements import Elements
from archspec.ir.normal.magnitudes import HIDING_MAGNITUDE
from archspec.ir.normal.nodes import Element


class CommonTerms:
    """The common terms of reals over one table. Sides that are huge or infinite numbers, which hide what is added to
    them, have any.
    """

    def __init__(self, elements: Elements) -> None:
        self.elements = elements

    def without_index(self, element: Element, name: str) -> dict[Element, float]:
        """Return the terms without an index that all sides have, with their coefficients; the term of a number is 1."""
        elements = self.elements
        found: dict[Element, float] | None = None
        for side in self._sides(element, set()):
            terms, constant = elements.terms(side)
            own = {term: coefficient for coefficient, term in terms if name not in elements.nodes[term].names}
            if constant:
                own[elements.number(1.0)] = constant
            found = own if found is None else {term: c for term, c in found.items() if own.get(term) == c}
        return found or {}

    def removed(self, element: Element, terms: Mapping[Element, float]) -> Element:
        """Return a real without such terms."""
        if not terms or self._hides(element):
            return element
        node = self.elements.nodes[element]
        if node.kind == "where":
            condition, *sides = node.parts
            return self.elements.where(condition, *[self.removed(side, terms) for side in sides])
        return self.elements.combination([(1.0, element), *[(-c, term) for term, c in terms.items()]])

    def _sides(self, element: Element, seen: set[Element]) -> Iterator[Element]:
        if element in seen or self._hides(element):
            return
        seen.add(element)
        node = self.elements.nodes[element]
        if node.kind == "where":
            for side in node.parts[1:]:
                yield from self._sides(side, seen)
        else:
            yield element

    def _hides(self, element: Element) -> bool:
        number = self.elements.as_number(element)
        return number is not None and abs(number) >= HIDING_MAGNITUDE
