"""The table of expressions: each is made once, so equal expressions have equal numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias, cast
from zlib import crc32

from archspec.core.algebra import Atom, Dim, Expression, Polynomial, symbols
from archspec.core.algebra.polynomial import expression
from archspec.core.record import Record

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
        found = self._known.get(key)
        if found is None:
            if len(self.nodes) == self.most:
                raise OverflowError(f"more than {self.most:,} expressions")
            nodes = [self.nodes[part] for part in parts]
            found = self._known[key] = len(self.nodes)
            inside = names.union(*[node.names for node in nodes])
            unbounded = infinite or any(node.infinite for node in nodes)
            self.nodes.append(ElementNode(kind, arguments, dtype, inside, code((kind, blind)), unbounded))
        return found

    def names_in(self, value: Expression) -> Names:
        """Return the indices in an integer."""
        found = self._names.get(value)
        if found is None:
            names = set[str]()
            for name in symbols(value):
                if name.startswith(OPAQUE):
                    names |= self.nodes[int(name[2:])].names
                elif name.startswith("#"):
                    names.add(name)
            found = self._names[value] = frozenset(names)
        return found

    def blind(self, value: Expression) -> int:
        """Return a hash of an integer that does not distinguish indices of equal extent."""
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
            known = self.nodes[int(name[2:])].blind if name.startswith(OPAQUE) else code(name.partition(".")[2])
            return known, power
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
