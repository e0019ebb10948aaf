"""Replacing indices in elements by other integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from archspec.algebra import Expression, substitute, symbols
from archspec.normal.axes import joined
from archspec.normal.elements import Elements
from archspec.normal.nodes import OPAQUE, Element, Node

Values: TypeAlias = Mapping[str, Expression]


class Replacing:
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
            found = self._known[key] = self._remade(node, dict(relevant))
        return found

    def integer(self, value: Expression, values: Values) -> Expression:
        """Return an integer with other integers in the place of indices."""
        replaced: dict[str, Expression] = {}
        for name in symbols(value):
            if name in values:
                replaced[name] = values[name]
            elif name.startswith(OPAQUE):
                inner = int(name[2:])
                changed = self.element(inner, values)
                if changed != inner:
                    replaced[name] = self.elements.polynomial(changed)
        return joined(self.elements.axes.settled(substitute(value, replaced))) if replaced else value

    def _remade(self, node: Node, values: Values) -> Element:
        e = self.elements
        match node.kind:
            case "int":
                return e.integer(self.integer(node.integer, values))
            case "real":
                return e.real(e.integer(self.integer(node.integer, values)))
            case "terms":
                terms, constant = node.terms
                return e.combination([(c, self.element(term, values)) for c, term in terms], constant)
            case "product":
                return e.product([(self.element(factor, values), power) for factor, power in node.factors])
            case "power":
                base, power = node.arguments
                return e.product([(self.element(base, values), power)])
            case "load":
                return e.load(node.base, tuple([self.integer(value, values) for value in node.indices]))
            case "ge0" | "eq0":
                value = e.integer(self.integer(node.integer, values))
                return e.at_least_zero(value) if node.kind == "ge0" else e.is_zero(value)
            case "apply":
                name, commutes, *own = node.arguments
                parts = [self.element(part, values) for part in own]
                return e.extreme(name, *parts) if name in ("min", "max") else e.apply(name, parts, node.dtype, commutes)
            case _:
                return self._rejoined(node.kind, [self.element(part, values) for part in node.parts])

    def _rejoined(self, kind: str, parts: list[Element]) -> Element:
        e = self.elements
        match kind:
            case "where":
                return e.where(*parts)
            case "and":
                return e.conjunction(parts)
            case "or":
                return e.disjunction(parts)
            case "not":
                return e.negation(parts[0])
            case "positive":
                return e.is_positive(parts[0])
            case "zero":
                return e.is_zero(parts[0])
            case _:
                raise AssertionError(kind)
