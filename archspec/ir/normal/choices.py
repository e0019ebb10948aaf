"""Decisions of a condition about the sides of a choice: which of several integers is the largest or smallest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from archspec.core.algebra import Atom, Expression, Polynomial, dim_max, dim_min
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.axes import join_divisions
from archspec.ir.normal.nodes import OPAQUE, Element, single
from archspec.ir.normal.rebuilding import ElementFactory, rebuild
from archspec.ir.normal.walking import children, is_base

Fact: TypeAlias = tuple[Expression, ...]
"""Integers of which at least one is 0 or more."""

Facts: TypeAlias = tuple[Fact, ...]


class Contexts:
    """Decides what holds on one side of a choice."""

    def __init__(self, elements: ElementFactory) -> None:
        self.elements = elements
        self._known: dict[tuple[Element, Facts], Element] = {}
        self._chooses: dict[Element, bool] = {}

    def simplify_under(self, element: Element, condition: Element) -> Element:
        """Return what an element is where a condition is true."""
        return self._element(element, self._facts(condition)) if self._has_choice(element) else element

    def _facts(self, condition: Element) -> Facts:
        node = self.elements.nodes[condition]
        parts = node.parts if node.kind in ("and", "or") else (condition,)
        if node.kind != "or":
            return tuple([(self.elements.nodes[part].integer,) for part in parts if self._is_order(part)])
        return (
            (tuple([self.elements.nodes[part].integer for part in parts]),) if all(map(self._is_order, parts)) else ()
        )

    def _is_order(self, condition: Element) -> bool:
        return self.elements.nodes[condition].kind == "ge0"

    def _has_choice(self, element: Element) -> bool:
        """Whether a largest or smallest integer is in an element, outside of what is loaded."""
        found = self._chooses.get(element)
        if found is None:
            table = self.elements.table
            node = self.elements.nodes[element]
            own = node.arguments[1:] if node.kind == "load" else node.arguments[:1]
            found = self._chooses[element] = any(
                isinstance(value, Polynomial) and _chooses(value) for value in own
            ) or any(self._has_choice(part) for part in children(table, element) if not is_base(table, part))
        return found

    def _element(self, element: Element, facts: Facts) -> Element:
        if not facts or not self._has_choice(element):
            return element
        key = element, facts
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = rebuild(
                self.elements,
                element,
                lambda part: self._element(part, facts),
                lambda value: self._integer(value, facts),
            )
        return found

    def _integer(self, value: Expression, facts: Facts) -> Expression:
        found: Expression = 0
        for monomial, coefficient in terms_of(value):
            if not isinstance(coefficient, int):
                return value
            part: Expression = coefficient
            for atom, power in monomial:
                part = part * self._atom(atom, facts) ** power
            found = found + part
        return join_divisions(found)

    def _atom(self, atom: Atom, facts: Facts) -> Expression:
        arguments = [self._integer(expression(argument), facts) for argument in atom.arguments]
        match atom.kind:
            case "max" | "min":
                kept = self._kept(arguments, 1 if atom.kind == "max" else -1, facts)
                return reduce(dim_max if atom.kind == "max" else dim_min, kept)
            case "//":
                return arguments[0] // arguments[1]
            case "%":
                return arguments[0] % arguments[1]
            case "index" if atom.text.startswith(OPAQUE):
                return self.elements.polynomial(self._element(int(atom.text[2:]), facts))
            case _:
                return single(atom)

    def _kept(self, values: list[Expression], sign: int, facts: Facts) -> list[Expression]:
        """Return the values that may be the largest (with -1: the smallest) of all."""
        kept = dict(enumerate(values))
        for place, value in enumerate(values):
            others = [other for at, other in kept.items() if at != place]
            if any(all(self._is_beyond(others, value, sign, least) for least in fact) for fact in facts):
                del kept[place]
        return [*kept.values()]

    def _is_beyond(self, others: Sequence[Expression], value: Expression, sign: int, least: Expression) -> bool:
        """Whether one of several integers is at least another one (with -1: at most) where `least` is 0 or more."""
        return any(self.elements.axes.is_at_least(sign * (other - value) - least, 0) for other in others)


def _chooses(value: Polynomial) -> bool:
    return any(
        atom.kind in ("max", "min")
        or any(_chooses(part) for part in map(expression, atom.arguments) if isinstance(part, Polynomial))
        for monomial, _ in value.terms
        for atom, _ in monomial
    )
