"""The parts of elements, and the order in which indices occur in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from archspec.core.algebra import Atom, Dim, Expression, Polynomial, symbols
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.nodes import OPAQUE, Divisions, ElementNode, NodeTable, index_name

if TYPE_CHECKING:
    from archspec.ir.normal.nodes import Element

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
    known = table.orders.get(element)
    if known is not None:
        return known
    found: dict[str, None] = {}
    for part in _parts(table, node):
        if isinstance(part, Polynomial):
            _add_names(table, part, found)
        else:
            found |= dict.fromkeys(names_in_order(table, part))
    assert found.keys() == node.names
    table.orders[element] = tuple(found)
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


def _add_names(table: NodeTable, value: Polynomial, found: dict[str, None]) -> None:
    """Add the indices in an integer that are not found yet."""
    terms = [
        (coefficient, sorted([(table.blind_atom(*factor), factor[0]) for factor in monomial], key=_blind_of))
        for monomial, coefficient in value.terms
    ]
    for _, factors in sorted(terms, key=lambda term: (term[0], [blind for blind, _ in term[1]])):
        for _, atom in factors:
            if atom.kind == "index" and atom.text.startswith(OPAQUE):
                found |= dict.fromkeys(names_in_order(table, int(atom.text[2:])))
            elif atom.kind == "index" and atom.text.startswith("#"):
                found[atom.text] = None
            for argument in atom.arguments:
                inner = expression(argument)
                if isinstance(inner, Polynomial):
                    _add_names(table, inner, found)


def _blind_of(item: tuple[tuple[int, int], Atom]) -> tuple[int, int]:
    return item[0]


def divisors(table: NodeTable, element: Element) -> dict[str, Dim]:
    """Return the indices in an element that occur only as quotients and remainders, with the size by which they are
    divided: of several sizes the one that divides the others.
    """
    found = {name: _common_divisor(sizes) for name, sizes in _divided_by(table, element).items()}
    return {name: by for name, by in found.items() if by is not None}


def _common_divisor(sizes: frozenset[Dim]) -> Dim | None:
    common = next((size for size in sizes if all(other % size == 0 for other in sizes)), None)
    return None if common == 1 else common


def _divided_by(table: NodeTable, element: Element) -> Divisions:
    """Return the sizes by which each index in an element is divided; 1 if it occurs in another way."""
    node = table.nodes[element]
    if not node.names:
        return {}
    known = table.divisions.get(element)
    if known is not None:
        return known
    found: Divisions = {}
    for argument in node.arguments[1:] if node.kind == "load" else node.arguments[:1]:
        if isinstance(argument, Polynomial):
            _add_divisions(argument, found)
    for part in children(table, element):
        for name, sizes in _divided_by(table, part).items():
            found[name] = found.get(name, sizes) | sizes
    table.divisions[element] = found
    return found


def _add_divisions(value: Expression, found: Divisions) -> None:
    for monomial, _ in terms_of(value):
        for atom, _ in monomial:
            inner = [expression(argument) for argument in atom.arguments]
            name = index_name(inner[0]) if atom.kind in ("//", "%") else ""
            if name.startswith("#") and not name.startswith(OPAQUE) and _is_size(inner[1]):
                found[name] = found.get(name, frozenset()) | {inner[1]}
            elif atom.kind == "index" and not atom.text.startswith(OPAQUE):
                found[atom.text] = found.get(atom.text, frozenset()) | {1}
            else:
                for part in inner:
                    _add_divisions(part, found)


def _is_size(value: Expression) -> bool:
    return not any(name.startswith("#") for name in symbols(value))
