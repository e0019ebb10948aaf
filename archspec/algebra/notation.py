"""Polynomials written out: as text that Python also reads, and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from archspec.algebra import Factor, Polynomial, Powers, cleared, denominator


def text(polynomial: Polynomial, order: Sequence[str] = (), collect: Sequence[str] = ()) -> str:
    """A polynomial as text: `4*hidden**2 + 2*hidden*ffn`. Names stand in `order`, others after them.

    A name in `collect` is put before the bracket of what it multiplies: `layers*(4*hidden**2 + 9*hidden) + hidden`.
    """
    return _Text(order).sum(polynomial, tuple(collect))


def latex(polynomial: Polynomial, order: Sequence[str] = (), collect: Sequence[str] = ()) -> str:
    """A polynomial as LaTeX, for math mode; otherwise as `text`."""
    return _Latex(order).sum(polynomial, tuple(collect))


class _Text:
    """How a sum, its terms and their factors are put together."""

    times = "*"

    def __init__(self, order: Sequence[str]) -> None:
        self.order = {name: i for i, name in enumerate(order)}

    def sum(self, polynomial: Polynomial, collect: tuple[str, ...] = ()) -> str:
        parts = self._parts(polynomial, collect)
        if not parts:
            return "0"
        parts.sort(key=lambda part: part[0] < 0)  # a sum does not begin with a minus where it can be helped
        (sign, first), *rest = parts
        return ("-" if sign < 0 else "") + first + "".join(f" {'-' if s < 0 else '+'} {part}" for s, part in rest)

    def _parts(self, polynomial: Polynomial, collect: tuple[str, ...]) -> list[tuple[int, str]]:
        """The terms as (sign, text); those of a name to be collected as one."""
        for i, name in enumerate(collect):
            found = polynomial.collected(name)
            inner = found.pop(1, None) if found is not None else None
            if inner is not None and len(inner.terms) > 1 and denominator(inner) == 1:
                rest = polynomial - inner * Polynomial({((Factor(name), 1),): 1})
                others = collect[i + 1 :]
                body = self.times.join([self.name(name), self.bracketed(self.sum(inner, others))])
                return [(1, body), *self._parts(rest, others)]
        return [
            (1 if scale > 0 else -1, self._term(powers, abs(scale)))
            for powers, scale in sorted(polynomial.terms.items(), key=lambda item: self._rank(item[0]))
        ]

    def _rank(self, powers: Powers) -> tuple[object, ...]:
        exponents = {factor.text: exponent for factor, exponent in powers}
        known = [-exponents.get(name, 0) for name in self.order]
        return (-sum(exponents.values()), known, [factor.text for factor, _ in powers])

    def _term(self, powers: Powers, scale: Fraction) -> str:
        ranked = sorted(powers, key=lambda item: (self.order.get(item[0].text, len(self.order)), item[0].text))
        above = [self.power(factor, exponent) for factor, exponent in ranked if exponent > 0]
        below = [self.power(factor, -exponent) for factor, exponent in ranked if exponent < 0]
        if scale.numerator != 1 or not above:
            above.insert(0, str(scale.numerator))
        if scale.denominator != 1:
            below.insert(0, str(scale.denominator))
        return self.fraction(above, below) if below else self.times.join(above)

    def fraction(self, above: list[str], below: list[str]) -> str:
        under = "*".join(below)
        return f"{'*'.join(above)}/{self.bracketed(under) if len(below) > 1 else under}"

    def power(self, factor: Factor, exponent: int) -> str:
        base = self.name(factor.text) if factor.kind == "name" else self.compound(factor)
        return base if exponent == 1 else self.raised(base, exponent)

    def compound(self, factor: Factor) -> str:
        match factor.kind:
            case "//":
                return self.floor(*cleared(*factor.arguments))
            case "%":
                return self.remainder(*factor.arguments)
            case kind:
                return f"{self.function(kind)}({', '.join(map(self.sum, factor.arguments))})"

    def operand(self, polynomial: Polynomial) -> str:
        written = self.sum(polynomial)
        simple = polynomial.value is not None or written.isidentifier()
        return written if simple else self.bracketed(written)

    def name(self, name: str) -> str:
        return name

    def raised(self, base: str, exponent: int) -> str:
        return f"{base}**{exponent}"

    def bracketed(self, inner: str) -> str:
        return f"({inner})"

    def floor(self, above: Polynomial, below: Polynomial) -> str:
        return f"({self.operand(above)}//{self.operand(below)})"

    def remainder(self, above: Polynomial, below: Polynomial) -> str:
        return f"({self.operand(above)} % {self.operand(below)})"

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

    def floor(self, above: Polynomial, below: Polynomial) -> str:
        return rf"\left\lfloor \frac{{{self.sum(above)}}}{{{self.sum(below)}}} \right\rfloor"

    def remainder(self, above: Polynomial, below: Polynomial) -> str:
        return rf"\left( {self.sum(above)} \bmod {self.sum(below)} \right)"

    def function(self, name: str) -> str:
        return rf"\{name}"
