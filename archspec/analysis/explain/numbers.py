"""Published numbers: exact (108,808,704), or rounded (110M, about 20 %) with their significant digits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from archspec.core.diagnostics import make_error
from archspec.core.reports.text import number as number_of

MAX_DIGITS = 30
MAX_RELATIVE_DIFFERENCE = Fraction(2, 100)
"""Maximum relative difference of a count that is shown as the nearest."""
UNITS: dict[str, int] = {
    **dict.fromkeys(("K", "k", "thousand"), 1000),
    **dict.fromkeys(("M", "m", "million"), 1000**2),
    **dict.fromkeys(("B", "b", "G", "billion"), 1000**3),
    **dict.fromkeys(("T", "t", "trillion"), 1000**4),
    **{"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4},
}
"""Default values of the units of numbers."""

_ACTIVE = r"\s+activ(?:e|ated)(?:\s+param(?:eter)?s)?"
_NUMBER = re.compile(
    r"(?P<about>about|approx\.?|around|[~≈≃])?\s*"
    r"(?P<prefix>A(?=[\d.]+[A-Z]))?"
    r"(?P<whole>\d{1,3}(?P<separator>[,_ '])\d{3}(?:(?P=separator)\d{3})*|[\d_]*\d)"
    r"(?:\.(?P<decimals>\d+))?"
    r"(?:e(?P<exponent>\+?\d{1,2}))?"
    rf"\s*(?P<unit>(?!activ(?:e|ated)\b)[A-Za-z]+|%)?\s*\??(?P<active>{_ACTIVE})?",
    re.ASCII,
)


class Reading(NamedTuple):
    """A number at `digits` significant digits (None: exact). It matches values from `low` to `high`, both inclusive."""

    digits: int | None
    low: Fraction
    high: Fraction

    def fits(self, value: Fraction | int) -> bool:
        """Whether `value` is the number if rounded to these digits; half a unit may be rounded up or down."""
        return self.low <= value <= self.high

    def cuts(self, value: int) -> bool:
        """Whether `value`, which does not match, is the number if truncated to these digits."""
        middle = (self.low + self.high) / 2
        return self.digits is not None and self.high < value < middle + (self.high - self.low)


class PublishedNumber(NamedTuple):
    """A published number: its text, its value, and its readings, coarsest first.

    An exact number has one reading. A rounded number that ends in zeros has several, because the zeros may be
    significant or not. `unit` is the value of its last digit before the decimal point: 1,000,000 in "110M", and a
    hundredth in "20 %". `is_active` is whether it counts the parameters used for one token ("37B active",
    or "A37B" as in the names of models).
    """

    text: str
    value: Fraction
    readings: tuple[Reading, ...]
    unit: Fraction
    is_active: bool = False

    @property
    def exact(self) -> bool:
        return self.readings[0].digits is None

    def matching_readings(self, value: Fraction | int) -> list[Reading]:
        """Return the readings that match a value."""
        return [reading for reading in self.readings if reading.fits(value)]


def read_count(number: str | int, noun: str, help: str) -> PublishedNumber:
    """Parse a number that is not a share, and which messages call `noun`. Raises ArchError (`usage`) with `help`."""
    text = str(number).strip()
    try:
        published = read_number(text)
        if text.endswith("%"):
            raise ValueError(f"`{text:.60}` is a percentage, not {noun}")
    except ValueError as error:
        raise make_error("usage", str(error), help=help) from None
    return published


def read_number(text: str, units: Mapping[str, int] = UNITS) -> PublishedNumber:
    """Parse a number. Raises ValueError with a message for users if `text` is not a number."""
    text = text.strip()
    match = _NUMBER.fullmatch(text)
    integer_digits = re.sub(r"\D", "", match["whole"]) if match else ""
    decimals = (match and match["decimals"]) or ""
    if not match or len(integer_digits + decimals) > MAX_DIGITS:
        raise ValueError(f"invalid number `{text:.60}`")
    unit_name = match["unit"] or ""
    if unit_name and unit_name != "%" and unit_name not in units:
        raise ValueError(f"unknown unit `{unit_name}`; expected one of {', '.join(units)}")
    is_active = match["active"] is not None or match["prefix"] is not None
    unit = Fraction(1, 100) if unit_name == "%" else Fraction(units[unit_name] if unit_name else 1)
    if match["exponent"]:
        unit *= 10 ** int(match["exponent"])
    if not (match["about"] or decimals or match["exponent"] or unit_name):
        return _build_exact_number(text, Fraction(int(integer_digits)), unit, is_active)
    significant = (integer_digits + decimals).lstrip("0")
    if not significant:
        raise ValueError(f"`{text}` has no significant digit")
    value = int(significant) * unit / 10 ** len(decimals)
    minimum = len(significant) if decimals else len(significant.rstrip("0"))
    step = unit / 10 ** len(decimals)
    halves = {digits: step * 10 ** (len(significant) - digits) / 2 for digits in range(minimum, len(significant) + 1)}
    readings = tuple([Reading(digits, value - half, value + half) for digits, half in halves.items()])
    return PublishedNumber(text, value, readings, unit, is_active)


def as_exact_number(value: Fraction) -> PublishedNumber:
    """Convert a value to an exact number."""
    text = f"{int(value):,}" if value.denominator == 1 else str(float(value))
    return _build_exact_number(text, value, Fraction(1))


def _build_exact_number(text: str, value: Fraction, unit: Fraction, is_active: bool = False) -> PublishedNumber:
    return PublishedNumber(text, value, (Reading(None, value, value),), unit, is_active)


def is_near(value: int, reading: Reading) -> bool:
    """Whether a value that does not match a reading is near enough to be shown."""
    middle = (reading.low + reading.high) / 2
    return abs(value - middle) <= MAX_RELATIVE_DIFFERENCE * middle


# Output


def as_plain_number(value: Fraction | None) -> int | float | None:
    """Convert a value for JSON."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


def integer_bounds(reading: Reading) -> tuple[int, int]:
    """Return the smallest and the largest integer that match."""
    return ceil(reading.low), floor(reading.high)


def describe_reading(reading: Reading) -> str:
    """Describe the integers that match."""
    low, high = integer_bounds(reading)
    if reading.digits is None:
        return f"exactly {low:,}"
    return f"at {number_of(reading.digits, 'significant digit')}, {low:,} to {high:,}"


def format_value(value: Fraction, number: PublishedNumber) -> str:
    """Format a value like a published number: in percent if it is a percentage, else in full or with five digits."""
    if number.unit == Fraction(1, 100):
        return f"{float(100 * value):.2f} %"
    if value.denominator == 1:
        return f"{int(value):,}"
    return f"{float(value):,.5g}" if abs(value) < 1000 else f"{float(value):,.2f}"


def format_rounded(value: Fraction | int, number: PublishedNumber, digits: int) -> str:
    """Format `value` with `digits` significant digits, in the unit of `number`: `109 M`, `335.1M`."""
    scaled = Fraction(value) / number.unit
    if scaled == 0:
        return "0"
    for decimal_places in (digits - _magnitude(abs(scaled)), digits - _magnitude(abs(scaled)) - 1):
        step = Fraction(10) ** -decimal_places
        scaled = floor(scaled / step + Fraction(1, 2)) * step
        if decimal_places == digits - _magnitude(abs(scaled)):
            break  # otherwise rounding up added a digit: 99.96 became 100.0
    integer, decimals = divmod(int(abs(scaled) * 10 ** max(decimal_places, 0)), 10 ** max(decimal_places, 0))
    text = ("-" if scaled < 0 else "") + (
        f"{integer:,}.{decimals:0{decimal_places}}" if decimal_places > 0 else f"{integer:,}"
    )
    unit_name = re.search(rf"\s*(?:[A-Za-z]+|%)(?=\s*\??(?:{_ACTIVE})?$)", number.text)
    return text + (unit_name[0] if unit_name else "")


def _magnitude(value: Fraction) -> int:
    """Return the number of digits before the decimal point; 0 or less for values below one."""
    magnitude = len(str(floor(value)))
    while value < Fraction(10) ** (magnitude - 1):
        magnitude -= 1
    return magnitude
