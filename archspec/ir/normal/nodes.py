"""The table of expressions: each is made once, so equal expressions have equal numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias, cast
from zlib import crc32

from archspec.core.algebra import Atom, Dim, Expression, Polynomial, symbols
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.core.record import Record

# Real numbers that are the same up to rounding.

TOLERANCE = 1e-13
"""The relative difference up to which numbers are the same."""


_MAX_ROUNDED = 2.0**50
"""Larger numbers are not rounded to integers."""


class NumberTable:
    """Numbers that represent all those as good as equal: computing in another order rounds differently. Integers and
    halves, which powers often are, represent themselves.
    """

    def __init__(self) -> None:
        self._known: dict[float, float] = {}
        self._sorted: list[float] = []

    def representative(self, value: float) -> float:
        """Return a representative: the nearest integer or half within the tolerance, or else the first number seen
        within it.
        """
        if not math.isfinite(value):
            return value
        number = self._known.get(value)
        if number is None:
            margin = abs(value) * TOLERANCE
            half = round(2 * value) / 2 if abs(value) < _MAX_ROUNDED else math.inf
            at = bisect_left(self._sorted, value - margin)
            if abs(half - value) <= margin:
                number = half + 0.0  # which turns -0.0 into 0.0
            elif at < len(self._sorted) and self._sorted[at] <= value + margin:
                number = self._sorted[at]
            else:
                number = value
                self._sorted.insert(at, number)
            self._known[value] = number
        return number


def power_of(base: float, power: float) -> float:
    """Return a power as floating-point arithmetic has it: infinite if it is too large, NaN if it is not a real."""
    if base == -math.inf and power % 1:
        return math.nan  # in Python, it is infinite
    try:
        result = base**power
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return -math.inf if base < 0 and power % 2 == 1 else math.inf
    return math.nan if isinstance(result, complex) else result


Element: TypeAlias = int
"""The number of an expression in a table."""

Dtype: TypeAlias = str
"""The type of an element: "real", "int" or "bool"."""

Names: TypeAlias = frozenset[str]

OPAQUE = "#v"
"""The prefix of the names that stand for elements in integers: `#v12` for element 12."""

NO_NAMES: Names = frozenset()

Divisions: TypeAlias = dict[str, frozenset[Dim]]
"""The sizes by which indices are divided, by name."""

MAX_NODES = 2_000_000
"""The limit on the expressions of a table, unless it has its own."""


Terms: TypeAlias = tuple[tuple[tuple[float, Element], ...], float]
"""The terms of a sum with their coefficients, and the number that is added."""

Factors: TypeAlias = tuple[tuple[Element, float], ...]
"""The factors of a product with their powers."""


class ElementNode(Record):
    """An expression: its kind and arguments, its type, and the indices in it.

    What the arguments are depends on the kind; the properties are those of most kinds, with their types. `blind` is a
    hash that does not distinguish indices of equal extent; it only serves to sort. `infinite` is whether an infinite
    number is in it, outside of what elements are loaded from.
    """

    kind: str
    arguments: tuple[Any, ...]
    dtype: Dtype
    names: Names
    blind: int
    infinite: bool

    @property
    def number(self) -> float:
        """A `number`, or whether a `bool` is true."""
        return self.arguments[0]

    @property
    def integer(self) -> Expression:
        """What is an `int` or `real`, or is compared with 0 in `ge0` and `eq0`."""
        return self.arguments[0]

    @property
    def terms(self) -> Terms:
        """The terms of a sum."""
        return self.arguments

    @property
    def factors(self) -> Factors:
        """The factors of a product."""
        return self.arguments[0]

    @property
    def parts(self) -> tuple[Element, ...]:
        """The parts of what is made of elements only, such as `and` and `where`."""
        return self.arguments

    @property
    def base(self) -> Element:
        """What a `load` is from."""
        return self.arguments[0]

    @property
    def indices(self) -> tuple[Expression, ...]:
        """The indices of a `load`."""
        return self.arguments[1:]


class NodeTable:
    """A table of at most so many expressions."""

    def __init__(self, most: int = MAX_NODES) -> None:
        self.most = most
        self.nodes: list[ElementNode] = []
        self.orders: dict[Element, tuple[str, ...]] = {}
        """What `names_in_order` has found."""
        self.divisions: dict[Element, Divisions] = {}
        """What `divisors` has found."""
        self._known: dict[tuple[str, tuple[Hashable, ...]], Element] = {}
        self._names: dict[Expression, Names] = {}

    def make(
        self,
        kind: str,
        arguments: tuple[Hashable, ...],
        dtype: Dtype,
        blind: Hashable,
        parts: Iterable[Element] = (),
        names: Names = NO_NAMES,
        infinite: bool = False,
    ) -> Element:
        """Return the element with this kind and arguments, which contains `parts` and has indices `names` itself.

        Raises OverflowError if the table has no place for it.
        """
        key = kind, arguments
        element = self._known.get(key)
        if element is None:
            if len(self.nodes) == self.most:
                raise OverflowError(f"more than {self.most:,} expressions")
            nodes = [self.nodes[part] for part in parts]
            element = self._known[key] = len(self.nodes)
            inside = names.union(*[node.names for node in nodes])
            unbounded = infinite or any(node.infinite for node in nodes)
            self.nodes.append(ElementNode(kind, arguments, dtype, inside, code((kind, blind)), unbounded))
        return element

    def names_in(self, value: Expression) -> Names:
        """Return the indices in an integer."""
        cached = self._names.get(value)
        if cached is None:
            names = set[str]()
            for name in symbols(value):
                if name.startswith(OPAQUE):
                    names |= self.nodes[int(name[2:])].names
                elif name.startswith("#"):
                    names.add(name)
            cached = self._names[value] = frozenset(names)
        return cached

    def blind(self, value: Expression) -> int:
        """Return a hash of an integer that is independent of the names of indices with equal extent."""
        if isinstance(value, int):
            return value
        terms = [
            (coefficient, tuple(sorted([self.blind_atom(*factor) for factor in monomial])))
            for monomial, coefficient in value.terms
        ]
        return code(tuple(sorted(terms)))

    def blind_atom(self, atom: Atom, power: int) -> tuple[int, int]:
        """Return such a hash of an atom, and its power."""
        if atom.kind == "symbol":
            return code(atom.text), power
        if atom.kind == "index":
            name = atom.text
            hashed = self.nodes[int(name[2:])].blind if name.startswith(OPAQUE) else code(name.partition(".")[2])
            return hashed, power
        return code((atom.kind, *[self.blind(expression(argument)) for argument in atom.arguments])), power


def code(value: Hashable) -> int:
    """Return a hash that is the same in every process."""
    if isinstance(value, str):
        return crc32(value.encode())
    if isinstance(value, tuple):
        return hash(tuple([code(item) for item in cast("tuple[Hashable, ...]", value)]))
    return 0 if value is None else hash(value)


def single(atom: Atom) -> Polynomial:
    """Return the polynomial that is one atom."""
    return Polynomial(((((atom, 1),), 1),))


def index_of(name: str, low: int | None, high: int | None) -> Polynomial:
    """Return the index of this name, with bounds."""
    return single(Atom(name, "index", bounds=(low, high)))


def index_name(value: Expression) -> str:
    """Return the name of the index that an integer is; an empty one if it is anything else."""
    if isinstance(value, Polynomial) and len(value.terms) == 1:
        monomial, coefficient = value.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "index":
            return monomial[0][0].text
    return ""


# The parts of elements, and the order in which indices occur in them.

BASES = frozenset(["input", "tensor", "carried", "total", "largest", "shares", "sorted", "order", "operation"])
"""The kinds of what elements are loaded from."""


def is_base(table: NodeTable, element: Element) -> bool:
    """Whether elements are loaded from this."""
    return table.nodes[element].kind in BASES


def children(table: NodeTable, element: Element) -> list[Element]:
    """Return the elements that an element is made of; those of a base, if it is loaded from one."""
    node = table.nodes[element]
    match node.kind:
        case "number" | "bool" | "input" | "tensor" | "carried":
            return []
        case "int" | "real" | "ge0" | "eq0":
            return _opaque_in([node.integer])
        case "terms":
            return [term for _, term in node.terms[0]]
        case "product":
            return [factor for factor, _ in node.factors]
        case "power":
            return [node.arguments[0]]
        case "load":
            return [node.base, *_opaque_in(node.indices)]
        case "apply":
            return [*node.arguments[2:]]
        case "operation":
            return [array.element for array in node.arguments[3:] if array is not None]
        case _:
            return [*node.parts]


def _opaque_in(values: Iterable[Expression]) -> list[Element]:
    return [int(name[2:]) for value in values for name in symbols(value) if name.startswith(OPAQUE)]


def names_in_order(table: NodeTable, element: Element) -> tuple[str, ...]:
    """Return all indices in an element, in an order that does not depend on their names unless the element is
    symmetric in them.
    """
    node = table.nodes[element]
    if not node.names:
        return ()
    cached = table.orders.get(element)
    if cached is not None:
        return cached
    ordered: dict[str, None] = {}
    for part in _parts(table, node):
        if isinstance(part, Polynomial):
            _add_names(table, part, ordered)
        else:
            ordered |= dict.fromkeys(names_in_order(table, part))
    assert ordered.keys() == node.names
    table.orders[element] = tuple(ordered)
    return table.orders[element]


def _parts(table: NodeTable, node: ElementNode) -> list[Element | Polynomial]:
    """Return the polynomials and elements that a node with indices consists of."""
    match node.kind:
        case "terms":
            return _by_blind(table, [(coefficient, term) for coefficient, term in node.terms[0]])
        case "product":
            return _by_blind(table, [(power, factor) for factor, power in node.factors])
        case "power":
            return [node.arguments[0]]
        case "and" | "or":
            return _by_blind(table, [(0.0, part) for part in node.parts])
        case "apply":
            _, commutes, *parts = node.arguments
            return _by_blind(table, [(0.0, part) for part in parts]) if commutes else parts
        case "load":
            return [value for value in node.indices if isinstance(value, Polynomial)]
        case _:
            return [*node.arguments]


def _by_blind(table: NodeTable, parts: list[tuple[float, Element]]) -> list[Element | Polynomial]:
    return [part for _, part in sorted(parts, key=lambda item: (item[0], table.nodes[item[1]].blind))]


def _add_names(table: NodeTable, value: Polynomial, ordered: dict[str, None]) -> None:
    """Add the indices in an integer that are not found yet."""
    terms = [
        (coefficient, sorted([(table.blind_atom(*factor), factor[0]) for factor in monomial], key=_blind_of))
        for monomial, coefficient in value.terms
    ]
    for _, factors in sorted(terms, key=lambda term: (term[0], [blind for blind, _ in term[1]])):
        for _, atom in factors:
            if atom.kind == "index" and atom.text.startswith(OPAQUE):
                ordered |= dict.fromkeys(names_in_order(table, int(atom.text[2:])))
            elif atom.kind == "index" and atom.text.startswith("#"):
                ordered[atom.text] = None
            for argument in atom.arguments:
                inner = expression(argument)
                if isinstance(inner, Polynomial):
                    _add_names(table, inner, ordered)


def _blind_of(item: tuple[tuple[int, int], Atom]) -> tuple[int, int]:
    return item[0]


def divisors(table: NodeTable, element: Element) -> dict[str, Dim]:
    """Return the indices in an element that occur only as quotients and remainders, with the size by which they are
    divided: of several sizes the one that divides the others.
    """
    common = {name: _common_divisor(sizes) for name, sizes in _divided_by(table, element).items()}
    return {name: by for name, by in common.items() if by is not None}


def _common_divisor(sizes: frozenset[Dim]) -> Dim | None:
    common = next((size for size in sizes if all(other % size == 0 for other in sizes)), None)
    return None if common == 1 else common


def _divided_by(table: NodeTable, element: Element) -> Divisions:
    """Return the sizes by which each index in an element is divided; 1 if it occurs in another way."""
    node = table.nodes[element]
    if not node.names:
        return {}
    cached = table.divisions.get(element)
    if cached is not None:
        return cached
    divisions: Divisions = {}
    for argument in node.arguments[1:] if node.kind == "load" else node.arguments[:1]:
        if isinstance(argument, Polynomial):
            _add_divisions(argument, divisions)
    for part in children(table, element):
        for name, sizes in _divided_by(table, part).items():
            divisions[name] = divisions.get(name, sizes) | sizes
    table.divisions[element] = divisions
    return divisions


def _add_divisions(value: Expression, divisions: Divisions) -> None:
    for monomial, _ in terms_of(value):
        for atom, _ in monomial:
            inner = [expression(argument) for argument in atom.arguments]
            name = index_name(inner[0]) if atom.kind in ("//", "%") else ""
            if name.startswith("#") and not name.startswith(OPAQUE) and _is_size(inner[1]):
                divisions[name] = divisions.get(name, frozenset()) | {inner[1]}
            elif atom.kind == "index" and not atom.text.startswith(OPAQUE):
                divisions[atom.text] = divisions.get(atom.text, frozenset()) | {1}
            else:
                for part in inner:
                    _add_divisions(part, divisions)


def _is_size(value: Expression) -> bool:
    return not any(name.startswith("#") for name in symbols(value))
