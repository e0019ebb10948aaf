"""Exact amounts: integers of any size, or sums of products of symbolic sizes.

A size (`archspec.dims`) is kept small, as shapes are compared by it all the time. An amount is only added up and read:
its factors stay as the shapes have them, nothing is multiplied out, and it may have any number of terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from archspec.dims import Dim, Symbolic, single
from archspec.dims import substitute as resize

Factors: TypeAlias = tuple[tuple[Symbolic, int], ...]
"""Symbolic factors with exponents, sorted by their text; () is the constant."""


class Amount:
    """An amount that depends on symbolic dimensions. Immutable and hashable; `+` and `*` take integers either side.

    Equal amounts are equal for all values of the dimensions; a sum is the same in whatever order it was added up. What
    turns out constant is a plain `int`. `str` writes it as Python would read it, `text` as people do.
    """

    __slots__ = ("terms",)

    terms: Mapping[Factors, int]
    """The non-zero coefficient of each product of factors."""

    def __init__(self, terms: Mapping[Factors, int]) -> None:
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Quantity) -> Quantity:
        return total(((self, 1), (other, 1)))

    __radd__ = __add__

    def __mul__(self, factor: int) -> Quantity:
        return total(((self, factor),))

    __rmul__ = __mul__

    def __str__(self) -> str:
        return self._written("")

    __repr__ = __str__

    @property
    def text(self) -> str:
        """The amount for people: `18,432*batch*seq**2 + 589,824*batch`."""
        return self._written(",")

    def _written(self, comma: str) -> str:
        ordered = sorted(self.terms.items(), key=lambda term: (-_degree(term[0]), str(term[0])))
        text = ""
        for factors, coefficient in ordered:
            size = f"{abs(coefficient):{comma}}"
            words = [size] if abs(coefficient) != 1 or not factors else []
            words += [_factor_text(factor) + (f"**{power}" if power > 1 else "") for factor, power in factors]
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {'*'.join(words)}" if text else f"{sign.strip('+')}{'*'.join(words)}"
        return text


Quantity: TypeAlias = int | Amount


def product(factors: Iterable[Dim]) -> Quantity:
    """The product of sizes, 1 if there are none."""
    coefficient = 1
    powers: dict[Symbolic, int] = {}
    for factor in factors:
        if isinstance(factor, int):
            coefficient *= factor
        elif len(factor.terms) == 1:
            (monomial, number), *_ = factor.terms
            coefficient *= number
            for atom, power in monomial:
                symbolic = single(atom)
                powers[symbolic] = powers.get(symbolic, 0) + power
        else:
            powers[factor] = powers.get(factor, 0) + 1
    if not coefficient or not powers:
        return coefficient
    return Amount({tuple(sorted(powers.items(), key=lambda item: str(item[0]))): coefficient})


def total(amounts: Iterable[tuple[Quantity, int]]) -> Quantity:
    """The sum of amounts, each so many times."""
    constant = 0
    terms: dict[Factors, int] = {}
    for amount, times in amounts:
        if isinstance(amount, int):
            constant += amount * times
        else:
            for factors, coefficient in amount.terms.items():
                terms[factors] = terms.get(factors, 0) + coefficient * times
    if constant:
        terms[()] = terms.get((), 0) + constant
    kept = {factors: coefficient for factors, coefficient in terms.items() if coefficient}
    return Amount(kept) if any(kept) else kept.get((), 0)


def substitute(amount: Quantity, values: Mapping[str, int]) -> Quantity:
    """The amount with values for some dimensions, or all.

    Raises ZeroDivisionError if a divisor becomes zero, OverflowError if a size is then beyond 64 bits.
    """
    if isinstance(amount, int) or not values:
        return amount
    replaced = {factor: resize(factor, values) for factors in amount.terms for factor, _ in factors}
    return total(
        (product(replaced[factor] for factor, power in factors for _ in range(power)), coefficient)
        for factors, coefficient in amount.terms.items()
    )


def _degree(factors: Factors) -> int:
    return sum(power for _, power in factors)


def _factor_text(factor: Symbolic) -> str:
    return str(factor) if factor.symbol is not None or _is_call(factor) else f"({factor})"


def _is_call(factor: Symbolic) -> bool:
    """Whether it is one `min(...)` or `max(...)`, which stands without brackets."""
    (monomial, _), *rest = factor.terms
    return not rest and monomial[0][0].kind in ("min", "max")
