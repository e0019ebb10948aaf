"""Columns of exact integers, one for each design, and arithmetic on them.

A column has bounds. As long as those of a result fit in 64 bits, it is computed in 64 bits; otherwise in integers of
any size, which are slower. Nothing overflows.
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
"""An array of numpy, which is an optional package: of integers of 64 bits or of any size, of booleans, of values."""

MAX_INT64 = 2**63 - 1


def numpy() -> ModuleType:
    """Return the package. Raises ArchError if it is not installed."""
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

    def at(self, position: int) -> int:
        """Return one value as a Python scalar."""
        found = self.values[position]
        return bool(found) if self.is_flag else int(found)

    def take(self, chosen: Array | slice) -> Column:
        """Return the values at some positions, or where an array of booleans is true."""
        return Column(self.values[chosen], self.low, self.high)


Value: TypeAlias = "Column | Scalar | list[Value]"
"""A list is one that an expression lists."""


class InexactError(Exception):
    """An operation is not defined for columns; the text is for the user."""


def column(values: Sequence[int]) -> Column:
    """Return a column of integers of any size."""
    low, high = min(values, default=0), max(values, default=0)
    dtype = "int64" if _fits(low, high) else object
    return Column(numpy().array(values, dtype=dtype), low, high)


def flags(values: Array) -> Column:
    """Return a column of booleans."""
    return Column(values.astype(bool), 0, 1)


def joined(parts: Sequence[Column]) -> Column:
    """Return the values of all columns, of which there is at least one."""
    values = numpy().concatenate([part.values for part in parts])
    return Column(values, min(part.low for part in parts), max(part.high for part in parts))


def is_column(value: object) -> TypeGuard[Column]:
    return isinstance(value, Column)


# Arithmetic -----------------------------------------------------------------------------------------------------------


def binary(sign: str, left: Value, right: Value) -> Value:
    """Apply an operator. Raises Inexact, ZeroDivisionError, or TypeError for operands of wrong types."""
    if not isinstance(left, Column) and not isinstance(right, Column):
        return _scalars(sign, left, right)
    if sign in _COMPARE:
        return _compared(sign, left, right)
    if sign in ("and", "or"):
        return _combined(sign, left, right)
    return _arithmetic(sign, _integers(left), _integers(right))


def negative(value: Value) -> Value:
    if not is_column(value):
        return -_number(value)
    return _arithmetic("-", _integers(0), _integers(value))


def opposite(value: Value) -> Value:
    if not is_column(value):
        return not _flag(value)
    if not value.is_flag:
        raise TypeError("expected a boolean")
    return flags(~value.values)


def extreme(name: str, values: Sequence[Value]) -> Value:
    """Return the least (`min`) or the greatest (`max`) of some values."""
    choose = min if name == "min" else max
    if not any(is_column(value) for value in values):
        return choose(map(_number, values))
    found = _integers(values[0])
    ufunc = numpy().minimum if name == "min" else numpy().maximum
    for value in values[1:]:
        other = _integers(value)
        low, high = choose(found.low, other.low), choose(found.high, other.high)
        found = Column(ufunc(*_same(found, other, low, high)), low, high)
    return found


def where(condition: Value, value: Value, otherwise: Value) -> Value:
    """Return one of two values for each design."""
    if not is_column(condition):
        return value if _flag(condition) else otherwise
    if not condition.is_flag:
        raise TypeError("expected a boolean")
    one, other = _integers(value), _integers(otherwise)
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Column(numpy().where(condition.values, *_same(one, other, low, high)), low, high)


def contained(value: Value, items: Sequence[Value]) -> Value:
    """Whether a value is one of several."""
    found: Value = False
    for item in items:
        found = binary("or", found, binary("==", value, item))
    return found


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


def _scalars(sign: str, left: Value, right: Value) -> Scalar:
    if sign in ("==", "!="):
        return (left == right) == (sign == "==")
    if sign in ("and", "or"):
        one, other = _flag(left), _flag(right)
        return one and other if sign == "and" else one or other
    a, b = _number(left), _number(right)
    if sign in _COMPARE:
        return bool(_COMPARE[sign](a, b))
    if sign == "/":
        return exact(Fraction(a) / Fraction(b))
    if sign == "**":
        if not isinstance(b, int) or abs(b) > MAX_POWER:
            raise InexactError(f"an exponent is an integer up to {MAX_POWER}")
        return exact(Fraction(a) ** b)
    return exact(_ARITHMETIC[sign](a, b))


def exact(number: int | float | Fraction) -> int | Fraction | float:
    """Return a number as an integer or a fraction; a real number stands for its shortest decimal notation."""
    if isinstance(number, float):
        if number in (float("inf"), float("-inf")) or number != number:
            return number
        number = Fraction(repr(number))
    return number.numerator if number.denominator == 1 else number


def _compared(sign: str, left: Value, right: Value) -> Column:
    if not is_column(left):
        assert is_column(right)
        return _compared(_FLIPPED[sign], right, left)
    if is_column(right):
        return flags(_COMPARE[sign](left.values, right.values))
    is_alike = left.is_flag == isinstance(right, bool) and isinstance(right, int | Fraction | float)
    if not is_alike and sign not in ("==", "!="):
        raise TypeError("expected two numbers")
    if not is_alike or (isinstance(right, Fraction) and sign in ("==", "!=")):
        return flags(numpy().full(len(left.values), sign == "!="))
    if isinstance(right, Fraction):
        sign, right = ("<=", floor(right)) if sign[0] == "<" else (">=", ceil(right))
    assert isinstance(right, int | float)
    if isinstance(right, float) or (not _fits(right, right) and not _is_wide(left)):  # the same for all 64-bit integers
        return flags(numpy().full(len(left.values), bool(_COMPARE[sign](0, right))))
    return flags(_COMPARE[sign](left.values, right))


def _combined(sign: str, left: Value, right: Value) -> Value:
    if not is_column(left) or not is_column(right):
        one, other = (left, right) if not is_column(left) else (right, left)
        assert not is_column(one) and is_column(other)
        if _flag(one) == (sign == "or"):
            return flags(numpy().full(len(other.values), sign == "or"))
        return other if other.is_flag else opposite(opposite(other))
    if not (left.is_flag and right.is_flag):
        raise TypeError("expected two booleans")
    return flags(left.values & right.values if sign == "and" else left.values | right.values)


def _arithmetic(sign: str, left: Column, right: Column) -> Column:
    if sign in ("+", "-", "*"):
        return _plain(sign, left, right)
    if sign == "**":
        return _power(left, right)
    if sign == "/":
        raise InexactError("`/` is not exact; use `//`, or multiply the other side")
    if bool((right.values == 0).any()):
        raise ZeroDivisionError
    if sign == "//":
        most = max(abs(left.low), abs(left.high))
        return Column(_ARITHMETIC["//"](*_same(left, right, -most - 1, most)), -most - 1, most)
    most = max(abs(right.low), abs(right.high))
    low, high = (0, most - 1) if right.low > 0 else (-most, most)
    return Column(operator.mod(*_same(left, right, low, high)), low, high)


def _plain(sign: str, left: Column, right: Column) -> Column:
    compute = _ARITHMETIC[sign]
    ends = [compute(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(ends), max(ends)
    return Column(compute(*_same(left, right, low, high)), low, high)


def _power(base: Column, exponent: Column) -> Column:
    if exponent.low != exponent.high or not 0 <= exponent.low <= MAX_POWER:
        raise InexactError(f"an exponent is one integer from 0 to {MAX_POWER}")
    length = max(len(base.values), len(exponent.values))
    found = Column(numpy().ones(length, dtype="int64"), 1, 1)
    for _ in range(exponent.low):
        found = _plain("*", found, base)
    return found


def _same(left: Column, right: Column, low: int, high: int) -> tuple[Array, Array]:
    """Return both arrays with a type in which a result from `low` to `high` is exact."""
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
