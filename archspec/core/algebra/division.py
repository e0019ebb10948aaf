"""Floor division, remainders, minima and maxima of polynomials, in canonical form.

Fractions are cleared first: `a // b` is `(k*a) // (k*b)`, so that the arguments of an atom always have integer
coefficients and no negative exponents. What divides evenly, is known from bounds, or cancels is then taken out.
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
    """The operation that an atom of this kind stands for."""
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
    """`a // b`. Raises ZeroDivisionError if b is 0."""
    (a, b), _ = _cleared(a, b)
    if _is_negative(b):
        a, b = scaled(a, -1), scaled(b, -1)
    quotient, rest = _divided(a, b)
    known = _known_quotient(rest, b)
    if known is not None:
        return add(quotient, constant(known))
    common, part, divisor = _cancelled(rest, b)
    if common is not None:
        return add(quotient, floor(part, divisor))
    number = constant_of(b)
    if number is not None:
        step, extra = _step(rest, int(number))
        if step > 1:
            part = _exact(subtract(rest, constant(extra)), step)
            return add(quotient, floor(part, constant(number // step)))
        inner = _inner(rest)
        if inner is not None:
            part, by, others = inner
            return add(quotient, floor(add(part, others, by), constant(number * by)))
        reduced = _reduced(rest)
        if reduced is not None and reduced[1] % number == 0:
            part, by = reduced
            return add(quotient, remainder(floor(part, b), constant(by // number)))
    return add(quotient, _compound("//", (rest, b)))


def remainder(a: Terms, b: Terms) -> Terms:
    """`a % b`, which has the sign of b. Raises ZeroDivisionError if b is 0."""
    (a, b), scale = _cleared(a, b)
    if scale is not None:
        return multiply(remainder(a, b), scale)
    if _is_negative(b):
        return scaled(remainder(scaled(a, -1), scaled(b, -1)), -1)
    number = constant_of(b)
    if number is not None:
        a = _unreduced(a, int(number))
    _, rest = _divided(a, b)
    known = _known_quotient(rest, b)
    if known is not None:
        return add(rest, b, -known)
    common, part, divisor = _cancelled(rest, b)
    if common is not None:
        return multiply(common, remainder(part, divisor))
    if number is not None:
        step, extra = _step(rest, int(number))
        if step > 1:
            part = _exact(subtract(rest, constant(extra)), step)
            return add(constant(extra), remainder(part, constant(number // step)), step)
    return _compound("%", (rest, b))


def extreme(kind: str, a: Terms, b: Terms) -> Terms:
    """`min(a, b)` or `max(a, b)`: one of them where it is known which."""
    (a, b), scale = _cleared(a, b)
    if scale is not None:
        return multiply(extreme(kind, a, b), scale)
    candidates = {*_alternatives(kind, a), *_alternatives(kind, b)}
    if len(candidates) > MAX_ALTERNATIVES:
        raise _too_large()
    kept = [x for x in candidates if not any(y != x and is_at_least(_excess(kind, x, y), 0) for y in candidates)]
    return kept[0] if len(kept) == 1 else _compound(kind, tuple(sorted(kept, key=text)))


def bracket(a: Terms) -> Terms:
    """A sum as one factor, which is not multiplied out."""
    return a if len(a) < 2 else single(Atom(text(a), "()", (a,), bounds_of(a), 1 + size_of(a)))


# Clearing and cancelling ----------------------------------------------------------------------------------------------


def _cleared(a: Terms, b: Terms) -> tuple[tuple[Terms, Terms], Terms | None]:
    """Both multiplied by the same, and what undoes that; None if there are no fractions to clear."""
    lowest: dict[Atom, int] = {}
    for monomial, _ in (*a, *b):
        for atom, exponent in monomial:
            if exponent < lowest.get(atom, 0):
                lowest[atom] = exponent
    number = lcm(denominator(a), denominator(b))
    if number == 1 and not lowest:
        return (a, b), None
    by: Terms = ((tuple(sorted([(atom, -exponent) for atom, exponent in lowest.items()])), number),)
    return (multiply(a, by), multiply(b, by)), inverse(by)


def _is_negative(b: Terms) -> bool:
    """Whether the sign of a divisor is to be turned, so that `a // b` and `-a // -b` are one."""
    if not b:
        raise ZeroDivisionError("division of a dimension by zero")
    return b[0][1] < 0


def _divided(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """Quotient and rest, `a == quotient * b + rest`, no term of the rest divisible by the leading term of `b`."""
    alphabet = sorted({*atoms_of(a), *atoms_of(b)})

    def order(monomial: Monomial) -> tuple[int, ...]:
        exponents = dict(monomial)
        return (degree(monomial), *[exponents.get(atom, 0) for atom in alphabet])

    divisor = dict(b)
    head = max(divisor, key=order)
    todo, quotient, rest = dict(a), dict[Monomial, Coefficient](), dict[Monomial, Coefficient]()
    steps = 0
    while todo:
        steps += 1
        if steps > MAX_STEPS:
            raise _too_large()
        monomial = max(todo, key=order)
        coefficient = todo.pop(monomial)
        ratio = divide_monomials(monomial, head)
        factor, left = divmod(coefficient, divisor[head]) if ratio is not None else (0, coefficient)
        if left:
            rest[monomial] = left
        if ratio is not None and factor:
            quotient[ratio] = factor
            for other, scale in divisor.items():
                if other != head:
                    target = multiply_monomials(ratio, other)
                    todo[target] = todo.get(target, 0) - factor * scale
                    if not todo[target]:
                        del todo[target]
    return canonical(quotient), canonical(rest)


def _known_quotient(a: Terms, b: Terms) -> int | None:
    """`a // b` if it is the same number for all values of the symbols and that can be seen."""
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


def _cancelled(a: Terms, b: Terms) -> tuple[Terms | None, Terms, Terms]:
    """The positive factor that all terms of both share, None if there is none, and both without it."""
    terms = [*a, *b]
    scale = gcd(*[int(coefficient) for _, coefficient in terms])
    shared = {atom: exponent for atom, exponent in terms[0][0] if atom.kind == "symbol"}
    for monomial, _ in terms[1:]:
        exponents = dict(monomial)
        shared = {atom: min(exponent, exponents[atom]) for atom, exponent in shared.items() if atom in exponents}
    common = tuple(sorted(shared.items()))
    if scale == 1 and not common:
        return None, a, b
    return ((common, scale),), _exact(a, scale, common), _exact(b, scale, common)


def _exact(a: Terms, scale: int, common: Monomial = ()) -> Terms:
    return canonical({divide_monomials(monomial, common) or (): coefficient // scale for monomial, coefficient in a})


def _step(a: Terms, b: int) -> tuple[int, int]:
    """Return g, the common divisor of b and all non-constant terms of a, and the constant term modulo g, which does
    not affect a // b.
    """
    step = gcd(b, *[int(coefficient) for monomial, coefficient in a if monomial])
    return step, int(dict(a).get((), 0)) % step


def _inner(a: Terms) -> tuple[Terms, int, Terms] | None:
    """(x, n, rest) if `a` is `x // n + rest` with an integer n."""
    for term in a:
        atom = only_atom((term,))
        if atom is not None and atom.kind == "//":
            by = constant_of(atom.arguments[1])
            if by is not None:
                return atom.arguments[0], int(by), subtract(a, (term,))
    return None


def _reduced(a: Terms) -> tuple[Terms, int] | None:
    """(x, n) if `a` is `x % n` with an integer n."""
    atom = only_atom(a)
    by = constant_of(atom.arguments[1]) if atom is not None and atom.kind == "%" else None
    return None if atom is None or by is None else (atom.arguments[0], int(by))


def _unreduced(a: Terms, b: int) -> Terms:
    """`a` with every `x % n` that is a term of it, n a multiple of b, replaced by x: the same modulo b."""
    total: Terms = ()
    for monomial, coefficient in a:
        reduced = _reduced(((monomial, 1),))
        if reduced is not None and reduced[1] % b == 0:
            total = add(total, reduced[0], coefficient)
        else:
            total = add(total, ((monomial, coefficient),))
    return total


# Atoms ----------------------------------------------------------------------------------------------------------------


def _compound(kind: str, arguments: tuple[Terms, ...]) -> Terms:
    size = 1 + sum(max(1, size_of(a)) for a in arguments)
    if size > MAX_ATOM_NODES:
        raise _too_large()
    written = division(kind, *arguments) if kind in ("//", "%") else f"{kind}({', '.join(map(text, arguments))})"
    return single(Atom(written, kind, arguments, atom_bounds(kind, arguments), size))


def _alternatives(kind: str, a: Terms) -> tuple[Terms, ...]:
    atom = only_atom(a)
    return atom.arguments if atom is not None and atom.kind == kind else (a,)


def _excess(kind: str, a: Terms, b: Terms) -> Terms:
    """What is not negative where `b` serves `kind` as well as `a` does."""
    return subtract(a, b) if kind == "min" else subtract(b, a)


def _too_large() -> OverflowError:
    return OverflowError("this dimension is too large an expression")
