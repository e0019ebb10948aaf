"""Elements: one element of a tensor as an expression of its indices, in a normal form.

An `Elements` table makes every expression once, so equal expressions have equal numbers. What its methods make is in
normal form:

- Integers are polynomials (`archspec.algebra`) in indices, and in integers that have no form of their own.
- Booleans are `x >= 0` and `x == 0` of integers, `x > 0` and `x == 0` of reals, and sets of these under `and` and `or`.
  What the sizes of the axes decide is decided.
- Reals are sums of terms with coefficients, and products of factors with powers, both without an order. Numbers are
  multiplied out over sums. They are the same if they differ in rounding alone, as computing in another order does;
  infinite intermediate results are not considered.
- A load is an element of a base: an input, a stored tensor, or the result of a reduction or of an operation that has no
  other form.

An index is named `#KIND.EXTENT`, with the number of its extent: indices of axes of different sizes have different
names. Every name that begins with `#` is the table's own, so no dimension has it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast
from zlib import crc32

from archspec.algebra import Atom, Dim, Expression, Polynomial, at_least, dim_max, dim_min, substitute, symbols
from archspec.algebra.polynomial import expression, terms_of
from archspec.record import Record

Element: TypeAlias = int
"""The number of an expression in a table."""

Dtype: TypeAlias = Literal["real", "int", "bool"]

Indices: TypeAlias = tuple[Expression, ...]

Names: TypeAlias = frozenset[str]

NONE: Names = frozenset()
BASES = frozenset(["input", "tensor", "carried", "total", "amax", "softmax", "operation"])
"""The kinds of what elements are loaded from."""

TOLERANCE = 1e-13
"""The relative difference up to which numbers are the same."""


class Node(Record):
    """An expression: its kind and arguments, its type, the indices in it, and a hash that does not tell indices of
    equal extent apart.
    """

    kind: str
    arguments: tuple[Hashable, ...]
    dtype: Dtype
    names: Names
    blind: int


class Elements:
    """A table of expressions."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[str, tuple[Hashable, ...]], Element] = {}
        self._extents: dict[Dim, int] = {}
        self._sizes: list[Dim] = []
        self._replaced: dict[tuple[Element, tuple[tuple[str, Expression], ...]], Element] = {}
        self._found: dict[Expression, Names] = {}
        self._numbers: dict[float, float] = {}
        self._sorted: list[float] = []
        self.true = self._make("bool", (True,), "bool", (), True)
        self.false = self._make("bool", (False,), "bool", (), False)

    def _make(
        self,
        kind: str,
        arguments: tuple[Hashable, ...],
        dtype: Dtype,
        parts: Iterable[Element],
        blind: Hashable,
        names: Names = NONE,
    ) -> Element:
        key = kind, arguments
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            inside = names.union(*[self.nodes[part].names for part in parts])
            self.nodes.append(Node(kind, arguments, dtype, inside, code((kind, blind))))
        return found

    def dtype(self, element: Element) -> Dtype:
        """Return the type of an element."""
        return self.nodes[element].dtype

    # Indices ----------------------------------------------------------------------------------------------------------

    def axis(self, kind: str, extent: Dim) -> Expression:
        """Return the index of an axis: 0 if there is no other."""
        if extent == 1:
            return 0
        number = self._extents.get(extent)
        if number is None:
            number = self._extents[extent] = len(self._sizes)
            self._sizes.append(extent)
        return _index(f"#{kind}.{number}", 0, extent - 1 if isinstance(extent, int) else None)

    def like(self, kind: str, name: str) -> Expression:
        """Return the index of another axis with the extent of the one of this name."""
        return self.axis(kind, self.extent(name))

    def extent(self, name: str) -> Dim:
        """Return the number of values of the index of an axis."""
        return self._sizes[int(name.partition(".")[2])]

    def _extreme(self, value: Expression, largest: bool) -> Expression | None:
        """Return what an integer never exceeds, or never goes below; None if that is unknown."""
        found: Expression = 0
        for monomial, coefficient in terms_of(value):
            part: Expression = int(coefficient)
            for atom, power in monomial:
                bound = self._bound(atom, (coefficient > 0) == largest)
                if bound is None:
                    return None
                part = part * bound**power
            found = found + part
        return found

    def _bound(self, atom: Atom, largest: bool) -> Expression | None:
        if atom.kind == "symbol":
            return _single(atom)
        low, high = atom.bounds
        if low is None or low < 0:
            return None
        if not largest:
            return low
        return self.extent(atom.text) - 1 if "." in atom.text and atom.kind == "index" else high

    def is_at_least(self, value: Expression, least: int) -> bool:
        """Whether an integer is never below `least`."""
        if at_least(value, least):
            return True
        lowest = self._extreme(value, largest=False)
        if lowest is not None and at_least(lowest, least):
            return True
        highest = self._extreme(-value, largest=True)
        return highest is not None and at_least(-highest, least)

    def divide(self, value: Expression, by: Dim) -> tuple[Expression, Expression]:
        """Return the quotient, rounded down, and the remainder of an integer and a size."""
        whole: Expression = 0
        rest: Expression = 0
        for term in terms_of(value):
            part = expression((term,))
            if part % by == 0:
                whole = whole + part // by
            else:
                rest = rest + part
        if self.is_at_least(rest, 0) and self.is_at_least(by - 1 - rest, 0):
            return whole, rest
        return whole + rest // by, rest % by

    def names_in(self, value: Expression) -> Names:
        """Return the indices in an integer."""
        found = self._found.get(value)
        if found is None:
            names = set[str]()
            for name in symbols(value):
                if name.startswith("#v"):
                    names |= self.nodes[int(name[2:])].names
                elif name.startswith("#"):
                    names.add(name)
            found = self._found[value] = frozenset(names)
        return found

    def _blind(self, value: Expression) -> Hashable:
        if isinstance(value, int):
            return value
        terms = [(coefficient, tuple(sorted([self._blind_atom(*factor) for factor in monomial])))
                 for monomial, coefficient in value.terms]  # fmt: skip
        return code(tuple(sorted(terms)))

    def _blind_atom(self, atom: Atom, power: int) -> tuple[int, int]:
        if atom.kind == "symbol":
            return code(atom.text), power
        if atom.kind == "index":
            name = atom.text
            return (self.nodes[int(name[2:])].blind if name.startswith("#v") else code(name.partition(".")[2])), power
        return code((atom.kind, *[self._blind(expression(argument)) for argument in atom.arguments])), power

    # Integers ---------------------------------------------------------------------------------------------------------

    def integer(self, value: Expression) -> Element:
        """Return an integer."""
        value = _joined(value)
        name = index_name(value)
        if name.startswith("#v") and self.nodes[int(name[2:])].dtype == "int":
            return int(name[2:])
        return self._make("int", (value,), "int", (), self._blind(value), self.names_in(value))

    def polynomial(self, element: Element) -> Expression:
        """Return an integer element, or a boolean as 0 or 1, as a polynomial."""
        node = self.nodes[element]
        if node.kind == "int":
            return cast("Expression", node.arguments[0])
        if node.kind == "bool":
            return int(cast("bool", node.arguments[0]))
        if node.dtype == "bool":
            return _index(f"#v{element}", 0, 1)
        return _index(f"#v{element}", None, None)

    # Reals ------------------------------------------------------------------------------------------------------------

    def number(self, value: float) -> Element:
        """Return a real number."""
        exact = self._number(value)
        return self._make("number", (exact,), "real", (), exact)

    def _number(self, value: float) -> float:
        """Return the first number that was as good as equal: computing in another order rounds differently."""
        known = self._numbers.get(value)
        if known is None:
            size = abs(value) * TOLERANCE
            at = bisect_left(self._sorted, value - size)
            near = at < len(self._sorted) and self._sorted[at] <= value + size
            known = self._sorted[at] if near and math.isfinite(value) else value + 0.0
            if known == value and not near:
                self._sorted.insert(at, known)
            self._numbers[value] = known
        return known

    def real(self, element: Element) -> Element:
        """Return an element as a real."""
        node = self.nodes[element]
        if node.dtype == "real":
            return element
        if node.dtype == "bool":
            return self.where(element, self.number(1.0), self.number(0.0))
        value = self.polynomial(element)
        terms: list[tuple[float, Element]] = []
        for monomial, coefficient in terms_of(value):
            factors = [(self._real_atom(atom), float(power)) for atom, power in monomial]
            terms.append((float(coefficient), self.product(factors)))
        return self.combination(terms)

    def _real_atom(self, atom: Atom) -> Element:
        value = _single(atom)
        return self._make("real", (value,), "real", (), self._blind(value), self.names_in(value))

    def as_number(self, element: Element) -> float | None:
        """Return the number that an element is; None if it depends on anything."""
        node = self.nodes[self.real(element)]
        return cast("float", node.arguments[0]) if node.kind == "number" else None

    def combination(self, parts: Iterable[tuple[float, Element]], constant: float = 0.0) -> Element:
        """Return the sum of reals with coefficients."""
        found: dict[Element, float] = {}
        for coefficient, part in parts:
            terms, number = self.terms(part)
            constant += coefficient * number
            for own, term in terms:
                found[term] = found.get(term, 0.0) + coefficient * own
        rounded = [(self._number(found[term]), term) for term in sorted(found)]
        terms = tuple([(coefficient, term) for coefficient, term in rounded if coefficient])
        constant = self._number(constant)
        if not terms:
            return self.number(constant)
        for coefficient, term in terms:
            hidden = self._hidden(term)
            if hidden is not None:
                test, value, infinite = hidden
                rest = [(own, other) for own, other in terms if other != term]
                return self.where(
                    test, self.combination([*rest, (coefficient, value)], constant), self.number(coefficient * infinite)
                )
        if len(terms) == 1 and terms[0][0] == 1.0 and not constant:
            return terms[0][1]
        blind = tuple(sorted([(coefficient, self.nodes[term].blind) for coefficient, term in terms]))
        return self._make("sum", (terms, constant), "real", [term for _, term in terms], (blind, constant))

    def _hidden(self, element: Element) -> tuple[Element, Element, float] | None:
        """Return the condition, the value and the infinite number that an element is where the condition is false."""
        node = self.nodes[element]
        if node.kind != "where":
            return None
        test, value, other = cast("tuple[Element, Element, Element]", node.arguments)
        number = self.nodes[other].arguments[0] if self.nodes[other].kind == "number" else 0.0
        return (test, value, number) if isinstance(number, float) and math.isinf(number) else None

    def terms(self, element: Element) -> tuple[tuple[tuple[float, Element], ...], float]:
        """Return the terms of a real with their coefficients, and the number that is added."""
        node = self.nodes[element]
        if node.kind == "number":
            return (), cast("float", node.arguments[0])
        if node.kind == "sum":
            return cast("tuple[tuple[tuple[float, Element], ...], float]", node.arguments)
        return ((1.0, element),), 0.0

    def product(self, parts: Iterable[tuple[Element, float]]) -> Element:
        """Return the product of powers of reals."""
        coefficient = 1.0
        found: dict[Element, float] = {}
        for part, power in parts:
            number, factors = self.factors(part, power)
            coefficient *= number
            for factor, own in factors:
                found[factor] = found.get(factor, 0.0) + own
        factors = tuple([(factor, found[factor]) for factor in sorted(found) if found[factor]])
        if not factors or not coefficient:
            return self.number(coefficient)
        if len(factors) == 1 and factors[0][1] == 1.0:
            return self.combination([(coefficient, factors[0][0])])
        blind = tuple(sorted([(self.nodes[factor].blind, power) for factor, power in factors]))
        made = self._make("product", (factors,), "real", [factor for factor, _ in factors], blind)
        return self.combination([(coefficient, made)])

    def factors(self, element: Element, power: float = 1.0) -> tuple[float, list[tuple[Element, float]]]:
        """Return the coefficient and the factors of a power of a real."""
        terms, constant = self.terms(element)
        if not terms:
            return _power(constant, power), []
        scale = terms[0][0]
        if scale <= 0 and power != int(power):
            return 1.0, [(element, power)]
        if scale == 1.0:
            base = element
        elif len(terms) == 1 and not constant:
            base = terms[0][1]
        else:
            base = self.combination([(1 / scale, element)])
        coefficient = _power(scale, power)
        node = self.nodes[base]
        if node.kind == "product" and (power == int(power)):
            inner = cast("tuple[tuple[Element, float], ...]", node.arguments[0])
            return coefficient, [(factor, own * power) for factor, own in inner]
        return coefficient, [(base, power)]

    # Booleans ---------------------------------------------------------------------------------------------------------

    def boolean(self, value: bool) -> Element:
        """Return true or false."""
        return self.true if value else self.false

    def at_least_zero(self, element: Element) -> Element:
        """Return whether a number is 0 or more."""
        if self.dtype(element) == "real":
            return self.negation(self._positive(self.combination([(-1.0, element)])))
        value = self.polynomial(element)
        if self.is_at_least(value, 0):
            return self.true
        if self.is_at_least(-value, 1):
            return self.false
        return self._make("ge0", (value,), "bool", (), self._blind(value), self.names_in(value))

    def _positive(self, element: Element) -> Element:
        terms, constant = self.terms(element)
        if not terms:
            return self.boolean(constant > 0)
        scaled = self.combination([(1 / abs(terms[0][0]), element)])
        return self._make("positive", (scaled,), "bool", [scaled], self.nodes[scaled].blind)

    def is_zero(self, element: Element) -> Element:
        """Return whether a number is 0."""
        if self.dtype(element) == "real":
            terms, constant = self.terms(element)
            if not terms:
                return self.boolean(constant == 0)
            scaled = self.combination([(1 / terms[0][0], element)])
            return self._make("zero", (scaled,), "bool", [scaled], self.nodes[scaled].blind)
        value = self.polynomial(element)
        if value == 0:
            return self.true
        if self.is_at_least(value, 1) or self.is_at_least(-value, 1):
            return self.false
        if terms_of(value)[0][1] < 0:
            value = -value
        return self._make("eq0", (value,), "bool", (), self._blind(value), self.names_in(value))

    def negation(self, element: Element) -> Element:
        """Return whether a boolean is false."""
        node = self.nodes[element]
        if node.kind == "bool":
            return self.boolean(not node.arguments[0])
        if node.kind == "not":
            return cast("Element", node.arguments[0])
        if node.kind == "ge0":
            return self.at_least_zero(self.integer(-cast("Expression", node.arguments[0]) - 1))
        if node.kind in ("and", "or"):
            parts = [self.negation(part) for part in cast("tuple[Element, ...]", node.arguments)]
            return self.disjunction(parts) if node.kind == "and" else self.conjunction(parts)
        return self._make("not", (element,), "bool", [element], node.blind)

    def conjunction(self, parts: Iterable[Element]) -> Element:
        """Return whether all booleans are true."""
        return self._junction("and", parts, self.true, self.false)

    def disjunction(self, parts: Iterable[Element]) -> Element:
        """Return whether any boolean is true."""
        return self._junction("or", parts, self.false, self.true)

    def _junction(self, kind: str, parts: Iterable[Element], neutral: Element, absorbing: Element) -> Element:
        found = set[Element]()
        for part in parts:
            node = self.nodes[part]
            found |= set(cast("tuple[Element, ...]", node.arguments)) if node.kind == kind else {part}
        found.discard(neutral)
        if absorbing in found or any(self.negation(part) in found for part in found):
            return absorbing
        if len(found) < 2:
            return found.pop() if found else neutral
        kept = tuple(sorted(found))
        return self._make(kind, kept, "bool", kept, tuple(sorted([self.nodes[part].blind for part in kept])))

    # Any type ---------------------------------------------------------------------------------------------------------

    def where(self, condition: Element, a: Element, b: Element) -> Element:
        """Return `a` where a condition is true, else `b`."""
        if condition in (self.true, self.false):
            return a if condition == self.true else b
        if self.dtype(a) != self.dtype(b):
            a, b = self.real(a), self.real(b)
        if a == b:
            return a
        if self._is_turned(condition, a, b):
            condition, a, b = self.negation(condition), b, a
        if self.dtype(a) == "bool":
            return self.disjunction([self.conjunction([condition, a]), self.conjunction([self.negation(condition), b])])
        for turned in (False, True):  # joined where both lead to the same
            inner, other = (b, a) if turned else (a, b)
            if self.nodes[inner].kind == "where":
                test, first, second = cast("tuple[Element, Element, Element]", self.nodes[inner].arguments)
                outer = self.negation(condition) if turned else condition
                if second == other:
                    return self.where(self.conjunction([outer, test]), first, other)
                if first == other:
                    return self.where(self.conjunction([outer, self.negation(test)]), second, other)
        parts = (condition, a, b)
        return self._make("where", parts, self.dtype(a), parts, tuple([self.nodes[part].blind for part in parts]))

    def _is_turned(self, condition: Element, a: Element, b: Element) -> bool:
        """Whether the opposite of a condition is the one to write: a number goes last."""
        numbers = self.nodes[a].kind == "number", self.nodes[b].kind == "number"
        if numbers[0] != numbers[1]:
            return numbers[0]
        node = self.nodes[condition]
        if node.kind == "ge0":
            return terms_of(cast("Expression", node.arguments[0]))[0][1] < 0
        return node.kind in ("not", "or")

    def apply(self, name: str, parts: tuple[Element, ...], dtype: Dtype, commutes: bool = False) -> Element:
        """Return an elementwise function that has no other form."""
        if commutes:
            parts = tuple(sorted(parts))
        blinds = [self.nodes[part].blind for part in parts]
        blind = (name, *(sorted(blinds) if commutes else blinds))
        return self._make("apply", (name, commutes, *parts), dtype, parts, blind)

    def extreme(self, kind: Literal["min", "max"], a: Element, b: Element) -> Element:
        """Return the smaller or the larger of two numbers."""
        if self.dtype(a) == self.dtype(b) == "int":
            choose = dim_min if kind == "min" else dim_max
            return self.integer(choose(self.polynomial(a), self.polynomial(b)))
        a, b = self.real(a), self.real(b)
        if a == b:
            return a
        known = self.as_number(a), self.as_number(b)
        if known[0] is not None and known[1] is not None:
            return self.number(min(known) if kind == "min" else max(known))  # pyright: ignore
        return self.apply(kind, (a, b), "real", commutes=True)

    def base(self, kind: str, arguments: tuple[Hashable, ...], dtype: Dtype) -> Element:
        """Return what elements are loaded from."""
        return self._make(kind, arguments, dtype, (), arguments)

    def load(self, base: Element, indices: Indices) -> Element:
        """Return the element of a base at indices."""
        names = NONE.union(*[self.names_in(value) for value in indices])
        blind = (base, *[self._blind(value) for value in indices])
        return self._make("load", (base, *indices), self.dtype(base), (), blind, names)

    # Replacing --------------------------------------------------------------------------------------------------------

    def replace(self, element: Element, values: Mapping[str, Expression]) -> Element:
        """Return an element with other integers in the place of indices."""
        node = self.nodes[element]
        relevant = tuple(sorted([(name, values[name]) for name in node.names if name in values], key=_first))
        if not relevant:
            return element
        key = element, relevant
        found = self._replaced.get(key)
        if found is None:
            found = self._replaced[key] = self._remade(node, dict(relevant))
        return found

    def _remade(self, node: Node, values: Mapping[str, Expression]) -> Element:
        arguments = node.arguments
        match node.kind:
            case "int":
                return self.integer(self.replace_in(cast("Expression", arguments[0]), values))
            case "real":
                return self.real(self.integer(self.replace_in(cast("Expression", arguments[0]), values)))
            case "sum":
                terms, constant = cast("tuple[tuple[tuple[float, Element], ...], float]", arguments)
                return self.combination([(c, self.replace(term, values)) for c, term in terms], constant)
            case "product":
                factors = cast("tuple[tuple[Element, float], ...]", arguments[0])
                return self.product([(self.replace(factor, values), power) for factor, power in factors])
            case "load":
                base, *indices = cast("tuple[Element, *tuple[Expression, ...]]", arguments)
                return self.load(base, tuple([self.replace_in(value, values) for value in indices]))
            case "ge0" | "eq0":
                value = self.integer(self.replace_in(cast("Expression", arguments[0]), values))
                return self.at_least_zero(value) if node.kind == "ge0" else self.is_zero(value)
            case "apply":
                name, commutes, *own = cast("tuple[str, bool, *tuple[Element, ...]]", arguments)
                parts = [self.replace(part, values) for part in own]
                if name == "min" or name == "max":
                    return self.extreme(name, parts[0], parts[1])
                return self.apply(name, tuple(parts), node.dtype, commutes)
            case _:
                parts = [self.replace(part, values) for part in cast("tuple[Element, ...]", arguments)]
        match node.kind:
            case "where":
                return self.where(*parts)
            case "and":
                return self.conjunction(parts)
            case "or":
                return self.disjunction(parts)
            case "not":
                return self.negation(parts[0])
            case "positive":
                return self._positive(parts[0])
            case "zero":
                return self.is_zero(parts[0])
            case _:
                raise AssertionError(node.kind)

    def replace_in(self, value: Expression, values: Mapping[str, Expression]) -> Expression:
        """Return an integer with other integers in the place of indices."""
        replaced: dict[str, Expression] = {}
        for name in symbols(value):
            if name in values:
                replaced[name] = values[name]
            elif name.startswith("#v"):
                inner = int(name[2:])
                changed = self.replace(inner, values)
                if changed != inner:
                    replaced[name] = self.polynomial(changed)
        return _joined(substitute(value, replaced)) if replaced else value

    # Walking ----------------------------------------------------------------------------------------------------------

    def children(self, element: Element) -> list[Element]:
        """Return the elements that an element is made of; those of a base, if it is loaded from one."""
        node = self.nodes[element]
        arguments = cast("tuple[Any, ...]", node.arguments)
        match node.kind:
            case "number" | "bool" | "input" | "tensor" | "carried":
                return []
            case "int" | "real" | "ge0" | "eq0":
                return self._opaque_in(arguments)
            case "sum":
                return [term for _, term in arguments[0]]
            case "product":
                return [factor for factor, _ in arguments[0]]
            case "load":
                return [arguments[0], *self._opaque_in(arguments[1:])]
            case "apply":
                return [*arguments[2:]]
            case "operation":
                return [array.element for array in arguments[3:] if array is not None]
            case _:
                return [*arguments]

    def is_base(self, element: Element) -> bool:
        """Whether elements are loaded from this."""
        return self.nodes[element].kind in BASES

    def _opaque_in(self, values: Iterable[Expression]) -> list[Element]:
        return [int(name[2:]) for value in values for name in symbols(value) if name.startswith("#v")]

    # Order of indices -------------------------------------------------------------------------------------------------

    def names_in_order(self, element: Element) -> list[str]:
        """Return the indices in an element, in an order that does not depend on their names unless the element is
        symmetric in them.
        """
        found: dict[str, None] = {}
        seen = set[Element]()
        self._visit(element, found, seen)
        return list(found)

    def _visit(self, element: Element, found: dict[str, None], seen: set[Element]) -> None:
        node = self.nodes[element]
        if element in seen or not node.names:
            return
        seen.add(element)
        for part in self._parts(node):
            if isinstance(part, Polynomial):
                self._visit_integer(part, found, seen)
            elif isinstance(part, int):
                self._visit(part, found, seen)

    def _parts(self, node: Node) -> list[Element | Polynomial]:
        """The polynomials and elements that a node consists of; none of a load's plain numbers."""
        arguments = cast("tuple[Any, ...]", node.arguments)
        match node.kind:
            case "sum":
                return self._by_blind([(coefficient, term) for coefficient, term in arguments[0]])
            case "product":
                return self._by_blind([(power, factor) for factor, power in arguments[0]])
            case "and" | "or":
                return self._by_blind([(0.0, part) for part in arguments])
            case "apply":
                return self._by_blind([(0.0, part) for part in arguments[2:]]) if arguments[1] else [*arguments[2:]]
            case "load":
                return [value for value in arguments[1:] if isinstance(value, Polynomial)]
            case _:
                return [*arguments]

    def _by_blind(self, parts: list[tuple[float, Element]]) -> list[Element | Polynomial]:
        return [part for _, part in sorted(parts, key=lambda item: (item[0], self.nodes[item[1]].blind))]

    def _visit_integer(self, value: Polynomial, found: dict[str, None], seen: set[Element]) -> None:
        terms = [(coefficient, sorted([(self._blind_atom(*factor), factor[0]) for factor in monomial], key=_blind_of))
                 for monomial, coefficient in value.terms]  # fmt: skip
        for _, factors in sorted(terms, key=lambda term: (term[0], [blind for blind, _ in term[1]])):
            for _, atom in factors:
                if atom.kind == "index":
                    if atom.text.startswith("#v"):
                        self._visit(int(atom.text[2:]), found, seen)
                    elif atom.text.startswith("#"):
                        found[atom.text] = None
                for argument in atom.arguments:
                    inner = expression(argument)
                    if isinstance(inner, Polynomial):
                        self._visit_integer(inner, found, seen)


def code(value: Hashable) -> int:
    """Return a hash that is the same in every process."""
    if isinstance(value, str):
        return crc32(value.encode())
    if isinstance(value, tuple):
        return hash(tuple([code(item) for item in cast("tuple[Hashable, ...]", value)]))
    return 0 if value is None else hash(value)


def _blind_of(item: tuple[tuple[int, int], Atom]) -> tuple[int, int]:
    return item[0]


def _single(atom: Atom) -> Polynomial:
    return Polynomial(((((atom, 1),), 1),))


def _index(name: str, low: int | None, high: int | None) -> Polynomial:
    return _single(Atom(name, "index", bounds=(low, high)))


def _first(item: tuple[str, Expression]) -> str:
    return item[0]


def _power(base: float, power: float) -> float:
    try:
        return base**power
    except ZeroDivisionError:
        return math.inf


def index_name(value: Expression) -> str:
    """Return the name of the index that an integer is; an empty one if it is anything else."""
    if isinstance(value, Polynomial) and len(value.terms) == 1:
        monomial, coefficient = value.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "index":
            return monomial[0][0].text
    return ""


def _joined(value: Expression) -> Expression:
    """Join quotients and remainders of the same division: n * (x // n) + x % n is x."""
    for monomial, coefficient in terms_of(value):
        if len(monomial) == 1 and monomial[0][0].kind == "%" and monomial[0][1] == 1:
            part, by = [expression(argument) for argument in monomial[0][0].arguments]
            scale = int(coefficient)
            without = value - scale * (part % by) - scale * by * (part // by)
            if len(terms_of(without)) < len(terms_of(value)) - 1:
                return _joined(without + scale * part)
    return value
