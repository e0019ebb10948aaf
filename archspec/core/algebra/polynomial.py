"""The values of the algebra, integers and polynomials, and the functions on both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb
from typing import TypeAlias

from archspec.core.algebra.division import bracket, extreme, floor, operation_of_atom, remainder
from archspec.core.algebra.notation import latex, text
from archspec.core.algebra.terms import (
    NAMED,
    Atom,
    Bounds,
    Coefficient,
    Monomial,
    Terms,
    add,
    atoms_of,
    bounds_of,
    canonical,
    constant,
    constant_of,
    inverse,
    multiply,
    names_of,
    only_atom,
    raise_to_power,
    scaled,
    single,
    subtract,
)
from archspec.core.algebra.terms import coefficients_of_name as terms_by_power

MAX_POWER = 64


Method: TypeAlias = "Callable[[Polynomial, Expression], Expression]"


def _operator(compute: Callable[[Terms, Terms], Terms]) -> tuple[Method, Method]:
    """The methods of an operator with a polynomial on the left, and on the right."""

    def forward(self: Polynomial, other: Expression) -> Expression:
        return expression(compute(self.terms, terms_of(other))) if _is_expression(other) else NotImplemented

    def reverse(self: Polynomial, other: Expression) -> Expression:
        return expression(compute(terms_of(other), self.terms)) if _is_expression(other) else NotImplemented

    return forward, reverse


class Polynomial:
    """A polynomial that is not an integer. Immutable and hashable; `+ - * // % **` accept integers on either side.

    Results that are integers are plain `int`. `==` is structural: equal polynomials are equal for all values of the
    symbols for which both are defined; the converse does not always hold where atoms are involved. `//` and `%` round
    down as Python's do. `str` writes a polynomial as Python reads it, and the format `,` groups digits.

    Raises OverflowError for results that are too large an expression, and ZeroDivisionError for a divisor of 0.
    """

    __slots__ = ("_bounds", "_hash", "_text", "terms")

    terms: Terms
    """Monomials with their coefficients, highest degree first."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._hash: int | None = None
        self._text: str | None = None
        self._bounds: Bounds | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Polynomial):
            return self is other or self.terms == other.terms
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = text(self.terms)
        return self._text

    __repr__ = __str__

    def __format__(self, digits: str) -> str:
        return text(self.terms, digits=digits)

    def at(self, values: Mapping[str, int]) -> int:
        """The integer for these values of the names. Raises ValueError if one is missing, or it is not an integer."""
        return evaluate(self, values)

    @property
    def bounds(self) -> Bounds:
        """As the function `bounds`."""
        if self._bounds is None:
            self._bounds = bounds_of(self.terms)
        return self._bounds

    @property
    def symbol(self) -> str | None:
        """The name, if this is one symbol and nothing else."""
        atom = only_atom(self.terms)
        return atom.text if atom is not None and atom.kind == "symbol" else None

    def __neg__(self) -> Expression:
        return expression(scaled(self.terms, -1))

    __add__, __radd__ = _operator(add)
    __sub__, __rsub__ = _operator(subtract)
    __mul__, __rmul__ = _operator(multiply)
    __floordiv__, __rfloordiv__ = _operator(floor)
    __mod__, __rmod__ = _operator(remainder)

    def __pow__(self, exponent: int) -> Expression:
        if exponent.__class__ is not int:
            return NotImplemented
        if exponent < 0:
            raise ValueError("negative powers are ratios: use `ratio(1, x)`")
        if exponent > MAX_POWER:
            raise OverflowError(f"this power is above {MAX_POWER}")
        return expression(raise_to_power(self.terms, exponent))


Expression: TypeAlias = int | Polynomial


def expression(terms: Terms) -> Expression:
    """Return the value with these terms."""
    number = constant_of(terms)
    return number if isinstance(number, int) else Polynomial(terms)


def terms_of(value: Expression) -> Terms:
    return value.terms if isinstance(value, Polynomial) else constant(value)


def _is_expression(value: object) -> bool:
    return value.__class__ is int or isinstance(value, Polynomial)


# Creation -------------------------------------------------------------------------------------------------------------


def symbol(name: str) -> Polynomial:
    """Return the symbol with a name, any positive integer. Raises ValueError unless `name` is an identifier."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a name")
    return Polynomial(single(Atom(name)))


def index(name: str) -> Polynomial:
    """Return the index with a name: as a symbol, but any integer."""
    return Polynomial(single(Atom(name, "index", bounds=(None, None))))


def ratio(a: Expression, b: Expression) -> Expression:
    """a / b exactly. Raises ValueError unless b is a number or a single term of names."""
    return expression(multiply(terms_of(a), inverse(terms_of(b))))


def dim_min(a: Expression, b: Expression) -> Expression:
    """Return the smaller of two values, or an expression `min(a, b)` if they cannot be compared."""
    return expression(extreme("min", terms_of(a), terms_of(b)))


def dim_max(a: Expression, b: Expression) -> Expression:
    """Return the larger of two values, or an expression `max(a, b)` if they cannot be compared."""
    return expression(extreme("max", terms_of(a), terms_of(b)))


def weighted_sum(parts: Iterable[tuple[Expression, int]]) -> Expression:
    """Return the sum of values, each multiplied by a number; the number of terms is not limited."""
    coefficients: dict[Monomial, Coefficient] = {}
    for value, times in parts:
        for monomial, coefficient in terms_of(value):
            coefficients[monomial] = coefficients.get(monomial, 0) + coefficient * times
    return expression(canonical(coefficients))


def multiply_unexpanded(factors: Iterable[Expression]) -> Expression:
    """Return the product of values, 1 if there are none. Factors that are sums are not expanded."""
    result = constant(1)
    for factor in factors:
        result = multiply(result, bracket(terms_of(factor)))
    return expression(result)


def expand(value: Expression) -> Expression:
    """Expand all products of sums. Raises OverflowError if it has too many terms."""
    return expression(_expand_terms(value.terms)) if isinstance(value, Polynomial) else value


def _expand_terms(terms: Terms) -> Terms:
    if all(atom.kind != "()" for atom in atoms_of(terms)):
        return terms
    result: Terms = ()
    for monomial, coefficient in terms:
        product = constant(coefficient)
        for atom, exponent in monomial:
            factor = _expand_terms(atom.arguments[0]) if atom.kind == "()" else single(atom)
            product = multiply(product, raise_to_power(factor, exponent))
        result = add(result, product)
    return result


# Queries --------------------------------------------------------------------------------------------------------------


def symbols(value: Expression) -> frozenset[str]:
    """Return the names of the symbols and indices in a value."""
    return names_of(value.terms) if isinstance(value, Polynomial) else frozenset()


def atoms(value: Expression) -> list[Atom]:
    """Return the atoms of all terms, without those in the arguments of atoms."""
    return list(atoms_of(terms_of(value)))


def bounds(value: Expression) -> Bounds:
    """The values that an expression never goes below and above, for all positive values of its symbols; None where not
    known.
    """
    return value.bounds if isinstance(value, Polynomial) else (value, value)


def has_lower_bound(value: Expression, minimum: int) -> bool:
    """Whether the bounds of `value` imply `value >= minimum`."""
    low = bounds(value)[0]
    return low is not None and low >= minimum


def is_at_least(value: Expression, minimum: int) -> bool:
    """Whether `value >= minimum` is provable, also by replacing a minimum, maximum or quotient by one of its bounds."""
    if has_lower_bound(value, minimum):
        return True
    for monomial, coefficient in terms_of(value):
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        bounds = _bounds_of_atom(atom, coefficient > 0) if atom is not None else ()
        if bounds:
            term = expression(((monomial, coefficient),))
            replacements = [expression(multiply(constant(coefficient), bound)) for bound in bounds]
            return any(is_at_least(value - term + replacement, minimum) for replacement in replacements)
    return False


def _bounds_of_atom(atom: Atom, below: bool) -> Sequence[Terms]:
    """Values that a minimum, maximum or quotient is never below, or never above."""
    if atom.kind == ("max" if below else "min"):
        return atom.arguments
    divisor = constant_of(atom.arguments[1]) if atom.kind == "//" else None
    if divisor is None or divisor < 1:
        return []
    dividend = add(atom.arguments[0], constant(1 - divisor)) if below else atom.arguments[0]
    return [multiply(dividend, inverse(constant(divisor)))]


def number(value: Expression) -> Coefficient | None:
    """Return the value of a constant; None if there are symbols in it."""
    return constant_of(terms_of(value))


def coefficients_by_power(value: Expression, name: str) -> dict[int, Expression] | None:
    """Return the coefficients of the powers of a name; None if it also appears inside other atoms."""
    coefficients = terms_by_power(terms_of(value), name)
    return None if coefficients is None else {power: expression(part) for power, part in coefficients.items()}


def clear_fractions(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Return two values with the ratio a / b: without fractions if the ratio is a single term, otherwise `a` and `b`
    unchanged.
    """
    try:
        ((monomial, coefficient),) = multiply(terms_of(a), inverse(terms_of(b)))
    except (ValueError, ZeroDivisionError):  # there is no such ratio, or it has several terms
        return a, b
    above = tuple([item for item in monomial if item[1] > 0])
    below = tuple([(atom, -exponent) for atom, exponent in monomial if exponent < 0])
    return expression(((above, coefficient.numerator),)), expression(((below, coefficient.denominator),))


# Substitution ---------------------------------------------------------------------------------------------------------


def substitute(value: Expression, values: Mapping[str, Expression]) -> Expression:
    """`value` with the names in `values` replaced, all at once.

    Raises ZeroDivisionError if a divisor becomes zero, OverflowError if the result is too large an expression, and
    ValueError for a negative power of what has no inverse.
    """
    return expression(_substitute_terms(value.terms, values)) if isinstance(value, Polynomial) else value


def evaluate(value: Expression, values: Mapping[str, int]) -> int:
    """The integer that a value is where all names have one. Raises ValueError if it is not an integer."""
    result = substitute(value, values)
    if not isinstance(result, int):
        raise ValueError(f"not an integer for these values: {result}")
    return result


def _substitute_terms(terms: Terms, values: Mapping[str, Expression]) -> Terms:
    coefficients: dict[Monomial, Coefficient] = {}
    for monomial, coefficient in terms:
        unchanged: list[tuple[Atom, int]] = []
        term = constant(coefficient)
        for atom, exponent in monomial:
            replacement = _replace_atom(atom, values)
            if replacement is None:
                unchanged.append((atom, exponent))
            else:
                term = multiply(term, raise_to_power(replacement, exponent))
        for product, scale in multiply(term, ((tuple(unchanged), 1),)) if unchanged else term:
            coefficients[product] = coefficients.get(product, 0) + scale
    return canonical(coefficients)


def _replace_atom(atom: Atom, values: Mapping[str, Expression]) -> Terms | None:
    """Return the replacement of an atom; None if it does not change."""
    if atom.kind in NAMED:
        return terms_of(values[atom.text]) if atom.text in values else None
    arguments = tuple([_substitute_terms(argument, values) for argument in atom.arguments])
    return operation_of_atom(atom.kind, arguments) if arguments != atom.arguments else None


# Text and sums --------------------------------------------------------------------------------------------------------


def to_text(value: Expression, order: Sequence[str] = (), collect: Sequence[str] = ()) -> str:
    """Format a value as text that Python also reads; see `notation.text`."""
    return text(terms_of(value), order, collect)


def to_latex(value: Expression, order: Sequence[str] = (), collect: Sequence[str] = ()) -> str:
    """Format a value as LaTeX, for math mode."""
    return latex(terms_of(value), order, collect)


def sum_over_index(term: Expression, index: str, count: Expression) -> Expression | None:
    """Return the sum of `term` over `index` = 1, 2, ..., `count`; None if atoms contain `index` or it divides."""
    coefficients = coefficients_by_power(term, index)
    if coefficients is None or min(coefficients, default=0) < 0:
        return None
    sums = power_sums(max(coefficients, default=0), count)
    return sum([coefficient * sums[power] for power, coefficient in coefficients.items()])


def power_sums(max_power: int, count: Expression) -> list[Expression]:
    """Return the sums of k ** p over k = 1 ... count, for each power p up to `max_power` (Faulhaber).

    (n + 1) ** (p + 1) - 1 is the sum over k of (k + 1) ** (p + 1) - k ** (p + 1), which the binomial theorem turns into
    the sums of lower powers.
    """
    sums: list[Expression] = []
    for power in range(max_power + 1):
        lower = sum([sums[p] * comb(power + 1, p) for p in range(power)])
        sums.append(ratio((count + 1) ** (power + 1) - 1 - lower, power + 1))
    return sums
