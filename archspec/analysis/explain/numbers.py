"""Published numbers: exact (108,808,704), or rounded (110M, about 20 %) with the digits that they have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import NamedTuple

MAX_DIGITS = 30
UNITS: dict[str, int] = {
    **dict.fromkeys(("K", "k", "thousand"), 1000),
    **dict.fromkeys(("M", "m", "million"), 1000**2),
    **dict.fromkeys(("B", "b", "G", "billion"), 1000**3),
    **dict.fromkeys(("T", "t", "trillion"), 1000**4),
    **{"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4},
}
"""The default values of the units that may follow a number."""

_NUMBER = re.compile(
    r"(?P<about>about|approx\.?|around|[~≈≃])?\s*"
    r"(?P<whole>\d{1,3}(?P<separator>[,_ '])\d{3}(?:(?P=separator)\d{3})*|[\d_]*\d)"
    r"(?:\.(?P<decimals>\d+))?"
    r"(?:e(?P<exponent>\+?\d{1,2}))?"
    r"\s*(?P<unit>(?!active)[A-Za-z]+|%)?\s*\??(?P<active>\s+active)?",
    re.ASCII,
)


class Reading(NamedTuple):
    """A number at `digits` significant digits (None: exact). It matches values from `low` to `high`, both inclusive."""

    digits: int | None
    low: Fraction
    high: Fraction

    def fits(self, value: Fraction | int) -> bool:
        """Whether `value`, rounded to these digits, is the number; half a unit may be rounded up or down."""
        return self.low <= value <= self.high

    def cuts(self, value: int) -> bool:
        """Whether `value`, which does not match, gives the number if it is truncated to these digits."""
        written = (self.low + self.high) / 2
        return self.digits is not None and self.high < value < written + (self.high - self.low)


class PublishedNumber(NamedTuple):
    """A number as it was published: its text, its value, and its readings, coarsest first.

    An exact number has one reading. A rounded one that ends in zeros has several, because these may be significant or
    not. `unit` is the value of its last digit before the point: 1,000,000 in "110M", and a hundredth in "20 %".
    `is_active`: it is one of parameters used for one token ("37B active").
    """

    text: str
    value: Fraction
    readings: tuple[Reading, ...]
    unit: Fraction
    is_active: bool = False

    @property
    def exact(self) -> bool:
        return self.readings[0].digits is None

    def fitting(self, value: Fraction | int) -> list[Reading]:
        """Return the readings that match a value."""
        return [reading for reading in self.readings if reading.fits(value)]


def read_number(text: str, units: Mapping[str, int] = UNITS) -> PublishedNumber:
    """Parse a number. Raises ValueError, with a message, if `text` is not one."""
    text = text.strip()
    found = _NUMBER.fullmatch(text)
    whole = re.sub(r"\D", "", found["whole"]) if found else ""
    decimals = (found and found["decimals"]) or ""
    if not found or len(whole + decimals) > MAX_DIGITS:
        raise ValueError(f"invalid number `{text:.60}`")
    word = found["unit"] or ""
    if word and word != "%" and word not in units:
        raise ValueError(f"unknown unit `{word}`; expected one of {', '.join(units)}")
    is_active = found["active"] is not None
    unit = Fraction(1, 100) if word == "%" else Fraction(units[word] if word else 1)
    if found["exponent"]:
        unit *= 10 ** int(found["exponent"])
    if not (found["about"] or decimals or found["exponent"] or word):
        exact = Fraction(int(whole))
        return PublishedNumber(text, exact, (Reading(None, exact, exact),), unit, is_active)
    written = (whole + decimals).lstrip("0")
    if not written:
        raise ValueError(f"`{text}` has no significant digit")
    value = int(written) * unit / 10 ** len(decimals)
    fewest = len(written) if decimals else len(written.rstrip("0"))
    step = unit / 10 ** len(decimals)
    halves = {digits: step * 10 ** (len(written) - digits) / 2 for digits in range(fewest, len(written) + 1)}
    readings = tuple([Reading(digits, value - half, value + half) for digits, half in halves.items()])
    return PublishedNumber(text, value, readings, unit, is_active)


def rounded(value: Fraction | int, number: PublishedNumber, digits: int) -> str:
    """Format `value` with so many significant digits, in the unit of `number`: `109 M`, `335.1M`."""
    scaled = Fraction(value) / number.unit
    if scaled == 0:
        return "0"
    for place in (digits - _magnitude(abs(scaled)), digits - _magnitude(abs(scaled)) - 1):
        step = Fraction(10) ** -place
        scaled = floor(scaled / step + Fraction(1, 2)) * step
        if place == digits - _magnitude(abs(scaled)):
            break  # rounding up may add a digit: 99.96 becomes 100.0
    whole, decimals = divmod(int(abs(scaled) * 10 ** max(place, 0)), 10 ** max(place, 0))
    shown = ("-" if scaled < 0 else "") + (f"{whole:,}.{decimals:0{place}}" if place > 0 else f"{whole:,}")
    word = re.search(r"\s*(?:[A-Za-z]+|%)(?=\s*\??(?:\s+active)?$)", number.text)
    return shown + (word[0] if word else "")


def _magnitude(value: Fraction) -> int:
    """Return the number of digits before the decimal point; 0 or less for values below one."""
    magnitude = len(str(floor(value)))
    while value < Fraction(10) ** (magnitude - 1):
        magnitude -= 1
    return magnitude
