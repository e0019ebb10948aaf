"""The parts of elements, and the order in which indices occur in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from archspec.algebra import Atom, Dim, Expression, Polynomial, symbols
from archspec.algebra.polynomial import expression, terms_of
from archspec.normal.nodes import OPAQUE, Node, NodeTable, index_name

if TYPE_CHECKING:
    from archspec.normal.nodes import Element

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


def names_in_order(table: NodeTable, element: Element) -> list[str]:
    """Return all indices in an element, in an order that does not depend on their names unless the element is
    symmetric in them.
    """
    walk = _Walk(table)
    walk.visit(element)
    assert walk.found.keys() == table.nodes[element].names
    return list(walk.found)


def divisors(table: NodeTable, element: Element) -> dict[str, Dim]:
    """Return the indices in an element that occur only as quotients and remainders, with the size by which they are
    divided: of several sizes the one that divides the others.
    """
    found: dict[str, Dim | None] = {}
    seen: set[Element] = set()

    def see(name: str, by: Dim | None) -> None:
        before = found.get(name, by)
        sizes = [] if before is None or by is None else [by, before]
        found[name] = next((size for size in sizes if all(other % size == 0 for other in sizes)), None)

    def visit(value: Expression) -> None:
        for monomial, _ in terms_of(value):
            for atom, _ in monomial:
                inner = [expression(argument) for argument in atom.arguments]
                name = index_name(inner[0]) if atom.kind in ("//", "%") else ""
                if name.startswith("#") and not name.startswith(OPAQUE) and _is_size(inner[1]):
                    see(name, inner[1])
                elif atom.kind == "index" and not atom.text.startswith(OPAQUE):
                    see(atom.text, None)
                else:
                    for part in inner:
                        visit(part)

    waiting = [element]
    while waiting:
        part = waiting.pop()
        node = table.nodes[part]
        if part in seen or not node.names:
            continue
        seen.add(part)
        for argument in node.arguments[1:] if node.kind == "load" else node.arguments[:1]:
            if isinstance(argument, Polynomial):
                visit(argument)
        waiting += children(table, part)
    return {name: by for name, by in found.items() if by is not None}


def _is_size(value: Expression) -> bool:
    return not any(name.startswith("#") for name in symbols(value))


class _Walk:
    """A walk through an element that collects the indices in it."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.found: dict[str, None] = {}
        self._seen = set[int]()

    def visit(self, element: Element) -> None:
        node = self.table.nodes[element]
        if element in self._seen or not node.names:
            return
        self._seen.add(element)
        for part in self._parts(node):
            if isinstance(part, Polynomial):
                self._visit_integer(part)
            else:
                self.visit(part)

    def _parts(self, node: Node) -> list[Element | Polynomial]:
        """The polynomials and elements that a node with indices consists of."""
        match node.kind:
            case "terms":
                return self._by_blind([(coefficient, term) for coefficient, term in node.terms[0]])
            case "product":
                return self._by_blind([(power, factor) for factor, power in node.factors])
            case "power":
                return [node.arguments[0]]
            case "and" | "or":
                return self._by_blind([(0.0, part) for part in node.parts])
            case "apply":
                _, commutes, *parts = node.arguments
                return self._by_blind([(0.0, part) for part in parts]) if commutes else parts
            case "load":
                return [value for value in node.indices if isinstance(value, Polynomial)]
            case _:
                return [*node.arguments]

    def _by_blind(self, parts: list[tuple[float, Element]]) -> list[Element | Polynomial]:
        return [part for _, part in sorted(parts, key=lambda item: (item[0], self.table.nodes[item[1]].blind))]

    def _visit_integer(self, value: Polynomial) -> None:
        terms = [
            (coefficient, sorted([(self.table.blind_atom(*factor), factor[0]) for factor in monomial], key=_blind_of))
            for monomial, coefficient in value.terms
        ]
        for _, factors in sorted(terms, key=lambda term: (term[0], [blind for blind, _ in term[1]])):
            for _, atom in factors:
                self._visit_atom(atom)

    def _visit_atom(self, atom: Atom) -> None:
        if atom.kind == "index" and atom.text.startswith(OPAQUE):
            self.visit(int(atom.text[2:]))
        elif atom.kind == "index" and atom.text.startswith("#"):
            self.found[atom.text] = None
        for argument in atom.arguments:
            inner = expression(argument)
            if isinstance(inner, Polynomial):
                self._visit_integer(inner)


def _blind_of(item: tuple[tuple[int, int], Atom]) -> tuple[int, int]:
    return item[0]
