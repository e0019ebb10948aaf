"""Sizes of tensors: integers, or canonical integer expressions over symbols that stand for positive integers.

A `Symbolic` is a polynomial with integer coefficients whose atoms are symbols, floor divisions, remainders, minima and
maxima. It is kept in one canonical form, so `==` is structural: equal forms are equal for all values of the symbols for
which both are defined. The converse does not always hold: what is unequal is only not known to be equal.

Arithmetic folds to a plain `int` wherever the result is constant, and plain integers never pass through this module's
classes. An expression that grows beyond what any shape needs raises OverflowError. The names that are not about sizes
themselves (`collected`, `terms_of`, ...) serve `division.py`, the other half of the algebra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

LARGEST = 2**63 - 1
BUDGET = 64
_DEGREE = 16


class Atom(NamedTuple):
    """A factor of a monomial: a symbol (`kind` "symbol") or "//", "%", "min", "max" of `arguments`.

    `text` is unique to the atom, so atoms sort by it; `size` counts the nodes of the expression.
    """

    text: str
    kind: str
    arguments: tuple[Dim, ...]
    size: int


Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
"""Atoms with exponents, sorted by atom; () is the constant."""

Bounds: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value, None where there is none or it is not known."""


class Symbolic:
    """An integer expression that is not constant. Immutable and hashable; `+ - * // % **` accept integers either side.

    `//` and `%` round down as Python's do. A zero constant divisor raises ZeroDivisionError.
    """

    __slots__ = ("_bounds", "_hash", "_text", "terms")

    terms: tuple[tuple[Monomial, int], ...]
    """Monomials with non-zero coefficients, highest degree first."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)
        self._text: str | None = None
        self._bounds: Bounds | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Symbolic):
            return self is other or (self._hash == other._hash and self.terms == other.terms)
        return NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _sum_text(self.terms)
        return self._text

    __repr__ = __str__

    @property
    def symbol(self) -> str | None:
        """The name, if this is one symbol and nothing else."""
        (monomial, coefficient), *rest = self.terms
        if rest or coefficient != 1 or len(monomial) != 1:
            return None
        atom, exponent = monomial[0]
        return atom.text if exponent == 1 and atom.kind == "symbol" else None

    def __neg__(self) -> Dim:
        return _scaled(self, -1)

    def __add__(self, other: Dim) -> Dim:
        return _sum(self, other) if _is_dim(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return _sum(self, -other) if _is_dim(other) else NotImplemented

    def __rsub__(self, other: Dim) -> Dim:
        return _sum(-self, other) if _is_dim(other) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return _product(self, other) if _is_dim(other) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return _division().floor(self, other) if _is_dim(other) else NotImplemented

    def __rfloordiv__(self, other: Dim) -> Dim:
        return _division().floor(other, self) if _is_dim(other) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return _division().remainder(self, other) if _is_dim(other) else NotImplemented

    def __rmod__(self, other: Dim) -> Dim:
        return _division().remainder(other, self) if _is_dim(other) else NotImplemented

    def __pow__(self, exponent: int) -> Dim:
        if exponent.__class__ is not int:
            return NotImplemented
        if exponent < 0:
            raise ValueError("a dimension has no negative powers")
        if exponent > _DEGREE:
            raise too_large()
        result: Dim = 1
        for _ in range(exponent):
            result = result * self
        return result


Dim: TypeAlias = int | Symbolic


def symbol(name: str) -> Symbolic:
    """The symbol of that name, any positive integer. Raises ValueError unless `name` is an identifier."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a name")
    return single(Atom(name, "symbol", (), 1))


def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in `dim`."""
    found: set[str] = set()
    for atom in atoms_of(dim):
        found.update([atom.text] if atom.kind == "symbol" else (n for a in atom.arguments for n in symbols(a)))
    return frozenset(found)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of `dims`, 1 if there are none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def dim_min(a: Dim, b: Dim) -> Dim:
    """The smaller of two dimensions: itself where it is known which, else an expression `min(a, b)`."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else _division().extreme("min", a, b)


def dim_max(a: Dim, b: Dim) -> Dim:
    """The larger of two dimensions: itself where it is known which, else an expression `max(a, b)`."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else _division().extreme("max", a, b)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """`dim` with the symbols named in `values` replaced, all at once.

    Raises ZeroDivisionError if a divisor becomes zero, OverflowError if the result is no 64-bit integer.
    """
    if not isinstance(dim, Symbolic):
        return dim
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        term: Dim = coefficient
        for atom, exponent in monomial:
            term = term * _replaced(atom, values) ** exponent
        total = total + term
    return checked(total) if isinstance(total, int) else total


def bounds(dim: Dim) -> Bounds:
    """Values that `dim` never goes below and above, over all positive values of its symbols; None where not known."""
    if not isinstance(dim, Symbolic):
        return dim, dim
    if dim._bounds is None:  # pyright: ignore[reportPrivateUsage]
        lowest = _division().lowest
        high = lowest(tuple((m, -c) for m, c in dim.terms))
        dim._bounds = lowest(dim.terms), None if high is None else -high  # pyright: ignore[reportPrivateUsage]
    return dim._bounds  # pyright: ignore[reportPrivateUsage]


def at_least(dim: Dim, least: int) -> bool:
    """Whether `dim >= least` is certain."""
    low = bounds(dim)[0]
    return low is not None and low >= least


# Polynomials ----------------------------------------------------------------------------------------------------------


def _division():  # the half of the algebra that most specs never need
    from archspec.dims import division

    return division


def _is_dim(value: object) -> bool:
    return value.__class__ is int or isinstance(value, Symbolic)


def single(atom: Atom) -> Symbolic:
    return Symbolic(((((atom, 1),), 1),))


def terms_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Symbolic) else (((), dim),) if dim else ()


def atoms_of(dim: Dim) -> Iterator[Atom]:
    return (atom for monomial, _ in terms_of(dim) for atom, _ in monomial)


def degree(monomial: Monomial) -> int:
    return sum(exponent for _, exponent in monomial)


def size_of(dim: Dim) -> int:
    return sum(1 + sum(atom.size for atom, _ in monomial) for monomial, _ in terms_of(dim))


def too_large() -> OverflowError:
    return OverflowError("this dimension is too large an expression")


def checked(value: int) -> int:
    if not -LARGEST <= value <= LARGEST:
        raise OverflowError("this dimension is beyond the 64-bit range")
    return value


def collected(terms: Mapping[Monomial, int]) -> Dim:
    """The dimension with these terms, in canonical order."""
    kept = [(monomial, checked(coefficient)) for monomial, coefficient in terms.items() if coefficient]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=lambda term: (-degree(term[0]), term[0]))
    result = Symbolic(tuple(kept))
    if degree(kept[0][0]) > _DEGREE or size_of(result) > BUDGET:
        raise too_large()
    return result


def _sum(a: Dim, b: Dim) -> Dim:
    terms = dict(terms_of(a))
    for monomial, coefficient in terms_of(b):
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return collected(terms)


def _scaled(a: Dim, factor: int) -> Dim:
    return collected({monomial: coefficient * factor for monomial, coefficient in terms_of(a)})


def _product(a: Dim, b: Dim) -> Dim:
    terms: dict[Monomial, int] = {}
    for left, m in terms_of(a):
        for right, n in terms_of(b):
            monomial = times(left, right)
            terms[monomial] = terms.get(monomial, 0) + m * n
    return collected(terms)


def times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(exponents.items()))


def over(left: Monomial, right: Monomial) -> Monomial | None:
    """`left / right`, None if that is no monomial."""
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) - exponent
    if any(exponent < 0 for exponent in exponents.values()):
        return None
    return tuple(sorted(item for item in exponents.items() if item[1]))


def _replaced(atom: Atom, values: Mapping[str, Dim]) -> Dim:
    if atom.kind == "symbol":
        return values.get(atom.text, single(atom))
    first, *rest = [substitute(a, values) for a in atom.arguments]
    for other in rest:
        match atom.kind:
            case "//":
                first = first // other
            case "%":
                first = first % other
            case "min":
                first = dim_min(first, other)
            case _:
                first = dim_max(first, other)
    return first


# Text -----------------------------------------------------------------------------------------------------------------


def _sum_text(terms: tuple[tuple[Monomial, int], ...]) -> str:
    first, *rest = sorted(terms, key=lambda term: term[1] < 0)
    text = _term_text(*first, alone=first[1] > 0)
    text = f"-{text}" if first[1] < 0 else text
    for monomial, coefficient in rest:
        text += f" {'-' if coefficient < 0 else '+'} {_term_text(monomial, coefficient, alone=True)}"
    return text


def _term_text(monomial: Monomial, coefficient: int, alone: bool) -> str:
    """A term without its sign; `alone` says that a single `//` or `%` in it needs no brackets."""
    factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
    alone = alone and not factors and len(monomial) == 1
    for atom, exponent in sorted(monomial, key=lambda item: item[0].kind in ("//", "%")):
        bare = atom.kind not in ("//", "%") or (alone and exponent == 1)
        factors.append((atom.text if bare else f"({atom.text})") + (f"**{exponent}" if exponent > 1 else ""))
    return "*".join(factors)


def operand_text(operand: Dim, left: bool) -> str:
    terms = terms_of(operand)
    simple = len(terms) == 1 and terms[0][1] > 0 and all(atom.kind not in ("//", "%") for atom in atoms_of(operand))
    if not left and isinstance(operand, Symbolic):
        simple = simple and operand.symbol is not None
    return str(operand) if simple or operand == 0 else f"({operand})"
