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
"""The minimum and maximum value; None if it does not exist or is unknown."""

Coefficient: TypeAlias = "int | Fraction"
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
Terms: TypeAlias = tuple[tuple[Monomial, Coefficient], ...]

NAMED = ("symbol", "index")
"""The kinds of atoms to which a value can be assigned."""


def canonical(coefficients: Mapping[Monomial, Coefficient]) -> Terms:
    """Return the canonical terms with these coefficients."""
    terms = [(monomial, normalize_number(coefficient)) for monomial, coefficient in coefficients.items() if coefficient]
    if len(terms) > 1:
        terms.sort(key=lambda term: (-degree(term[0]), term[0]))
    return tuple(terms)


def normalize_number(value: Coefficient) -> Coefficient:
    """Convert a number to `int` if it is an integer."""
    return value.numerator if value.denominator == 1 else value


def constant(value: Coefficient) -> Terms:
    return (((), normalize_number(value)),) if value else ()


def constant_of(terms: Terms) -> Coefficient | None:
    """Return the value of a constant polynomial; None if it contains atoms."""
    if not terms:
        return 0
    return terms[0][1] if len(terms) == 1 and not terms[0][0] else None


def single(atom: Atom) -> Terms:
    return ((((atom, 1),), 1),)


def only_atom(terms: Terms) -> Atom | None:
    """Return the atom of a polynomial that is a single atom; None for all others."""
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1:
        return None
    atom, exponent = terms[0][0][0]
    return atom if exponent == 1 else None


# Parts ----------------------------------------------------------------------------------------------------------------


def degree(monomial: Monomial) -> int:
    return sum([exponent for _, exponent in monomial])


def atoms_of(terms: Terms) -> Iterator[Atom]:
    """Return the atoms of all terms, without those in the arguments of atoms."""
    return (atom for monomial, _ in terms for atom, _ in monomial)


def names_of(terms: Terms) -> frozenset[str]:
    """Return the names of all symbols and indices."""
    names: set[str] = set()
    for atom in atoms_of(terms):
        names.update([atom.text] if atom.kind in NAMED else (name for a in atom.arguments for name in names_of(a)))
    return frozenset(names)


def size_of(terms: Terms) -> int:
    """Return the number of nodes of the expression."""
    return sum(1 + sum(atom.size for atom, _ in monomial) for monomial, _ in terms)


def denominator(terms: Terms) -> int:
    """Return the least common denominator of the coefficients."""
    return lcm(*[coefficient.denominator for _, coefficient in terms])


def coefficients_of_name(terms: Terms, name: str) -> dict[int, Terms] | None:
    """Return the coefficients of the powers of a name; None if other atoms depend on it."""
    by_power: dict[int, dict[Monomial, Coefficient]] = {}
    for monomial, coefficient in terms:
        power = 0
        other_atoms: list[tuple[Atom, int]] = []
        for atom, exponent in monomial:
            if atom.kind in NAMED and atom.text == name:
                power = exponent
            elif any(name in names_of(a) for a in atom.arguments):
                return None
            else:
                other_atoms.append((atom, exponent))
        by_power.setdefault(power, {})[tuple(other_atoms)] = coefficient
    return {power: canonical(part) for power, part in by_power.items()}


# Arithmetic -----------------------------------------------------------------------------------------------------------


def add(a: Terms, b: Terms, times: Coefficient = 1) -> Terms:
    """Return `a + b * times`."""
    coefficients = dict(a)
    for monomial, coefficient in b:
        coefficients[monomial] = coefficients.get(monomial, 0) + coefficient * times
    _check_length(coefficients)
    return canonical(coefficients)


def subtract(a: Terms, b: Terms) -> Terms:
    return add(a, b, -1)


def scaled(a: Terms, factor: Coefficient) -> Terms:
    return tuple([(monomial, normalize_number(coefficient * factor)) for monomial, coefficient in a]) if factor else ()


def multiply(a: Terms, b: Terms) -> Terms:
    """Return `a * b`. The number of terms is not limited if an operand has a single term."""
    coefficients: dict[Monomial, Coefficient] = {}
    for left, m in a:
        for right, n in b:
            monomial = multiply_monomials(left, right)
            coefficients[monomial] = coefficients.get(monomial, 0) + m * n
        if len(a) > 1 and len(b) > 1:
            _check_length(coefficients)
    return canonical(coefficients)


def raise_to_power(a: Terms, exponent: int) -> Terms:
    """Return `a ** exponent`. Raises ValueError for a negative exponent if `a` has no `inverse`."""
    base, result = (a, constant(1)) if exponent >= 0 else (inverse(a), constant(1))
    for _ in range(abs(exponent)):
        result = multiply(result, base)
    return result


def inverse(a: Terms) -> Terms:
    """Return 1 / a. Raises ValueError unless `a` is a number or a term of names, ZeroDivisionError if it is 0."""
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
    """Return `left / right`; None if the quotient has negative exponents."""
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) - exponent
    if any(exponent < 0 for exponent in exponents.values()):
        return None
    return tuple(sorted(item for item in exponents.items() if item[1]))


def _check_length(coefficients: Mapping[Monomial, Coefficient]) -> None:
    if len(coefficients) > MAX_TERMS:
        raise OverflowError(f"this expression has more than {MAX_TERMS:,} terms")


MAX_DEGREE = 8


def bounds_of(terms: Terms) -> Bounds:
    """Return a lower and an upper bound of the values of a polynomial."""
    high = _lower_bound(scaled(terms, -1))
    return _lower_bound(terms), None if high is None else -high


def is_at_least(terms: Terms, minimum: int) -> bool:
    """Whether `minimum` is a provable lower bound of a polynomial."""
    low = _lower_bound(terms)
    return low is not None and low >= minimum


def quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Return bounds of `a // b`, which are unknown unless b is positive."""
    divisor_low, divisor_high = b
    if divisor_low is None or divisor_low < 1:
        return None, None
    low, high = a
    if low is not None:
        low = low // divisor_low if low < 0 else 0 if divisor_high is None else low // divisor_high
    if high is not None:
        high = high // divisor_low if high >= 0 else -1 if divisor_high is None else high // divisor_high
    return low, high


def atom_bounds(kind: str, arguments: Sequence[Terms]) -> Bounds:
    """Return the bounds of the values of an atom."""
    limits = [bounds_of(argument) for argument in arguments]
    match kind:
        case "//":
            return quotient_bounds(*limits)
        case "%":
            low, high = limits[1]
            return (0, None if high is None else high - 1) if low is not None and low >= 1 else (None, None)
        case _:
            lows = [low for low, _ in limits if low is not None]
            highs = [high for _, high in limits if high is not None]
            if kind == "min":
                return min(lows) if len(lows) == len(limits) else None, min(highs, default=None)
            return max(lows, default=None), max(highs) if len(highs) == len(limits) else None


def _lower_bound(terms: Terms) -> int | None:
    """Return a lower bound, found by substituting `low + x` with x >= 0 for each atom; None if there is none."""
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
                for monomial_part, scale in parts.items():
                    raised[monomial_part] = raised.get(monomial_part, 0) + scale * low
                    product = multiply_monomials(monomial_part, ((atom, 1),))
                    raised[product] = raised.get(product, 0) + scale
                parts = raised
        for monomial_part, scale in parts.items():
            shifted[monomial_part] = shifted.get(monomial_part, 0) + scale
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
