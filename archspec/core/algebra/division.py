"""Floor division, remainders, minima and maxima of polynomials, in canonical form.

Fractions are cleared first: `a // b` is `(k*a) // (k*b)`, so that the arguments of an atom always have integer
coefficients and no negative exponents. Multiples of the divisor, constants known from bounds, and common factors are
then extracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import gcd, lcm

from archspec.core.algebra.notation import division, text
from archspec.core.algebra.terms import (
    Atom,
    Coefficient,
    Monomial,
    Terms,
    add,
    atom_bounds,
    atoms_of,
    bounds_of,
    canonical,
    constant,
    constant_of,
    degree,
    denominator,
    divide_monomials,
    inverse,
    is_at_least,
    multiply,
    multiply_monomials,
    only_atom,
    quotient_bounds,
    scaled,
    single,
    size_of,
    subtract,
)

MAX_ATOM_NODES = 64
MAX_STEPS = 64
MAX_ALTERNATIVES = 8


def operation_of_atom(kind: str, arguments: Sequence[Terms]) -> Terms:
    """Apply the operation of atoms of a kind to arguments."""
    match kind:
        case "//":
            return floor(*arguments)
        case "%":
            return remainder(*arguments)
        case "()":
            return bracket(*arguments)
        case _:
            return reduce(lambda a, b: extreme(kind, a, b), arguments)


@lru_cache(maxsize=1024)
def floor(a: Terms, b: Terms) -> Terms:
    """Return `a // b`. Raises ZeroDivisionError if b is 0."""
    (a, b), _ = _clear_fractions(a, b)
    if _is_negative(b):
        a, b = scaled(a, -1), scaled(b, -1)
    quotient, left = _divide(a, b)
    value = _constant_quotient(left, b)
    if value is not None:
        return add(quotient, constant(value))
    common, part, divisor = _cancel_common_factor(left, b)
    if common is not None:
        return add(quotient, floor(part, divisor))
    number = constant_of(b)
    if number is not None:
        step, offset = _common_step(left, int(number))
        if step > 1:
            part = _divide_exactly(subtract(left, constant(offset)), step)
            return add(quotient, floor(part, constant(number // step)))
        nested = _match_nested_floor(left)
        if nested is not None:
            part, factor, summands = nested
            return add(quotient, floor(add(part, summands, factor), constant(number * factor)))
        reduced = _match_remainder(left)
        if reduced is not None and reduced[1] % number == 0:
            part, factor = reduced
            return add(quotient, remainder(floor(part, b), constant(factor // number)))
    return add(quotient, _build_atom("//", (left, b)))


def remainder(a: Terms, b: Terms) -> Terms:
    """Return `a % b`, which has the sign of b. Raises ZeroDivisionError if b is 0."""
    (a, b), scale = _clear_fractions(a, b)
    if scale is not None:
        return multiply(remainder(a, b), scale)
    if _is_negative(b):
        return scaled(remainder(scaled(a, -1), scaled(b, -1)), -1)
    number = constant_of(b)
    if number is not None:
        a = _remove_remainders(a, int(number))
    _, left = _divide(a, b)
    value = _constant_quotient(left, b)
    if value is not None:
        return add(left, b, -value)
    common, part, divisor = _cancel_common_factor(left, b)
    if common is not None:
        return multiply(common, remainder(part, divisor))
    if number is not None:
        step, offset = _common_step(left, int(number))
        if step > 1:
            part = _divide_exactly(subtract(left, constant(offset)), step)
            return add(constant(offset), remainder(part, constant(number // step)), step)
    return _build_atom("%", (left, b))


def extreme(kind: str, a: Terms, b: Terms) -> Terms:
    """Return `min(a, b)` or `max(a, b)`: one of the operands if they can be compared."""
    (a, b), scale = _clear_fractions(a, b)
    if scale is not None:
        return multiply(extreme(kind, a, b), scale)
    candidates = {*_alternatives(kind, a), *_alternatives(kind, b)}
    if len(candidates) > MAX_ALTERNATIVES:
        raise _too_large_error()
    extremes = [x for x in candidates if not any(y != x and is_at_least(_excess(kind, x, y), 0) for y in candidates)]
    return extremes[0] if len(extremes) == 1 else _build_atom(kind, tuple(sorted(extremes, key=text)))


def bracket(a: Terms) -> Terms:
    """Wrap a sum in an atom, so that products with it are not expanded."""
    return a if len(a) < 2 else single(Atom(text(a), "()", (a,), bounds_of(a), 1 + size_of(a)))


# Clearing and cancelling ----------------------------------------------------------------------------------------------


def _clear_fractions(a: Terms, b: Terms) -> tuple[tuple[Terms, Terms], Terms | None]:
    """Multiply both by a factor that clears fractions; return its inverse too, None if there are no fractions."""
    lowest: dict[Atom, int] = {}
    for monomial, _ in (*a, *b):
        for atom, exponent in monomial:
            if exponent < lowest.get(atom, 0):
                lowest[atom] = exponent
    number = lcm(denominator(a), denominator(b))
    if number == 1 and not lowest:
        return (a, b), None
    factor: Terms = ((tuple(sorted([(atom, -exponent) for atom, exponent in lowest.items()])), number),)
    return (multiply(a, factor), multiply(b, factor)), inverse(factor)


def _is_negative(b: Terms) -> bool:
    """Whether to negate both operands, so that `a // b` and `-a // -b` have one form."""
    if not b:
        raise ZeroDivisionError("division of a dimension by zero")
    return b[0][1] < 0


def _divide(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """Return quotient and remainder; no term of the remainder is divisible by the leading term of `b`."""
    alphabet = sorted({*atoms_of(a), *atoms_of(b)})

    def order(monomial: Monomial) -> tuple[int, ...]:
        exponents = dict(monomial)
        return (degree(monomial), *[exponents.get(atom, 0) for atom in alphabet])

    divisor = dict(b)
    leading = max(divisor, key=order)
    pending, quotient, left = dict(a), dict[Monomial, Coefficient](), dict[Monomial, Coefficient]()
    steps = 0
    while pending:
        steps += 1
        if steps > MAX_STEPS:
            raise _too_large_error()
        monomial = max(pending, key=order)
        coefficient = pending.pop(monomial)
        ratio = divide_monomials(monomial, leading)
        factor, excess = divmod(coefficient, divisor[leading]) if ratio is not None else (0, coefficient)
        if excess:
            left[monomial] = excess
        if ratio is not None and factor:
            quotient[ratio] = factor
            for lower_monomial, scale in divisor.items():
                if lower_monomial != leading:
                    target = multiply_monomials(ratio, lower_monomial)
                    pending[target] = pending.get(target, 0) - factor * scale
                    if not pending[target]:
                        del pending[target]
    return canonical(quotient), canonical(left)


def _constant_quotient(a: Terms, b: Terms) -> int | None:
    """Return `a // b` if it is provably the same number for all values of the symbols, or None."""
    if not a:
        return 0
    low, high = quotient_bounds(bounds_of(a), bounds_of(b))
    if low is not None and low == high:
        return low
    if is_at_least(a, 0) and is_at_least(subtract(b, a), 1):
        return 0
    if is_at_least(scaled(a, -1), 1) and is_at_least(add(a, b), 0):
        return -1
    return None


def _cancel_common_factor(a: Terms, b: Terms) -> tuple[Terms | None, Terms, Terms]:
    """Return the positive common factor of all terms (None if it is 1), and both operands divided by it."""
    terms = [*a, *b]
    scale = gcd(*[int(coefficient) for _, coefficient in terms])
    shared = {atom: exponent for atom, exponent in terms[0][0] if atom.kind == "symbol"}
    for monomial, _ in terms[1:]:
        exponents = dict(monomial)
        shared = {atom: min(exponent, exponents[atom]) for atom, exponent in shared.items() if atom in exponents}
    common = tuple(sorted(shared.items()))
    if scale == 1 and not common:
        return None, a, b
    return ((common, scale),), _divide_exactly(a, scale, common), _divide_exactly(b, scale, common)


def _divide_exactly(a: Terms, scale: int, common: Monomial = ()) -> Terms:
    return canonical({divide_monomials(monomial, common) or (): coefficient // scale for monomial, coefficient in a})


def _common_step(a: Terms, b: int) -> tuple[int, int]:
    """Return g, the common divisor of b and all non-constant terms of a, and the constant term modulo g, which does
    not affect a // b.
    """
    step = gcd(b, *[int(coefficient) for monomial, coefficient in a if monomial])
    return step, int(dict(a).get((), 0)) % step


def _match_nested_floor(a: Terms) -> tuple[Terms, int, Terms] | None:
    """Return (x, n, summands) if `a` is `x // n + summands` with an integer n."""
    for term in a:
        atom = only_atom((term,))
        if atom is not None and atom.kind == "//":
            divisor = constant_of(atom.arguments[1])
            if divisor is not None:
                return atom.arguments[0], int(divisor), subtract(a, (term,))
    return None


def _match_remainder(a: Terms) -> tuple[Terms, int] | None:
    """Return (x, n) if `a` is `x % n` with an integer n."""
    atom = only_atom(a)
    divisor = constant_of(atom.arguments[1]) if atom is not None and atom.kind == "%" else None
    return None if atom is None or divisor is None else (atom.arguments[0], int(divisor))


def _remove_remainders(a: Terms, b: int) -> Terms:
    """Replace the terms `x % n` of `a` by x if n is a multiple of b, which is equal modulo b."""
    total: Terms = ()
    for monomial, coefficient in a:
        reduced = _match_remainder(((monomial, 1),))
        if reduced is not None and reduced[1] % b == 0:
            total = add(total, reduced[0], coefficient)
        else:
            total = add(total, ((monomial, coefficient),))
    return total


# Atoms ----------------------------------------------------------------------------------------------------------------


def _build_atom(kind: str, arguments: tuple[Terms, ...]) -> Terms:
    size = 1 + sum(max(1, size_of(a)) for a in arguments)
    if size > MAX_ATOM_NODES:
        raise _too_large_error()
    label = division(kind, *arguments) if kind in ("//", "%") else f"{kind}({', '.join(map(text, arguments))})"
    return single(Atom(label, kind, arguments, atom_bounds(kind, arguments), size))


def _alternatives(kind: str, a: Terms) -> tuple[Terms, ...]:
    atom = only_atom(a)
    return atom.arguments if atom is not None and atom.kind == kind else (a,)


def _excess(kind: str, a: Terms, b: Terms) -> Terms:
    """Return an expression that is not negative where `b` is at least as extreme as `a`."""
    return subtract(a, b) if kind == "min" else subtract(b, a)


def _too_large_error() -> OverflowError:
    return OverflowError("this dimension is too large an expression")
