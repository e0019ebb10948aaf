"""Polynomials as plain data: sorted tuples of terms, and the arithmetic of these tuples.

    terms    = ((monomial, coefficient), ...)    no coefficient is 0, highest degree first; () is 0
    monomial = ((atom, exponent), ...)           no exponent is 0, sorted by atom; () is 1
    atom     = a symbol, or an operation on polynomials that cannot be expanded

Coefficients are integers or fractions, exponents may be negative. There is one form for each polynomial in its atoms,
so `==` compares polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, lcm
from typing import TYPE_CHECKING, TypeAlias

from archspec.core.record import Record

if TYPE_CHECKING:
    from fractions import Fraction

MAX_TERMS = 1_000


class Atom(Record):
    """A factor that cannot be expanded. Its `kind` is

    - "symbol", any positive integer, or "index", any integer; `text` is the name;
    - "//", "%", "min" or "max" of `arguments`, which have integer coefficients and no negative exponents;
    - "()", the one argument in brackets: a factor that is not multiplied out.

    Atoms sort by `text`; `bounds` are those of its values, and `size` counts the nodes of the expression.
    """

    text: str
    kind: str = "symbol"
    arguments: tuple[Terms, ...] = ()
    bounds: Bounds = (1, None)
    size: int = 1


Bounds: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value, None where there is none or it is not known."""

Coefficient: TypeAlias = "int | Fraction"
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
Terms: TypeAlias = tuple[tuple[Monomial, Coefficient], ...]

NAMED = ("symbol", "index")
"""The kinds of atoms that have a value of their own."""


def canonical(found: Mapping[Monomial, Coefficient]) -> Terms:
    """The terms with these coefficients."""
    kept = [(monomial, normalize_number(coefficient)) for monomial, coefficient in found.items() if coefficient]
    if len(kept) > 1:
        kept.sort(key=lambda term: (-degree(term[0]), term[0]))
    return tuple(kept)


def normalize_number(value: Coefficient) -> Coefficient:
    """The same number, an `int` if it is an integer."""
    return value.numerator if value.denominator == 1 else value


def constant(value: Coefficient) -> Terms:
    return (((), normalize_number(value)),) if value else ()


def constant_of(terms: Terms) -> Coefficient | None:
    """The number that a polynomial is; None if there are atoms in it."""
    if not terms:
        return 0
    return terms[0][1] if len(terms) == 1 and not terms[0][0] else None


def single(atom: Atom) -> Terms:
    return ((((atom, 1),), 1),)


def only_atom(terms: Terms) -> Atom | None:
    """The atom, if a polynomial is one and nothing else."""
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1:
        return None
    atom, exponent = terms[0][0][0]
    return atom if exponent == 1 else None


# Parts ----------------------------------------------------------------------------------------------------------------


def degree(monomial: Monomial) -> int:
    return sum([exponent for _, exponent in monomial])


def atoms_of(terms: Terms) -> Iterator[Atom]:
    """The atoms of all terms, not those in the arguments of others."""
    return (atom for monomial, _ in terms for atom, _ in monomial)


def names_of(terms: Terms) -> frozenset[str]:
    """The names of all symbols and indices."""
    found: set[str] = set()
    for atom in atoms_of(terms):
        found.update([atom.text] if atom.kind in NAMED else (name for a in atom.arguments for name in names_of(a)))
    return frozenset(found)


def size_of(terms: Terms) -> int:
    """The nodes of the expression."""
    return sum(1 + sum(atom.size for atom, _ in monomial) for monomial, _ in terms)


def denominator(terms: Terms) -> int:
    """The least integer that makes every coefficient whole."""
    return lcm(*[coefficient.denominator for _, coefficient in terms])


def coefficients_of_name(terms: Terms, name: str) -> dict[int, Terms] | None:
    """The coefficients of the powers of a name; None if other atoms depend on it."""
    found: dict[int, dict[Monomial, Coefficient]] = {}
    for monomial, coefficient in terms:
        power = 0
        rest: list[tuple[Atom, int]] = []
        for atom, exponent in monomial:
            if atom.kind in NAMED and atom.text == name:
                power = exponent
            elif any(name in names_of(a) for a in atom.arguments):
                return None
            else:
                rest.append((atom, exponent))
        found.setdefault(power, {})[tuple(rest)] = coefficient
    return {power: canonical(part) for power, part in found.items()}


# Arithmetic -----------------------------------------------------------------------------------------------------------


def add(a: Terms, b: Terms, times: Coefficient = 1) -> Terms:
    """`a + b * times`."""
    found = dict(a)
    for monomial, coefficient in b:
        found[monomial] = found.get(monomial, 0) + coefficient * times
    _check_length(found)
    return canonical(found)


def subtract(a: Terms, b: Terms) -> Terms:
    return add(a, b, -1)


def scaled(a: Terms, factor: Coefficient) -> Terms:
    return tuple([(monomial, normalize_number(coefficient * factor)) for monomial, coefficient in a]) if factor else ()


def multiply(a: Terms, b: Terms) -> Terms:
    """`a * b`. With a single term it has no more terms than the other, and may have any number."""
    found: dict[Monomial, Coefficient] = {}
    for left, m in a:
        for right, n in b:
            monomial = multiply_monomials(left, right)
            found[monomial] = found.get(monomial, 0) + m * n
        if len(a) > 1 and len(b) > 1:
            _check_length(found)
    return canonical(found)


def raise_to_power(a: Terms, exponent: int) -> Terms:
    """Raises ValueError for a negative power of what has no `inverse`."""
    base, result = (a, constant(1)) if exponent >= 0 else (inverse(a), constant(1))
    for _ in range(abs(exponent)):
        result = multiply(result, base)
    return result


def inverse(a: Terms) -> Terms:
    """1 / a. Raises ValueError unless `a` is a number or a single term of names, ZeroDivisionError if it is 0."""
    from fractions import Fraction  # takes long to import, and sizes have none

    if not a:
        raise ZeroDivisionError("division of an expression by zero")
    if len(a) > 1 or any(atom.kind not in NAMED for atom in atoms_of(a)):
        raise ValueError("this has no inverse that is a polynomial")
    monomial, coefficient = next(iter(a))
    return ((tuple([(atom, -exponent) for atom, exponent in monomial]), normalize_number(1 / Fraction(coefficient))),)


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(item for item in exponents.items() if item[1]))


def divide_monomials(left: Monomial, right: Monomial) -> Monomial | None:
    """`left / right`, None if that has negative exponents."""
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) - exponent
    if any(exponent < 0 for exponent in exponents.values()):
        return None
    return tuple(sorted(item for item in exponents.items() if item[1]))


def _check_length(found: Mapping[Monomial, Coefficient]) -> None:
    if len(found) > MAX_TERMS:
        raise OverflowError(f"this expression has more than {MAX_TERMS:,} terms")


MAX_DEGREE = 8


def bounds_of(terms: Terms) -> Bounds:
    """Values that a polynomial never goes below and above."""
    high = _lowest(scaled(terms, -1))
    return _lowest(terms), None if high is None else -high


def is_at_least(terms: Terms, least: int) -> bool:
    """Whether a polynomial is certain not to go below `least`."""
    low = _lowest(terms)
    return low is not None and low >= least


def quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of `a // b`; unknown unless b is positive."""
    least, most = b
    if least is None or least < 1:
        return None, None
    low, high = a
    if low is not None:
        low = low // least if low < 0 else 0 if most is None else low // most
    if high is not None:
        high = high // least if high >= 0 else -1 if most is None else high // most
    return low, high


def atom_bounds(kind: str, arguments: Sequence[Terms]) -> Bounds:
    """The bounds of an operation on polynomials, by its kind of atom."""
    limits = [bounds_of(argument) for argument in arguments]
    match kind:
        case "//":
            return quotient_bounds(*limits)
        case "%":
            low, high = limits[1]
            return (0, None if high is None else high - 1) if low is not None and low >= 1 else (None, None)
        case _:
            least = [low for low, _ in limits if low is not None]
            most = [high for _, high in limits if high is not None]
            if kind == "min":
                return min(least) if len(least) == len(limits) else None, min(most, default=None)
            return max(least, default=None), max(most) if len(most) == len(limits) else None


def _lowest(terms: Terms) -> int | None:
    """The least value, if it can be seen by counting every atom from its own least value."""
    if not terms:
        return 0
    if degree(terms[0][0]) > MAX_DEGREE:
        return None
    shifted: dict[Monomial, Coefficient] = {}
    for monomial, coefficient in terms:
        parts: dict[Monomial, Coefficient] = {(): coefficient}
        for atom, exponent in monomial:
            low = atom.bounds[0]
            if low is None or exponent < 0:
                return None
            for _ in range(exponent):
                raised: dict[Monomial, Coefficient] = {}
                for part, scale in parts.items():
                    raised[part] = raised.get(part, 0) + scale * low
                    longer = multiply_monomials(part, ((atom, 1),))
                    raised[longer] = raised.get(longer, 0) + scale
                parts = raised
        for part, scale in parts.items():
            shifted[part] = shifted.get(part, 0) + scale
    total = shifted.pop((), 0)
    for monomial, coefficient in shifted.items():
        if coefficient < 0:
            for atom, exponent in monomial:
                low, high = atom.bounds
                if low is None or high is None:
                    return None
                coefficient *= (high - low) ** exponent
            total += coefficient
    return floor(total)
