"""Decisions of a condition about the sides of a choice: which of several integers is the largest or smallest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeAlias

from archspec.core.algebra import Atom, Expression, Polynomial, dim_max, dim_min
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.core.algebra.terms import Monomial
from archspec.ir.normal.axes import Axes, join_divisions
from archspec.ir.normal.discrete import Discrete
from archspec.ir.normal.nodes import OPAQUE, Element, NodeTable, children, index_name, is_base, single
from archspec.ir.normal.rebuilding import ElementFactory, rebuild

# Magnitudes of reals: what is assumed to be far smaller than the numbers that hide scores.

HIDING_MAGNITUDE = 1e30
"""Adding a moderate number to one of this magnitude, such as the lowest float32, is assumed to have no effect."""


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


# Conditions that divide an axis in two, like the parts of a concatenation: what is computed on both sides of one.


class PlaceConditions:
    """The places in elements over one table."""

    def __init__(self, discrete: Discrete) -> None:
        self._discrete = discrete
        self.nodes = discrete.nodes

    def is_place(self, condition: Element) -> bool:
        """Whether a condition divides an axis in two, like the parts of a concatenation."""
        node = self.nodes[condition]
        terms = terms_of(node.integer) if node.kind == "ge0" else ()
        indices = [monomial for monomial, _ in terms if any(atom.kind != "symbol" for atom, _ in monomial)]
        return len(indices) == 1 and _is_index(indices[0])

    def are_places(self, condition: Element) -> bool:
        """Whether a condition is made of several place conditions, by `and` and `or`."""
        node = self.nodes[condition]
        parts = node.parts if node.kind in ("and", "or") else ()
        return bool(parts) and all(self.is_place(part) or self.are_places(part) for part in parts)

    def first_in(self, parts: Iterable[Element]) -> Element | None:
        """Return the first of the places that reals are divided at; None if they are not. What is computed from divided
        reals is divided at the same places.
        """
        first: Element | None = None
        for part in parts:
            node = self.nodes[part]
            if node.kind == "where" and node.dtype == "real":
                condition = node.parts[0]
                if self.is_place(condition):
                    place = min(condition, self._discrete.negation(condition))
                    first = place if first is None else min(first, place)
        return first

    def restrict(self, part: Element, place: Element, holds: bool) -> Element:
        """Return what a real is where a place condition holds, or does not."""
        node = self.nodes[part]
        if node.kind == "where" and node.dtype == "real":
            condition, a, b = node.parts
            if self.is_place(condition):
                decided = self._decided(condition, place, holds)
                return part if decided is None else self.restrict(a if decided else b, place, holds)
        return part

    def _decided(self, condition: Element, place: Element, holds: bool) -> bool | None:
        """Whether a place condition holds where another one does, or does not; None if that does not decide it."""
        value, other = (self.nodes[item].integer for item in (condition, place))
        least = other if holds else -other - 1  # which is 0 or more
        if self._discrete.axes.is_at_least(value - least, 0):
            return True
        return False if self._discrete.axes.is_at_least(-value - 1 - least, 0) else None


def _is_index(monomial: Monomial) -> bool:
    """Whether a product is the index of an axis, or its quotient or remainder: an index where the axis is divided."""
    if len(monomial) != 1 or monomial[0][1] != 1:
        return False
    atom = monomial[0][0]
    if atom.kind in ("//", "%"):
        index, by = [expression(argument) for argument in atom.arguments]
        return isinstance(by, int) and "." in index_name(index)
    return atom.kind == "index" and "." in atom.text


# Signs of reals: what is never negative, or always positive, for all finite values.


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
    present = [part for part in parts if part is not None]
    return choose(present) if len(present) == len(parts) else None


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
        """Simplify an element under the assumption that a condition is true."""
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
        has_choice = self._chooses.get(element)
        if has_choice is None:
            table = self.elements.table
            node = self.elements.nodes[element]
            own = node.arguments[1:] if node.kind == "load" else node.arguments[:1]
            has_choice = self._chooses[element] = any(
                isinstance(value, Polynomial) and _chooses(value) for value in own
            ) or any(self._has_choice(part) for part in children(table, element) if not is_base(table, part))
        return has_choice

    def _element(self, element: Element, facts: Facts) -> Element:
        if not facts or not self._has_choice(element):
            return element
        key = element, facts
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = rebuild(
                self.elements,
                element,
                lambda part: self._element(part, facts),
                lambda value: self._integer(value, facts),
            )
        return result

    def _integer(self, value: Expression, facts: Facts) -> Expression:
        total: Expression = 0
        for monomial, coefficient in terms_of(value):
            if not isinstance(coefficient, int):
                return value
            part: Expression = coefficient
            for atom, power in monomial:
                part = part * self._atom(atom, facts) ** power
            total = total + part
        return join_divisions(total)

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
