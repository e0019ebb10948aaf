"""Formatting polynomials, as text that Python also reads and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra.terms import (
    Atom,
    Coefficient,
    Monomial,
    Terms,
    atoms_of,
    coefficients_of_name,
    constant_of,
    degree,
    denominator,
    multiply,
    only_atom,
    single,
    subtract,
)

DIVISIONS = ("//", "%")


def text(terms: Terms, order: Sequence[str] = (), collect: Sequence[str] = (), digits: str = "") -> str:
    """Format a polynomial as text: `4*hidden**2 + 2*hidden*ffn`. Names appear in `order`, others after them.

    A name in `collect` is put before the bracket of what it multiplies: `layers*(4*hidden**2 + 9*hidden) + hidden`.
    `digits` formats the coefficients: "," groups their digits.
    """
    return _Text(order, digits).sum(terms, tuple(collect))


def latex(terms: Terms, order: Sequence[str] = (), collect: Sequence[str] = ()) -> str:
    """Format a polynomial as LaTeX, for math mode; otherwise as `text`."""
    return _Latex(order).sum(terms, tuple(collect))


def division(kind: str, above: Terms, below: Terms) -> str:
    """Format a floor division or remainder as text."""
    return _Text().division(kind, above, below)


class _Text:
    """Formatter of sums, terms and factors."""

    times = "*"

    def __init__(self, order: Sequence[str] = (), digits: str = "") -> None:
        self.order = {name: i for i, name in enumerate(order)}
        self.digits = digits

    def sum(self, terms: Terms, collect: tuple[str, ...] = ()) -> str:
        parts = self._parts(terms, collect)
        if not parts:
            return "0"
        parts.sort(key=lambda part: part[0])  # positive terms first, to avoid a leading minus
        (is_negative, first, is_division), *others = parts
        if is_negative:
            first = "-" + (self.factor(first) if is_division else first)
        return first + "".join([f" {'-' if is_negative else '+'} {part}" for is_negative, part, _ in others])

    def _parts(self, terms: Terms, collect: tuple[str, ...]) -> list[tuple[bool, str, bool]]:
        """Whether each term is negative, its text without the sign, and whether that is a division without brackets.
        The terms of a name to be collected are one.
        """
        for name in collect:
            coefficients = coefficients_of_name(terms, name)
            factor = coefficients.get(1) if coefficients is not None else None
            if factor is not None and len(factor) > 1 and denominator(factor) == 1:
                remainder = subtract(terms, multiply(factor, single(Atom(name))))
                body = self.times.join([self.name(name), self.bracketed(self.sum(factor, collect))])
                return [(False, body, False), *self._parts(remainder, collect)]
        ranked = sorted(terms, key=lambda term: self._rank(term[0])) if self.order else terms
        return [self._part(term) for term in ranked]

    def _rank(self, monomial: Monomial) -> tuple[int, list[int]]:
        exponents = {atom.text: exponent for atom, exponent in monomial}
        return -degree(monomial), [-exponents.get(name, 0) for name in self.order]

    def _part(self, term: tuple[Monomial, Coefficient]) -> tuple[bool, str, bool]:
        monomial, coefficient = term
        is_negative, size = coefficient < 0, abs(coefficient)
        only = only_atom(((monomial, size),))
        if only is not None and only.kind in DIVISIONS:
            return is_negative, self.division(only.kind, *only.arguments), True
        return is_negative, self._term(monomial, size), False

    def _term(self, monomial: Monomial, size: Coefficient) -> str:
        ranked = sorted(monomial, key=self._rank_factor)
        above = [self.power(atom, exponent) for atom, exponent in ranked if exponent > 0]
        below = [self.power(atom, -exponent) for atom, exponent in ranked if exponent < 0]
        if size.numerator != 1 or not above:
            above.insert(0, f"{size.numerator:{self.digits}}")
        if size.denominator != 1:
            below.insert(0, f"{size.denominator:{self.digits}}")
        return self.fraction(above, below) if below else self.times.join(above)

    def _rank_factor(self, item: tuple[Atom, int]) -> tuple[int, bool]:
        atom, _ = item
        return self.order.get(atom.text, len(self.order)), atom.kind in DIVISIONS

    def power(self, atom: Atom, exponent: int) -> str:
        base = self.atom(atom)
        return base if exponent == 1 else self.raised(base, exponent)

    def atom(self, atom: Atom) -> str:
        match atom.kind:
            case "symbol" | "index":
                return self.name(atom.text)
            case "()":
                return self.bracketed(self.sum(atom.arguments[0]))
            case "//" | "%":
                return self.factor(self.division(atom.kind, *atom.arguments))
            case kind:
                return f"{self.function(kind)}({', '.join([self.sum(a) for a in atom.arguments])})"

    def division(self, kind: str, above: Terms, below: Terms) -> str:
        return f"{self._operand(above, True)}{kind}{self._operand(below, False)}"

    def _operand(self, terms: Terms, left: bool) -> str:
        number = constant_of(terms)
        if number is not None:
            simple = number >= 0
        elif left:
            simple = len(terms) == 1 and terms[0][1] > 0 and all(a.kind not in DIVISIONS for a in atoms_of(terms))
        else:
            simple = self.sum(terms).isidentifier()
        return self.sum(terms) if simple else self.bracketed(self.sum(terms))

    def fraction(self, above: list[str], below: list[str]) -> str:
        under = "*".join(below)
        return f"{'*'.join(above)}/{self.bracketed(under) if len(below) > 1 else under}"

    def name(self, name: str) -> str:
        return name

    def raised(self, base: str, exponent: int) -> str:
        return f"{base}**{exponent}"

    def bracketed(self, inner: str) -> str:
        return f"({inner})"

    def factor(self, division: str) -> str:
        """Format a division as a factor of a product."""
        return self.bracketed(division)

    def function(self, name: str) -> str:
        return name


UNDERSCORE = r"\_"


class _Latex(_Text):
    times = r" \, "

    def name(self, name: str) -> str:
        return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', UNDERSCORE)}}}"

    def raised(self, base: str, exponent: int) -> str:
        return f"{base}^{{{exponent}}}"

    def bracketed(self, inner: str) -> str:
        return rf"\left( {inner} \right)"

    def fraction(self, above: list[str], below: list[str]) -> str:
        return rf"\frac{{{self.times.join(above)}}}{{{self.times.join(below)}}}"

    def division(self, kind: str, above: Terms, below: Terms) -> str:
        if kind == "//":
            return rf"\left\lfloor \frac{{{self.sum(above)}}}{{{self.sum(below)}}} \right\rfloor"
        dividend = self.sum(above) if len(above) == 1 and above[0][1] > 0 else self.bracketed(self.sum(above))
        is_simple = constant_of(below) is not None or only_atom(below) is not None
        divisor = self.sum(below) if is_simple else self.bracketed(self.sum(below))
        return rf"\left( {dividend} \bmod {divisor} \right)"

    def factor(self, division: str) -> str:
        return division  # it has its own delimiters

    def function(self, name: str) -> str:
        return rf"\{name}"
