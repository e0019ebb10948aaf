"""Floor division, remainders, minima and bounds of symbolic dimensions; loaded when one of them is first met."""

from __future__ import annotations

from math import gcd

from archspec.dims import (
    BUDGET,
    Atom,
    Bounds,
    Dim,
    Monomial,
    Symbolic,
    at_least,
    atoms_of,
    bounds,
    collected,
    degree,
    operand_text,
    over,
    single,
    size_of,
    terms_of,
    times,
    too_large,
)


def divide(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Quotient and rest, `a == quotient * b + rest`, no term of the rest divisible by the leading term of `b`."""
    alphabet = sorted({*atoms_of(a), *atoms_of(b)})

    def order(monomial: Monomial) -> tuple[int, ...]:
        exponents = dict(monomial)
        return (degree(monomial), *[exponents.get(atom, 0) for atom in alphabet])

    divisor = dict(terms_of(b))
    head = max(divisor, key=order)
    todo, quotient, rest = dict(terms_of(a)), dict[Monomial, int](), dict[Monomial, int]()
    steps = 0
    while todo:
        steps += 1
        if steps > BUDGET:
            raise too_large()
        monomial = max(todo, key=order)
        coefficient = todo.pop(monomial)
        ratio = over(monomial, head)
        factor, left = divmod(coefficient, divisor[head]) if ratio is not None else (0, coefficient)
        if left:
            rest[monomial] = left
        if ratio is not None and factor:
            quotient[ratio] = factor
            for other, scale in divisor.items():
                if other != head:
                    target = times(ratio, other)
                    todo[target] = todo.get(target, 0) - factor * scale
                    if not todo[target]:
                        del todo[target]
    return collected(quotient), collected(rest)


def _negative(b: Dim) -> bool:
    """Whether the sign of a divisor is to be turned, so that `a // b` and `-a // -b` are one."""
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError("division of a dimension by zero")
        return b < 0
    return b.terms[0][1] < 0


def floor(a: Dim, b: Dim) -> Dim:
    if _negative(b):
        a, b = -a, -b
    quotient, rest = divide(a, b)
    known = _known_quotient(rest, b)
    if known is not None:
        return quotient + known
    common, part, divisor = _cancelled(rest, b)
    if common != 1:
        return quotient + part // divisor
    if isinstance(b, int):
        step, extra = _step(rest, b)
        if step > 1:
            return quotient + _exact(rest - extra, step) // (b // step)
        inner = _inner(rest)
        if inner is not None:
            part, by, others = inner
            return quotient + (part + others * by) // (b * by)
    return quotient + compound("//", (rest, b))


def remainder(a: Dim, b: Dim) -> Dim:
    if _negative(b):
        return -remainder(-a, -b)
    if isinstance(b, int):
        a = _unreduced(a, b)
    _, rest = divide(a, b)
    known = _known_quotient(rest, b)
    if known is not None:
        return rest - known * b
    common, part, divisor = _cancelled(rest, b)
    if common != 1:
        return common * (part % divisor)
    if isinstance(b, int):
        step, extra = _step(rest, b)
        if step > 1:
            return step * (_exact(rest - extra, step) % (b // step)) + extra
    return compound("%", (rest, b))


def _unreduced(a: Dim, b: int) -> Dim:
    """`a` with every `x % n` that is a term of it, n a multiple of b, replaced by x: the same modulo b."""
    total: Dim = 0
    for monomial, coefficient in terms_of(a):
        term: Dim = collected({monomial: coefficient})
        if len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "%":
            part, by = monomial[0][0].arguments
            term = coefficient * part if isinstance(by, int) and by % b == 0 else term
        total = total + term
    return total


def _known_quotient(a: Dim, b: Dim) -> int | None:
    """`a // b` if it is the same number for all values of the symbols and that can be seen."""
    if a == 0:
        return 0
    low, high = _quotient_bounds(bounds(a), bounds(b))
    if low is not None and low == high:
        return low
    if at_least(a, 0) and at_least(b - a, 1):
        return 0
    if at_least(-a, 1) and at_least(a + b, 0):
        return -1
    return None


def _cancelled(a: Dim, b: Dim) -> tuple[Dim, Dim, Dim]:
    """The positive factor that all terms of both share, and both without it."""
    terms = [*terms_of(a), *terms_of(b)]
    scale = gcd(*[coefficient for _, coefficient in terms])
    shared = {atom: exponent for atom, exponent in terms[0][0] if atom.kind == "symbol"}
    for monomial, _ in terms[1:]:
        exponents = dict(monomial)
        shared = {atom: min(exponent, exponents[atom]) for atom, exponent in shared.items() if atom in exponents}
    common = tuple(sorted(shared.items()))
    if scale == 1 and not common:
        return 1, a, b
    return collected({common: scale}), _exact(a, scale, common), _exact(b, scale, common)


def _exact(a: Dim, scale: int, common: Monomial = ()) -> Dim:
    return collected({over(monomial, common) or (): coefficient // scale for monomial, coefficient in terms_of(a)})


def _constant(a: Dim) -> int:
    terms = terms_of(a)
    return terms[-1][1] if terms and not terms[-1][0] else 0


def _step(a: Dim, b: int) -> tuple[int, int]:
    """The g that divides b and all of a but its constant, and that constant modulo g, which a // b is blind to."""
    step = gcd(b, *[coefficient for monomial, coefficient in terms_of(a) if monomial])
    return step, _constant(a) % step


def _inner(a: Dim) -> tuple[Dim, int, Dim] | None:
    """(x, n, rest) if `a` is `x // n + rest` with an integer n."""
    for monomial, coefficient in terms_of(a):
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == "//":
            part, by = monomial[0][0].arguments
            if isinstance(by, int):
                return part, by, a - collected({monomial: 1})
    return None


# Atoms ----------------------------------------------------------------------------------------------------------------


def compound(kind: str, arguments: tuple[Dim, ...]) -> Symbolic:
    size = 1 + sum(max(1, size_of(a)) for a in arguments)
    if size > BUDGET:
        raise too_large()
    if kind in ("//", "%"):
        text = f"{operand_text(arguments[0], True)}{kind}{operand_text(arguments[1], False)}"
    else:
        text = f"{kind}({', '.join(map(str, arguments))})"
    return single(Atom(text, kind, arguments, size))


def extreme(kind: str, a: Dim, b: Dim) -> Dim:
    candidates = {*_alternatives(kind, a), *_alternatives(kind, b)}
    if len(candidates) > 8:
        raise too_large()
    sign = 1 if kind == "min" else -1
    kept = [x for x in candidates if not any(y != x and at_least((x - y) * sign, 0) for y in candidates)]
    return kept[0] if len(kept) == 1 else compound(kind, tuple(sorted(kept, key=str)))


def _alternatives(kind: str, a: Dim) -> tuple[Dim, ...]:
    (monomial, coefficient), *rest = terms_of(a) or (((), 0),)
    if not rest and coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind == kind:
        return monomial[0][0].arguments
    return (a,)


def _atom_bounds(atom: Atom) -> Bounds:
    if atom.kind == "symbol":
        return 1, None
    limits = [bounds(a) for a in atom.arguments]
    match atom.kind:
        case "//":
            return _quotient_bounds(*limits)
        case "%":
            low, high = limits[1]
            return (0, None if high is None else high - 1) if low is not None and low >= 1 else (None, None)
        case kind:
            least = [low for low, _ in limits if low is not None]
            most = [high for _, high in limits if high is not None]
            if kind == "min":
                return min(least) if len(least) == len(limits) else None, min(most, default=None)
            return max(least, default=None), max(most) if len(most) == len(limits) else None


def _quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
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


def lowest(terms: tuple[tuple[Monomial, int], ...]) -> int | None:
    """The least value of a polynomial, if it can be seen by counting every atom from its own least value."""
    limits = {atom: _atom_bounds(atom) for monomial, _ in terms for atom, _ in monomial}
    lows = {atom: low for atom, (low, _) in limits.items() if low is not None}
    if len(lows) < len(limits) or degree(terms[0][0]) > 8:
        return None
    shifted: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        parts: dict[Monomial, int] = {(): coefficient}
        for atom, exponent in monomial:
            for _ in range(exponent):
                raised: dict[Monomial, int] = {}
                for part, scale in parts.items():
                    raised[part] = raised.get(part, 0) + scale * lows[atom]
                    longer = times(part, ((atom, 1),))
                    raised[longer] = raised.get(longer, 0) + scale
                parts = raised
        for part, scale in parts.items():
            shifted[part] = shifted.get(part, 0) + scale
    total = shifted.pop((), 0)
    for monomial, coefficient in shifted.items():
        if coefficient < 0:
            for atom, exponent in monomial:
                high = limits[atom][1]
                if high is None:
                    return None
                coefficient *= (high - lows[atom]) ** exponent
            total += coefficient
    return total
