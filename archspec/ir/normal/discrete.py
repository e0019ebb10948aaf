"""Integers and booleans as elements, in a normal form: `archspec.ir.normal.elements` says which."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.core.algebra import Expression
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.ir.normal.axes import Axes, join_divisions
from archspec.ir.normal.nodes import (
    MAX_NODES,
    OPAQUE,
    Dtype,
    Element,
    ElementNode,
    NodeTable,
    index_name,
    index_of,
    single,
)


class Discrete:
    """Integers and booleans over one table, of at most so many expressions."""

    def __init__(self, most: int = MAX_NODES) -> None:
        self.table = NodeTable(most)
        self.nodes: list[ElementNode] = self.table.nodes
        self.axes = Axes()
        self.true = self.table.make("bool", (True,), "bool", True)
        self.false = self.table.make("bool", (False,), "bool", False)

    def dtype(self, element: Element) -> Dtype:
        """Return the type of an element."""
        return self.nodes[element].dtype

    def integer(self, value: Expression) -> Element:
        """Return an integer."""
        value = join_divisions(value)
        name = index_name(value)
        if name.startswith(OPAQUE) and self.nodes[int(name[2:])].dtype == "int":
            return int(name[2:])
        return self._of_integer("int", value, "int")

    def _of_integer(self, kind: str, value: Expression, dtype: Dtype) -> Element:
        return self.table.make(kind, (value,), dtype, self.table.blind(value), names=self.table.names_in(value))

    def polynomial(self, element: Element) -> Expression:
        """Return an integer element, or a boolean as 0 or 1, as a polynomial."""
        node = self.nodes[element]
        if node.kind == "int":
            return node.integer
        if node.kind == "bool":
            return int(node.number)
        if node.dtype == "bool":
            return index_of(f"{OPAQUE}{element}", 0, 1)
        return index_of(f"{OPAQUE}{element}", None, None)

    def boolean(self, value: bool) -> Element:
        """Return true or false."""
        return self.true if value else self.false

    def at_least_zero(self, element: Element) -> Element:
        """Return whether an integer is 0 or more."""
        value = self.polynomial(element)
        if self.axes.is_at_least(value, 0):
            return self.true
        if self.axes.is_at_least(-value, 1):
            return self.false
        for monomial, coefficient in terms_of(value):
            if (
                len(monomial) == 1
                and monomial[0][0].kind in ("min", "max")
                and monomial[0][1] == 1
                and coefficient in (1, -1)
            ):
                (atom, _), remainder = monomial[0], value - expression(((monomial, coefficient),))
                parts = [
                    self.at_least_zero(self.integer(remainder + int(coefficient) * expression(part)))
                    for part in atom.arguments
                ]
                every = (atom.kind == "min") == (coefficient == 1)
                return self.conjunction(parts) if every else self.disjunction(parts)
        return self._of_integer("ge0", self.axes.divide_sign_test(value), "bool")

    def is_zero(self, element: Element) -> Element:
        """Return whether an integer is 0."""
        value = self.polynomial(element)
        if value == 0:
            return self.true
        if self.axes.is_at_least(value, 1) or self.axes.is_at_least(-value, 1):
            return self.false
        name = index_name(value)
        if name.startswith(OPAQUE) and self.nodes[int(name[2:])].dtype == "bool":
            return self.negation(int(name[2:]))
        factors = terms_of(value)[0][0] if len(terms_of(value)) == 1 else ()
        if len(factors) > 1 and all(power > 0 for _, power in factors):
            return self.disjunction([self.is_zero(self.integer(single(atom))) for atom, _ in factors])
        parts = self.axes.zeros(value)
        if parts != [value]:
            return self.conjunction([self.is_zero(self.integer(part)) for part in parts])
        return self._of_integer("eq0", -value if terms_of(value)[0][1] < 0 else value, "bool")

    def negation(self, element: Element) -> Element:
        """Return whether a boolean is false."""
        node = self.nodes[element]
        if node.kind == "bool":
            return self.boolean(not node.number)
        if node.kind == "not":
            return node.parts[0]
        if node.kind == "ge0":
            return self.at_least_zero(self.integer(-node.integer - 1))
        if node.kind in ("and", "or"):
            parts = [self.negation(part) for part in node.parts]
            return self.disjunction(parts) if node.kind == "and" else self.conjunction(parts)
        return self.table.make("not", (element,), "bool", node.blind, [element])

    def conjunction(self, parts: Iterable[Element]) -> Element:
        """Return whether all booleans are true."""
        return self._junction("and", parts, self.true, self.false)

    def disjunction(self, parts: Iterable[Element]) -> Element:
        """Return whether any boolean is true."""
        return self._junction("or", parts, self.false, self.true)

    def _junction(self, kind: str, parts: Iterable[Element], neutral: Element, absorbing: Element) -> Element:
        operands = set[Element]()
        for part in parts:
            node = self.nodes[part]
            operands |= set(node.parts) if node.kind == kind else {part}
        operands.discard(neutral)
        for part in sorted(operands):
            if any(self._is_needless(kind, part, other) for other in operands):
                operands.remove(part)
        ordered = tuple(sorted(operands))
        if absorbing in operands or any(self.negation(part) in operands for part in ordered):
            return absorbing
        if len(operands) < 2:
            return operands.pop() if operands else neutral
        return self.table.make(
            kind, ordered, "bool", tuple(sorted([self.nodes[part].blind for part in ordered])), ordered
        )

    def _is_needless(self, kind: str, part: Element, other: Element) -> bool:
        """Whether a comparison follows from another one, under `and`, or implies it, under `or`."""
        if part == other or self.nodes[part].kind != "ge0" or self.nodes[other].kind != "ge0":
            return False
        own, others = (self.nodes[item].integer for item in (part, other))
        return self.axes.is_at_least(own - others if kind == "and" else others - own, 0)
