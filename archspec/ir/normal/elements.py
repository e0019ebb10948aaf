"""Elements: one element of a tensor as an expression of its indices, in a normal form.

What the methods of `Elements` make is in normal form:

- Integers are polynomials (`archspec.core.algebra`) in indices, and in integers that have no form of their own.
- Booleans are `x >= 0` and `x == 0` of integers, `x > 0` and `x == 0` of reals, and sets of these under `and` and `or`.
  What the sizes of the axes decide is decided.
- Reals are sums of terms with coefficients, and products of factors with powers, both without an order. Numbers are
  multiplied out over sums. Numbers that differ in rounding alone are the same.
- A load is an element of a base: an input, a stored tensor, or the result of a reduction or of an operation that has no
  other form.

Each rule is an identity for all finite values, up to rounding. Infinite numbers, which hide scores from a softmax, are
added to finite values only; the other rules leave them alone. Numbers beyond `HUGE` hide scores as well: adding a value
to one does not change it, but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from archspec.core.algebra import Atom, Expression, dim_max, dim_min, substitute
from archspec.core.algebra.polynomial import terms_of
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.choices import HIDING_MAGNITUDE, Contexts, Magnitudes, PlaceConditions, Signs
from archspec.ir.normal.discrete import Discrete
from archspec.ir.normal.nodes import (
    MAX_NODES,
    NO_NAMES,
    OPAQUE,
    Dtype,
    Element,
    NumberTable,
    index_name,
    power_of,
    single,
)


class Elements(Discrete):
    """Elements over one table, of at most so many expressions.

    All methods raise ArithmeticError: OverflowError for what is too large, and ZeroDivisionError for an integer that is
    divided by 0.
    """

    def __init__(self, most: int = MAX_NODES) -> None:
        super().__init__(most)
        self.signs = Signs(self.table, self.axes)
        self.magnitudes = Magnitudes(self.table)
        self._numbers = NumberTable()
        self.places = PlaceConditions(self)
        self._contexts = Contexts(self)
        self._chosen: dict[tuple[Element, Element, Element], Element] = {}

    # Reals ------------------------------------------------------------------------------------------------------------

    def number(self, value: float) -> Element:
        """Return a real number."""
        exact = self._numbers.representative(value)
        return self.table.make("number", (exact,), "real", exact, infinite=not math.isfinite(exact))

    def real(self, element: Element) -> Element:
        """Return an element as a real."""
        node = self.nodes[element]
        if node.dtype == "real":
            return element
        if node.dtype == "bool":
            return self.where(element, self.number(1.0), self.number(0.0))
        terms: list[tuple[float, Element]] = []
        for monomial, coefficient in terms_of(self.polynomial(element)):
            factors = [(self._real_atom(atom), float(power)) for atom, power in monomial]
            terms.append((float(coefficient), self.product(factors)))
        return self.combination(terms)

    def _real_atom(self, atom: Atom) -> Element:
        if atom.kind == "index" and atom.text.startswith(OPAQUE) and self.nodes[int(atom.text[2:])].dtype == "bool":
            return self.real(int(atom.text[2:]))
        return self._of_integer("real", single(atom), "real")

    def as_number(self, element: Element) -> float | None:
        """Return the number that an element is; None if it depends on anything."""
        node = self.nodes[self.real(element)]
        return node.number if node.kind == "number" else None

    def as_integer(self, element: Element) -> Expression | None:
        """Return the integer that a real was made of; None if it was not."""
        terms, constant = self.terms(element)
        if not constant.is_integer():
            return None
        total: Expression = int(constant)
        for coefficient, term in terms:
            node = self.nodes[term]
            if node.kind != "real" or not coefficient.is_integer():
                return None
            total = total + int(coefficient) * node.integer
        return total

    def combination(self, parts: Iterable[tuple[float, Element]], constant: float = 0.0) -> Element:
        """Return the sum of reals with coefficients."""
        parts = list(parts)
        place = self.places.first_in([part for _, part in parts])
        if place is not None:
            sides = [[(c, self.places.restrict(part, place, side)) for c, part in parts] for side in (True, False)]
            return self.where(place, *[self.combination(side, constant) for side in sides])
        coefficients: dict[Element, float] = {}
        for coefficient, part in parts:
            terms, number = self.terms(part)
            constant += coefficient * number if number else 0.0  # the coefficient may be infinite
            for own, term in terms:
                coefficients[term] = coefficients.get(term, 0.0) + coefficient * own
        for term in [term for term, coefficient in coefficients.items() if not coefficient]:
            del coefficients[term]
            if self.nodes[term].infinite:
                coefficients[self._nothing_of(term)] = 1.0
        constant = self._numbers.representative(constant)
        if not coefficients:
            return self.number(constant)
        terms = tuple([(self._numbers.representative(coefficients[term]), term) for term in sorted(coefficients)])
        hidden = self._of_hidden(terms, constant)
        if hidden is not None:
            return hidden
        if len(terms) == 1 and terms[0][0] == 1.0 and not constant:
            return terms[0][1]
        blind = tuple(sorted([(coefficient, self.nodes[term].blind) for coefficient, term in terms]))
        infinite = not all(math.isfinite(number) for number in (constant, *coefficients.values()))
        members = [term for _, term in terms]
        return self.table.make("terms", (terms, constant), "real", (blind, constant), members, infinite=infinite)

    def _nothing_of(self, element: Element) -> Element:
        """Return 0 times an element with infinite numbers in it, which is not 0 where it is infinite."""
        return self.apply("mul", (self.number(0.0), element), "real")

    def _of_hidden(self, terms: Sequence[tuple[float, Element]], constant: float) -> Element | None:
        """Return a sum whose terms may be hidden by an infinite or a huge number; None if none is."""
        for coefficient, term in terms:
            node = self.nodes[term]
            if node.kind != "where" or not math.isfinite(constant):
                continue
            test, a, b = node.parts
            for shown, value, other in ((test, a, b), (self.negation(test), b, a)):
                number = self.as_number(other)
                others = [(own, part) for own, part in terms if part != term]
                if number is not None and self.magnitudes.are_hidden(others, constant, coefficient * number):
                    total = self.combination([*others, (coefficient, value)], constant)
                    return self.where(shown, total, self.number(coefficient * number))
        return None

    def terms(self, element: Element) -> tuple[tuple[tuple[float, Element], ...], float]:
        """Return the terms of a real with their coefficients, and the number that is added."""
        node = self.nodes[element]
        if node.kind == "number":
            return (), node.number
        if node.kind == "terms":
            return node.terms
        return ((1.0, element),), 0.0

    def product(self, parts: Iterable[tuple[Element, float]]) -> Element:
        """Return the product of powers of reals.

        Positive and negative powers of the same factor are only joined where it cannot be 0.
        """
        parts = list(parts)
        place = self.places.first_in([part for part, _ in parts])
        if place is not None:
            sides = [
                [(self.places.restrict(part, place, side), power) for part, power in parts] for side in (True, False)
            ]
            return self.where(place, *[self.product(side) for side in sides])
        coefficient = 1.0
        powers: dict[tuple[Element, bool], float] = {}
        for part, power in parts:
            number, factors = self.factors(part, power)
            coefficient *= number
            for factor, own in factors:
                key = factor, own < 0 and not self.signs.is_positive(factor)
                powers[key] = powers.get(key, 0.0) + own
        factors = tuple([(factor, power) for (factor, _), power in sorted(powers.items()) if power])
        if any(self.nodes[factor].kind == "product" and power.is_integer() for factor, power in factors):
            return self.product([(self.number(coefficient), 1.0), *factors])
        if not factors:
            return self.number(coefficient)
        if not coefficient:
            distributed = self.product(factors)
            return self._nothing_of(distributed) if self.nodes[distributed].infinite else self.number(0.0)
        if len(factors) == 1 and factors[0][1] == 1.0:
            return self.combination([(coefficient, factors[0][0])])
        blind = tuple(sorted([(self.nodes[factor].blind, power) for factor, power in factors]))
        product = self.table.make("product", (factors,), "real", blind, [factor for factor, _ in factors])
        return self.combination([(coefficient, product)])

    def factors(self, element: Element, power: float = 1.0) -> tuple[float, list[tuple[Element, float]]]:
        """Return the coefficient and the factors of a power of a real."""
        terms, constant = self.terms(element)
        if not terms:
            return power_of(constant, power), []
        scale = self._leading(terms, constant)
        if not math.isfinite(scale) or (scale < 0 and not power.is_integer()):
            return 1.0, [self._power(element, power)]
        if scale == 1.0:
            base = element
        elif len(terms) == 1 and not constant:
            base = terms[0][1]
        else:
            base = self.combination([(1 / scale, element)])
        coefficient = power_of(scale, power)
        node = self.nodes[base]
        if node.kind == "product":
            inner = node.factors
            if power.is_integer() or all(self.signs.is_nonnegative(factor) for factor, _ in inner):
                return coefficient, [(factor, own * power) for factor, own in inner]
        return coefficient, [self._power(base, power)]

    def _leading(self, terms: Sequence[tuple[float, Element]], constant: float) -> float:
        """Return the coefficient that is 1 where a sum is a factor: the same for a sum and its multiples.

        The choice does not depend on names of indices, unless only these distinguish a sum from its opposite.
        """
        if len(terms) == 1:
            return terms[0][0]
        alike: dict[int, list[float]] = {}
        for coefficient, term in terms:
            alike.setdefault(self.nodes[term].blind, []).append(coefficient)
        for _, coefficients in sorted(alike.items()):
            above, below = sorted(coefficients), sorted([-coefficient for coefficient in coefficients])
            if above != below:
                largest = max(map(abs, above))
                return largest if above > below else -largest
        largest = max([abs(coefficient) for coefficient, _ in terms])
        if constant:
            return math.copysign(largest, constant)
        return next(coefficient for coefficient, _ in terms if abs(coefficient) == largest)

    def _power(self, base: Element, power: float) -> tuple[Element, float]:
        """Return a factor and its power. A root of what may be negative is a factor of its own: its square is the base
        only where that is not negative.
        """
        if power.is_integer() or self.signs.is_nonnegative(base):
            return base, power
        root, times = (0.5, 2 * power) if (2 * power).is_integer() else (abs(power), math.copysign(1.0, power))
        return self.table.make("power", (base, root), "real", (self.nodes[base].blind, root), [base]), times

    # Booleans ---------------------------------------------------------------------------------------------------------

    def at_least_zero(self, element: Element) -> Element:
        """Return whether a number is 0 or more."""
        if self.dtype(element) == "real":
            return self.negation(self.is_positive(self.combination([(-1.0, element)])))
        return super().at_least_zero(element)

    def is_positive(self, element: Element) -> Element:
        """Return whether a real is above 0."""
        terms, constant = self.terms(element)
        decided = self._decided(terms, constant, lambda number: number > 0)
        if decided is not None:
            return decided
        scaled = self._scaled(element, abs(self._leading(terms, constant)))
        return self.table.make("positive", (scaled,), "bool", self.nodes[scaled].blind, [scaled])

    def is_zero(self, element: Element) -> Element:
        """Return whether a number is 0."""
        if self.dtype(element) == "real":
            terms, constant = self.terms(element)
            decided = self._decided(terms, constant, lambda number: number == 0)
            if decided is not None:
                return decided
            scaled = self._scaled(element, self._leading(terms, constant))
            return self.table.make("zero", (scaled,), "bool", self.nodes[scaled].blind, [scaled])
        node = self.nodes[element]
        if node.kind == "where" and node.dtype == "int":
            sides = [self.polynomial(side) for side in node.parts[1:]]
            if all(isinstance(side, int) for side in sides):
                return self.where(node.parts[0], *[self.boolean(side == 0) for side in sides])
        return super().is_zero(element)

    def _decided(
        self, terms: Sequence[tuple[float, Element]], constant: float, test: Callable[[float], bool]
    ) -> Element | None:
        """Return whether a sum that is a number, or a choice of two, passes a test; None for any other."""
        if not terms:
            return self.boolean(test(constant))
        (coefficient, term), *others = terms
        if others or self.nodes[term].kind != "where":
            return None
        condition, *sides = self.nodes[term].parts
        a, b = [self.as_number(side) for side in sides]
        if a is None or b is None:
            return None
        return self.where(condition, *[self.boolean(test(coefficient * side + constant)) for side in (a, b)])

    def _scaled(self, element: Element, by: float) -> Element:
        return self.combination([(1 / by, element)]) if math.isfinite(by) else element

    # All types --------------------------------------------------------------------------------------------------------

    def where(self, condition: Element, a: Element, b: Element) -> Element:
        """Return `a` where a condition is true, else `b`."""
        if condition in (self.true, self.false):
            return a if condition == self.true else b
        parts = (condition, a, b)
        if parts not in self._chosen:  # kept, because the sides of a nested choice share most of their parts
            self._chosen[parts] = self._where(condition, a, b)
        return self._chosen[parts]

    def _where(self, condition: Element, a: Element, b: Element) -> Element:
        if self.places.is_place(condition):
            a, b = self.places.restrict(a, condition, True), self.places.restrict(b, condition, False)
            first = self.places.first_in([a, b])
            if first is not None and first < min(condition, self.negation(condition)):
                sides = [[self.places.restrict(part, first, side) for part in (a, b)] for side in (True, False)]
                return self.where(first, *[self.where(condition, *side) for side in sides])
        if self.dtype(a) != self.dtype(b):
            a, b = self.real(a), self.real(b)
        if self.dtype(a) == "real" and self.places.are_places(condition):
            return self._at_places(condition, a, b)
        if self.dtype(a) == "int":
            a, b = (
                self._contexts.simplify_under(a, condition),
                self._contexts.simplify_under(b, self.negation(condition)),
            )
        if a == b or self._continues(condition, a, b):
            return a
        if self._is_turned(condition, a, b):
            condition, a, b = self.negation(condition), b, a
        if self.dtype(a) == "bool":
            return self.disjunction([self.conjunction([condition, a]), self.conjunction([self.negation(condition), b])])
        for inner, other, outer in ((a, b, condition), (b, a, self.negation(condition))):
            if self.nodes[inner].kind == "where":  # joined where both lead to the same
                test, first, second = self.nodes[inner].parts
                if first == other:
                    test, first, second = self.negation(test), second, first
                both = self.conjunction([outer, test])
                if second == other and not (self.dtype(a) == "real" and self.places.are_places(both)):
                    return self.where(both, first, other)
        parts = (condition, a, b)
        return self.table.make("where", parts, self.dtype(a), tuple([self.nodes[part].blind for part in parts]), parts)

    def _at_places(self, condition: Element, a: Element, b: Element) -> Element:
        """Return `a` where a condition made of place conditions is true, else `b`, with a choice for each of these."""
        parts = self.nodes[condition].parts
        if self.nodes[condition].kind == "or":
            return self._at_places(self.negation(condition), b, a)
        for part in sorted(parts, reverse=True):
            a = self.where(part, a, b)
        return a

    def _continues(self, condition: Element, a: Element, b: Element) -> bool:
        """Whether `b`, an integer for the first index of an axis, is what `a`, for all others, is there."""
        node, first, following = self.nodes[condition], self.nodes[b], self.nodes[a]
        if node.kind != "ge0" or not first.kind == following.kind == "int":
            return False
        at = node.integer + 1
        name = index_name(at)
        values = [substitute(item.integer, {name: 0}) for item in (first, following)]
        return bool(name) and self.axes.is_at_least(at, 0) and values[0] == values[1]

    def _is_turned(self, condition: Element, a: Element, b: Element) -> bool:
        """Whether the opposite of a condition is the one to write: a number goes last."""
        numbers = self.nodes[a].kind == "number", self.nodes[b].kind == "number"
        if numbers[0] != numbers[1]:
            return numbers[0]
        node = self.nodes[condition]
        if node.kind == "ge0":
            return terms_of(node.integer)[0][1] < 0
        return node.kind in ("not", "or")

    def apply(self, name: str, parts: Sequence[Element], dtype: Dtype, commutes: bool = False) -> Element:
        """Return an elementwise function that has no other form."""
        place = self.places.first_in(parts)
        if place is not None:
            sides = [[self.places.restrict(part, place, side) for part in parts] for side in (True, False)]
            return self.where(place, *[self.apply(name, side, dtype, commutes) for side in sides])
        parts = sorted(parts) if commutes else parts
        blinds = [self.nodes[part].blind for part in parts]
        blind = (name, *(sorted(blinds) if commutes else blinds))
        return self.table.make("apply", (name, commutes, *parts), dtype, blind, parts)

    def extreme(self, kind: Literal["min", "max"], a: Element, b: Element) -> Element:
        """Return the smaller or the larger of two numbers."""
        if self.dtype(a) == self.dtype(b) == "int":
            choose = dim_min if kind == "min" else dim_max
            return self.integer(choose(self.polynomial(a), self.polynomial(b)))
        a, b = self.real(a), self.real(b)
        numbers = [number for number in (self.as_number(a), self.as_number(b)) if number is not None]
        if a == b or len(numbers) == 2:
            return a if a == b else self.number(min(numbers) if kind == "min" else max(numbers))
        for x, other in ((a, b), (b, a)):
            bounded = self._bounded(kind, x, other)
            if bounded is not None:
                return bounded
        return self.apply(kind, (a, b), "real", commutes=True)

    def _bounded(self, kind: Literal["min", "max"], x: Element, by: Element) -> Element | None:
        """Return the smaller or the larger of a real and a number that is huge, or is chosen like the number."""
        bound, node = self.as_number(by), self.nodes[x]
        if bound is None:
            return None
        if node.kind == "where" and any(self.as_number(side) is not None for side in node.parts[1:]):
            return self.where(node.parts[0], *[self.extreme(kind, side, by) for side in node.parts[1:]])
        is_beyond = bound >= HIDING_MAGNITUDE if kind == "min" else bound <= -HIDING_MAGNITUDE
        return x if is_beyond and self.magnitudes.are_moderate([x]) else None

    def base(self, kind: str, arguments: tuple[Hashable, ...], dtype: Dtype) -> Element:
        """Return what elements are loaded from."""
        return self.table.make(kind, arguments, dtype, arguments)

    def load(self, base: Element, indices: Indices) -> Element:
        """Return the element of a base at indices."""
        names = NO_NAMES.union(*[self.table.names_in(value) for value in indices])
        blind = (base, *[self.table.blind(value) for value in indices])
        arguments: tuple[Hashable, ...] = (base, *indices)
        return self.table.make("load", arguments, self.dtype(base), blind, names=names)


# Terms that a real has on all sides of its choices.


class CommonTerms:
    """The common terms of reals over one table. Sides that are huge or infinite numbers, which hide what is added to
    them, have any.
    """

    def __init__(self, elements: Elements) -> None:
        self.elements = elements

    def without_index(self, element: Element, name: str) -> dict[Element, float]:
        """Return the terms without an index that all sides have, with their coefficients; the term of a number is 1."""
        elements = self.elements
        common: dict[Element, float] | None = None
        for side in self._sides(element, set()):
            terms, constant = elements.terms(side)
            own = {term: coefficient for coefficient, term in terms if name not in elements.nodes[term].names}
            if constant:
                own[elements.number(1.0)] = constant
            common = own if common is None else {term: c for term, c in common.items() if own.get(term) == c}
        return common or {}

    def remove(self, element: Element, terms: Mapping[Element, float]) -> Element:
        """Return a real without such terms."""
        if not terms or self._hides(element):
            return element
        node = self.elements.nodes[element]
        if node.kind == "where":
            condition, *sides = node.parts
            return self.elements.where(condition, *[self.remove(side, terms) for side in sides])
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
