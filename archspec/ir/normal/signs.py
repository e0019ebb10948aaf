"""Signs of reals: what is never negative, or always positive, for all finite values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from archspec.ir.normal.axes import Axes
from archspec.ir.normal.nodes import Element, NodeTable


class Signs:
    """The signs of the reals of a table, as far as they can be seen."""

    def __init__(self, table: NodeTable, axes: Axes) -> None:
        self.nodes = table.nodes
        self.axes = axes
        self._known: dict[Element, int | None] = {}

    def is_nonnegative(self, element: Element) -> bool:
        """Whether a real is never negative."""
        return self._least(element) is not None

    def is_positive(self, element: Element) -> bool:
        """Whether a real is finite and above 0."""
        return self._least(element) == 1

    def _least(self, element: Element) -> int | None:
        """Return 1 for a positive real, 0 for one that is never negative, and None for any other."""
        if element not in self._known:
            self._known[element] = self._found(element)
        return self._known[element]

    def _found(self, element: Element) -> int | None:
        node = self.nodes[element]
        if node.infinite:
            return None
        match node.kind:
            case "number":
                return _of_number(node.number)
            case "real":
                return next((least for least in (1, 0) if self.axes.is_at_least(node.integer, least)), None)
            case "terms":
                terms, constant = node.terms
                parts = [self._least(term) if coefficient > 0 else None for coefficient, term in terms]
                return _combined([*parts, _of_number(constant)], max)
            case "product":
                return _combined([self._of_factor(factor, power) for factor, power in node.factors], min)
            case "where":
                return _combined([self._least(part) for part in node.parts[1:]], min)
            case "power":
                return 0
            case "apply" if node.arguments[0] == "abs":
                return 0
            case "load":
                base = self.nodes[node.base]
                body = base.parts[0] if base.kind in ("total", "largest") else None
                return 0 if base.kind == "shares" or (body is not None and self.is_nonnegative(body)) else None
            case _:
                return None

    def _of_factor(self, factor: Element, power: float) -> int | None:
        least = self._least(factor)
        return 0 if least is None and power % 2 == 0 else least


def _of_number(value: float) -> int | None:
    return int(value > 0) if value >= 0 else None


def _combined(parts: list[int | None], choose: Callable[[Iterable[int]], int]) -> int | None:
    known = [part for part in parts if part is not None]
    return choose(known) if len(known) == len(parts) else None
