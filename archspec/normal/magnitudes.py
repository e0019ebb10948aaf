"""Magnitudes of reals: what is assumed to be far smaller than the numbers that hide scores."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.normal.nodes import Element, NodeTable
from archspec.normal.walking import children

HUGE = 1e30
"""Adding to a number of this magnitude, such as the least one in float32, has no effect but rounding."""


class Magnitudes:
    """The magnitudes of the elements of a table, as far as they can be seen."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[Element, bool] = {}

    def are_moderate(self, elements: Iterable[Element]) -> bool:
        """Whether elements are made of moderate numbers only, as are all inputs and tensors."""
        return all(self._is_moderate(element) for element in elements)

    def _is_moderate(self, element: Element) -> bool:
        if element not in self._known:
            self._known[element] = self._found(element)
        return self._known[element]

    def _found(self, element: Element) -> bool:
        node = self._table.nodes[element]
        match node.kind:
            case "number":
                return abs(node.number) < HUGE
            case "shares":
                return True
            case "terms":
                terms, constant = node.terms
                numbers = [constant, *[coefficient for coefficient, _ in terms]]
                if not all(abs(number) < HUGE for number in numbers):
                    return False
            case _:
                pass
        return self.are_moderate(children(self._table, element))
