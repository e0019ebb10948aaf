"""Magnitudes of reals: what is assumed to be far smaller than the numbers that hide scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from archspec.ir.normal.nodes import Element, NodeTable
from archspec.ir.normal.walking import children

HIDING_MAGNITUDE = 1e30
"""Adding to a number of this magnitude, such as the least one in float32, has no effect but rounding."""


class Magnitudes:
    """The magnitudes of the elements of a table, as far as they can be seen."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[Element, bool] = {}

    def are_moderate(self, elements: Iterable[Element]) -> bool:
        """Whether elements are made of moderate numbers only, as are all inputs and tensors."""
        return all(self._is_moderate(element) for element in elements)

    def are_hidden(self, terms: Sequence[tuple[float, Element]], constant: float, number: float) -> bool:
        """Whether the sum of real terms and two numbers is the second one, which is infinite or huge."""
        if math.isinf(number):
            return all(self._is_hidden(coefficient, term, number) for coefficient, term in terms)
        return abs(number) >= HIDING_MAGNITUDE > abs(constant) and self.are_moderate([term for _, term in terms])

    def _is_hidden(self, coefficient: float, term: Element, infinite: float) -> bool:
        """Whether a term is finite, or hidden by the same infinite number, so that the sum with it is that number."""
        node = self._table.nodes[term]
        if not node.infinite or node.kind != "where":
            return not node.infinite
        other = self._table.nodes[node.parts[2]]
        return other.kind == "number" and coefficient * other.number == infinite

    def _is_moderate(self, element: Element) -> bool:
        if element not in self._known:
            self._known[element] = self._found(element)
        return self._known[element]

    def _found(self, element: Element) -> bool:
        node = self._table.nodes[element]
        match node.kind:
            case "number":
                return abs(node.number) < HIDING_MAGNITUDE
            case "shares":
                return True
            case "terms":
                terms, constant = node.terms
                numbers = [constant, *[coefficient for coefficient, _ in terms]]
                if not all(abs(number) < HIDING_MAGNITUDE for number in numbers):
                    return False
            case _:
                pass
        return self.are_moderate(children(self._table, element))
