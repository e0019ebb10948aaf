"""Polynomials in named positive integers with rational coefficients: what counts come to while some are open.

A term is a coefficient times powers of factors. A factor is a name, or a floor division, remainder, minimum or maximum
of polynomials; names may have negative powers, as in hidden / heads. Equal forms are equal for all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import comb, floor, lcm
from typing import NamedTuple, TypeAlias

from archspec.dims import Dim, Symbolic

MOST_TERMS = 1_000


class Factor(NamedTuple):
    """A name (`kind` "name"), or "//", "%", "min" or "max" of `arguments`; `text` is unique to it."""

    text: str
    kind: str = "name"
    arguments: tuple[Polynomial, ...] = ()


Powers: TypeAlias = tuple[tuple[Factor, int], ...]
"""Factors with their exponents, sorted; () is the constant."""


class Polynomial:
    """A sum of terms. Immutable and hashable; `+ - * **` accept integers and fractions on the right.

    Raises OverflowError where it would have more than MOST_TERMS terms.
    """

    __slots__ = ("_hash", "terms")

    terms: Mapping[Powers, Fraction]
    """Coefficients, none of them 0, by powers."""

    def __init__(self, terms: Mapping[Powers, Fraction | int]) -> None:
        self.terms = {powers: Fraction(terms[powers]) for powers in sorted(terms) if terms[powers]}
        if len(self.terms) > MOST_TERMS:
            raise OverflowError(f"the formula has more than {MOST_TERMS:,} terms")
        self._hash = hash(tuple(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __repr__(self) -> str:
        words = [
            "*".join([str(scale), *[f.text + (f"**{e}" if e != 1 else "") for f, e in powers]])
            for powers, scale in self.terms.items()
        ]
        return " + ".join(words) or "0"

    def __add__(self, other: Polynomial | Fraction | int) -> Polynomial:
        terms = dict(self.terms)
        for powers, scale in _polynomial(other).terms.items():
            terms[powers] = terms.get(powers, 0) + scale
        return Polynomial(terms)

    def __sub__(self, other: Polynomial | Fraction | int) -> Polynomial:
        return self + _polynomial(other) * -1

    def __mul__(self, other: Polynomial | Fraction | int) -> Polynomial:
        terms: dict[Powers, Fraction | int] = {}
        for left, m in self.terms.items():
            for right, n in _polynomial(other).terms.items():
                powers = _times(left, right)
                terms[powers] = terms.get(powers, 0) + m * n
        return Polynomial(terms)

    def __pow__(self, exponent: int) -> Polynomial:
        """Raises ValueError for a negative power of what is not a single term of names."""
        if exponent < 0:
            if len(self.terms) != 1 or any(factor.kind != "name" for factor in self.factors()):
                raise ValueError(f"{self!r} has no inverse that is a polynomial")
            ((powers, scale),) = self.terms.items()
            return Polynomial({tuple((f, -e) for f, e in powers): 1 / scale}) ** -exponent
        result = constant(1)
        for _ in range(exponent):
            result = result * self
        return result

    def factors(self) -> Iterable[Factor]:
        """Every factor of every term."""
        return (factor for powers in self.terms for factor, _ in powers)

    @property
    def names(self) -> frozenset[str]:
        """The names in it."""
        found: set[str] = set()
        for factor in self.factors():
            found.update([factor.text] if factor.kind == "name" else (n for a in factor.arguments for n in a.names))
        return frozenset(found)

    @property
    def value(self) -> Fraction | None:
        """The number, if there are no names in it."""
        return self.terms.get((), Fraction(0)) if not any(self.terms) else None

    def collected(self, name: str) -> dict[int, Polynomial] | None:
        """The coefficients of the powers of a name; None if it also stands inside other factors."""
        found: dict[int, dict[Powers, Fraction | int]] = {}
        for powers, scale in self.terms.items():
            exponent = dict(powers).get(Factor(name), 0)
            rest = tuple(item for item in powers if item[0] != Factor(name))
            if any(f.kind != "name" and any(name in a.names for a in f.arguments) for f, _ in rest):
                return None
            found.setdefault(exponent, {})[rest] = scale
        return {exponent: Polynomial(terms) for exponent, terms in found.items()}

    def substitute(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """With names replaced, all at once. Raises ValueError for a negative power of what is no single term."""
        if self.names.isdisjoint(values):
            return self
        total = constant(0)
        for powers, scale in self.terms.items():
            term = constant(scale)
            for factor, exponent in powers:
                term = term * _replaced(factor, values) ** exponent
            total = total + term
        return total

    def at(self, values: Mapping[str, int]) -> int:
        """The value where every name has one. Raises ValueError if that is no integer."""
        result = self.substitute({name: constant(value) for name, value in values.items()}).value
        if result is None or result.denominator != 1:
            raise ValueError(f"this is no integer there: {self if result is None else result}")
        return result.numerator


def constant(value: Fraction | int) -> Polynomial:
    return Polynomial({(): value})


def name(text: str) -> Polynomial:
    return Polynomial({((Factor(text), 1),): 1})


def polynomial_of(dim: Dim) -> Polynomial:
    """A size as a polynomial in its symbols."""
    if not isinstance(dim, Symbolic):
        return constant(dim)
    total = constant(0)
    for monomial, scale in dim.terms:
        term = constant(scale)
        for atom, exponent in monomial:
            arguments = tuple([polynomial_of(a) for a in atom.arguments])
            base = name(atom.text) if atom.kind == "symbol" else _compound(atom.kind, arguments)
            term = term * base**exponent
        total = total + term
    return total


def summed(each: Polynomial, index: str, count: Polynomial) -> Polynomial | None:
    """The sum of `each` over `index` = 1, 2, ..., `count`, in closed form; None if `index` stands inside other factors,
    or divides.
    """
    coefficients = each.collected(index)
    if coefficients is None or min(coefficients, default=0) < 0:
        return None
    sums = power_sums(max(coefficients, default=0), count)
    return total(coefficient * sums[power] for power, coefficient in coefficients.items())


def power_sums(most: int, count: Polynomial) -> list[Polynomial]:
    """The sums of k ** p over k = 1 ... count, for each power p up to `most` (Faulhaber).

    (n + 1) ** (p + 1) - 1 is the sum over k of (k + 1) ** (p + 1) - k ** (p + 1), which the binomial theorem turns into
    the sums of lower powers.
    """
    sums: list[Polynomial] = []
    for power in range(most + 1):
        lower = total(sums[p] * comb(power + 1, p) for p in range(power))
        sums.append(((count + 1) ** (power + 1) - 1 - lower) * Fraction(1, power + 1))
    return sums


def total(parts: Iterable[Polynomial]) -> Polynomial:
    result = constant(0)
    for part in parts:
        result = result + part
    return result


def denominator(polynomial: Polynomial) -> int:
    """The least integer that makes every coefficient whole."""
    return lcm(*[scale.denominator for scale in polynomial.terms.values()])


def ratio(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b where b is a single term of names."""
    try:
        return a * b**-1
    except ValueError:
        return None


def cleared(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Two polynomials whose ratio is a / b, without fractions in them where that is a single term."""
    quotient = ratio(a, b)
    if quotient is None or len(quotient.terms) != 1:
        return a, b
    ((powers, scale),) = quotient.terms.items()
    above = Polynomial({tuple(p for p in powers if p[1] > 0): scale.numerator})
    return above, Polynomial({tuple((f, -e) for f, e in powers if e < 0): scale.denominator})


def _polynomial(value: Polynomial | Fraction | int) -> Polynomial:
    return value if isinstance(value, Polynomial) else constant(value)


def _times(left: Powers, right: Powers) -> Powers:
    exponents = dict(left)
    for factor, exponent in right:
        exponents[factor] = exponents.get(factor, 0) + exponent
    return tuple(sorted((item for item in exponents.items() if item[1]), key=lambda item: (item[0].text, item[1])))


def _replaced(factor: Factor, values: Mapping[str, Polynomial]) -> Polynomial:
    if factor.kind == "name":
        return values.get(factor.text) or (constant(0) if factor.text in values else name(factor.text))
    return _compound(factor.kind, tuple([a.substitute(values) for a in factor.arguments]))


def _compound(kind: str, arguments: tuple[Polynomial, ...]) -> Polynomial:
    """A floor division, remainder, minimum or maximum; a number where all its arguments are."""
    known = [a.value for a in arguments if a.value is not None]
    if len(known) == len(arguments):
        match kind:
            case "//":
                return constant(floor(known[0] / known[1]))
            case "%":
                return constant(known[0] % known[1])
            case "min":
                return constant(min(known))
            case _:
                return constant(max(known))
    text = f"{kind}({', '.join(map(repr, arguments))})"
    return Polynomial({((Factor(text, kind, arguments), 1),): 1})
