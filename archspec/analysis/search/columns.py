"""Columns of exact integers, one for each design, and arithmetic on them.

A column has bounds. A result whose bounds fit in 64 bits is computed in 64 bits, otherwise in Python integers, which
are slower. Nothing overflows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from math import ceil, floor
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from archspec.core.diagnostics import missing_package_error
from archspec.ir.table import PlainValue

if TYPE_CHECKING:
    from typing import TypeGuard

    from numpy.typing import NDArray

Scalar: TypeAlias = "int | Fraction | float | str | bool | Sequence[PlainValue] | None"
"""A value that all designs share. Real numbers are fractions, except for infinity."""

Array: TypeAlias = "NDArray[Any]"
"""A numpy array (an optional package) of 64-bit integers, Python integers, booleans or other values."""

MAX_INT64 = 2**63 - 1


def numpy() -> ModuleType:
    """Import numpy. Raises ArchError if it is not installed."""
    try:
        return import_module("numpy")
    except ImportError:
        message = "a search requires numpy, which is not installed"
        raise missing_package_error(message, "search") from None


class Column:
    """Integers, or booleans (`is_flag`), from `low` to `high`."""

    __slots__ = ("high", "low", "values")

    def __init__(self, values: Array, low: int, high: int) -> None:
        self.values = values
        self.low = low
        self.high = high

    @property
    def is_flag(self) -> bool:
        return self.values.dtype == bool

    def item(self, position: int) -> int:
        """Return one value as a Python scalar."""
        value = self.values[position]
        return bool(value) if self.is_flag else int(value)

    def take(self, selection: Array | slice) -> Column:
        """Return the values at the selected positions, or where an array of booleans is true."""
        return Column(self.values[selection], self.low, self.high)


Value: TypeAlias = "Column | Scalar | list[Value]"
"""The value of an expression. A list is the value of a list literal."""


class InexactError(Exception):
    """An operation that is not defined for columns; the text is shown to the user."""


def column(values: Sequence[int]) -> Column:
    """Build a column of integers of any size."""
    low, high = min(values, default=0), max(values, default=0)
    dtype = "int64" if _fits(low, high) else object
    return Column(numpy().array(values, dtype=dtype), low, high)


def flags(values: Array) -> Column:
    """Build a column of booleans."""
    return Column(values.astype(bool), 0, 1)


def concatenate(parts: Sequence[Column]) -> Column:
    """Concatenate one or more columns."""
    values = numpy().concatenate([part.values for part in parts])
    return Column(values, min(part.low for part in parts), max(part.high for part in parts))


def is_column(value: object) -> TypeGuard[Column]:
    return isinstance(value, Column)


# Arithmetic -----------------------------------------------------------------------------------------------------------


def apply_operator(sign: str, left: Value, right: Value) -> Value:
    """Apply an operator. Raises InexactError, ZeroDivisionError, or TypeError for operands of wrong types."""
    if not isinstance(left, Column) and not isinstance(right, Column):
        return _apply_to_scalars(sign, left, right)
    if sign in _COMPARE:
        return _compare(sign, left, right)
    if sign in ("and", "or"):
        return _combine_flags(sign, left, right)
    return _apply_arithmetic(sign, _integers(left), _integers(right))


def negate(value: Value) -> Value:
    if not is_column(value):
        return -_number(value)
    return _apply_arithmetic("-", _integers(0), _integers(value))


def logical_not(value: Value) -> Value:
    if not is_column(value):
        return not _flag(value)
    if not value.is_flag:
        raise TypeError("expected a boolean")
    return flags(~value.values)


def choose_extreme(name: str, values: Sequence[Value]) -> Value:
    """Return the minimum or maximum of some values, for each design. `name` is "min" or "max"."""
    choose = min if name == "min" else max
    if not any(is_column(value) for value in values):
        return choose(map(_number, values))
    extreme = _integers(values[0])
    ufunc = numpy().minimum if name == "min" else numpy().maximum
    for value in values[1:]:
        column = _integers(value)
        low, high = choose(extreme.low, column.low), choose(extreme.high, column.high)
        extreme = Column(ufunc(*_as_common_type(extreme, column, low, high)), low, high)
    return extreme


def where(condition: Value, value: Value, otherwise: Value) -> Value:
    """Return one of two values for each design."""
    if not is_column(condition):
        return value if _flag(condition) else otherwise
    if not condition.is_flag:
        raise TypeError("expected a boolean")
    first, second = _integers(value), _integers(otherwise)
    low, high = min(first.low, second.low), max(first.high, second.high)
    return Column(numpy().where(condition.values, *_as_common_type(first, second, low, high)), low, high)


def isin(value: Value, items: Sequence[Value]) -> Value:
    """Return whether a value is equal to one of the items, for each design."""
    result: Value = False
    for item in items:
        result = apply_operator("or", result, apply_operator("==", value, item))
    return result


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b,
    "%": operator.mod,
}
MAX_POWER = 64


def _apply_to_scalars(sign: str, left: Value, right: Value) -> Scalar:
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    if sign in ("and", "or"):
        first, second = _flag(left), _flag(right)
        return first and second if sign == "and" else first or second
    a, b = _number(left), _number(right)
    if sign in _COMPARE:
        return bool(_COMPARE[sign](a, b))
    if sign == "/":
        return as_exact(Fraction(a) / Fraction(b))
    if sign == "**":
        if not isinstance(b, int) or abs(b) > MAX_POWER:
            raise InexactError(f"expected an integer exponent up to {MAX_POWER}")
        return as_exact(Fraction(a) ** b)
    return as_exact(_ARITHMETIC[sign](a, b))


def as_exact(number: int | float | Fraction) -> int | Fraction | float:
    """Convert a number to an integer or a fraction. A float has the value of its shortest decimal notation."""
    if isinstance(number, float):
        if number in (float("inf"), float("-inf")) or number != number:
            return number
        number = Fraction(repr(number))
    return number.numerator if number.denominator == 1 else number


def _compare(sign: str, left: Value, right: Value) -> Column:
    if not is_column(left):
        assert is_column(right)
        return _compare(_FLIPPED[sign], right, left)
    if is_column(right):
        return flags(_COMPARE[sign](left.values, right.values))
    is_comparable = left.is_flag == isinstance(right, bool) and isinstance(right, int | Fraction | float)
    if not is_comparable and sign not in ("==", "!="):
        raise TypeError("expected two numbers")
    if not is_comparable or (isinstance(right, Fraction) and sign in ("==", "!=")):
        return flags(numpy().full(len(left.values), sign == "!="))
    if isinstance(right, Fraction):
        sign, right = ("<=", floor(right)) if sign[0] == "<" else (">=", ceil(right))
    assert isinstance(right, int | float)
    if isinstance(right, float) or (not _fits(right, right) and not _is_wide(left)):  # equal for all 64-bit integers
        return flags(numpy().full(len(left.values), bool(_COMPARE[sign](0, right))))
    return flags(_COMPARE[sign](left.values, right))


def _combine_flags(sign: str, left: Value, right: Value) -> Value:
    if not is_column(left) or not is_column(right):
        scalar, column = (left, right) if not is_column(left) else (right, left)
        assert not is_column(scalar) and is_column(column)
        if _flag(scalar) == (sign == "or"):
            return flags(numpy().full(len(column.values), sign == "or"))
        return column if column.is_flag else logical_not(logical_not(column))
    if not (left.is_flag and right.is_flag):
        raise TypeError("expected two booleans")
    return flags(left.values & right.values if sign == "and" else left.values | right.values)


def _apply_arithmetic(sign: str, left: Column, right: Column) -> Column:
    if sign in ("+", "-", "*"):
        return _apply_to_bounds(sign, left, right)
    if sign == "**":
        return _raise_to_power(left, right)
    if sign == "/":
        raise InexactError("`/` is not exact; use `//`, or multiply the other side")
    if bool((right.values == 0).any()):
        raise ZeroDivisionError
    if sign == "//":
        maximum = max(abs(left.low), abs(left.high))
        return Column(_ARITHMETIC["//"](*_as_common_type(left, right, -maximum - 1, maximum)), -maximum - 1, maximum)
    maximum = max(abs(right.low), abs(right.high))
    low, high = (0, maximum - 1) if right.low > 0 else (-maximum, maximum)
    return Column(operator.mod(*_as_common_type(left, right, low, high)), low, high)


def _apply_to_bounds(sign: str, left: Column, right: Column) -> Column:
    compute = _ARITHMETIC[sign]
    ends = [compute(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(ends), max(ends)
    return Column(compute(*_as_common_type(left, right, low, high)), low, high)


def _raise_to_power(base: Column, exponent: Column) -> Column:
    if exponent.low != exponent.high or not 0 <= exponent.low <= MAX_POWER:
        raise InexactError(f"expected an exponent from 0 to {MAX_POWER} that all designs share")
    length = max(len(base.values), len(exponent.values))
    power = Column(numpy().ones(length, dtype="int64"), 1, 1)
    for _ in range(exponent.low):
        power = _apply_to_bounds("*", power, base)
    return power


def _as_common_type(left: Column, right: Column, low: int, high: int) -> tuple[Array, Array]:
    """Return both arrays in a type in which a result from `low` to `high` is exact."""
    if _fits(low, high) and not _is_wide(left) and not _is_wide(right):
        return left.values, right.values
    return left.values.astype(object), right.values.astype(object)


def _integers(value: Value) -> Column:
    if is_column(value):
        if value.is_flag:
            raise TypeError("expected an integer, found a boolean")
        return value
    if isinstance(value, Fraction | float):
        raise InexactError("only integers can be combined with values that differ between designs; multiply both sides")
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("expected an integer")
    return Column(numpy().array([value], dtype="int64" if _fits(value, value) else object), value, value)


def _number(value: Value) -> int | Fraction | float:
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float):
        raise TypeError("expected a number")
    return value


def _flag(value: Value) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected a boolean")
    return value


def _is_wide(value: Column) -> bool:
    return value.values.dtype == object


def _fits(low: int, high: int) -> bool:
    return low >= -MAX_INT64 and high <= MAX_INT64
