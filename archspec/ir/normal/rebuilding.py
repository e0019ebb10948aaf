"""Elements made anew of other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from archspec.core.algebra import Expression
from archspec.ir.normal.axes import Axes, Indices
from archspec.ir.normal.nodes import Dtype, Element, ElementNode, NodeTable


class ElementFactory(Protocol):
    """What makes elements: `archspec.ir.normal.elements.Elements`."""

    table: NodeTable
    nodes: list[ElementNode]
    axes: Axes

    def polynomial(self, element: Element) -> Expression: ...
    def integer(self, value: Expression) -> Element: ...
    def real(self, element: Element) -> Element: ...
    def combination(self, parts: Iterable[tuple[float, Element]], constant: float = 0.0) -> Element: ...
    def product(self, parts: Iterable[tuple[Element, float]]) -> Element: ...
    def load(self, base: Element, indices: Indices) -> Element: ...
    def at_least_zero(self, element: Element) -> Element: ...
    def is_zero(self, element: Element) -> Element: ...
    def is_positive(self, element: Element) -> Element: ...
    def negation(self, element: Element) -> Element: ...
    def conjunction(self, parts: Iterable[Element]) -> Element: ...
    def disjunction(self, parts: Iterable[Element]) -> Element: ...
    def where(self, condition: Element, a: Element, b: Element) -> Element: ...
    def extreme(self, kind: Literal["min", "max"], a: Element, b: Element) -> Element: ...
    def apply(self, name: str, parts: Sequence[Element], dtype: Dtype, commutes: bool = False) -> Element: ...


def rebuild(
    e: ElementFactory,
    element: Element,
    inner: Callable[[Element], Element],
    integer: Callable[[Expression], Expression],
) -> Element:
    """Return an element in which functions replace the elements and integers that it is made of. What is loaded from is
    kept.
    """
    node = e.nodes[element]
    match node.kind:
        case "int":
            return e.integer(integer(node.integer))
        case "real":
            return e.real(e.integer(integer(node.integer)))
        case "terms":
            terms, constant = node.terms
            return e.combination([(c, inner(term)) for c, term in terms], constant)
        case "product":
            return e.product([(inner(factor), power) for factor, power in node.factors])
        case "power":
            base, power = node.arguments
            return e.product([(inner(base), power)])
        case "load":
            return e.load(node.base, tuple([integer(value) for value in node.indices]))
        case "ge0" | "eq0":
            value = e.integer(integer(node.integer))
            return e.at_least_zero(value) if node.kind == "ge0" else e.is_zero(value)
        case "apply":
            name, commutes, *own = node.arguments
            parts = [inner(part) for part in own]
            return e.extreme(name, *parts) if name in ("min", "max") else e.apply(name, parts, node.dtype, commutes)
        case _:
            return _rejoined(e, node.kind, [inner(part) for part in node.parts])


def _rejoined(e: ElementFactory, kind: str, parts: list[Element]) -> Element:
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
