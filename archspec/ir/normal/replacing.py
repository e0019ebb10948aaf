"""Replacing indices in elements by other integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from archspec.core.algebra import Expression, substitute, symbols
from archspec.ir.normal.axes import join_divisions
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import OPAQUE, Element
from archspec.ir.normal.rebuilding import rebuild

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
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._remade(element, dict(relevant))
        return found

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
        return join_divisions(self.elements.axes.settled(substitute(value, replaced))) if replaced else value

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
