"""Sums of which a condition selects the terms: a single one, or all of them."""

from __future__ import annotations

from archspec.core.algebra import Expression
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import Element, index_name
from archspec.ir.normal.replacing import IndexSubstitution
from archspec.ir.normal.sums import SumIndices, Summation


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
        """Return what a running total adds up at a place where it has all terms; None for any other element."""
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
