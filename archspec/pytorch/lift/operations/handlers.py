"""Types and conversions that all handlers of operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, overload

from archspec.core.algebra import Dim, Polynomial
from archspec.ir.module import Type
from archspec.ir.ops.record import Scalar
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Operand, Value

Results: TypeAlias = Value | Sequence[Value | None] | None
"""What an operation makes. None stands for a result that is not computed, and for all if nothing expresses them."""

Handler: TypeAlias = Callable[..., Results]
Types: TypeAlias = Sequence[Type]


@overload
def convert(b: Builder, x: Value, dtype: str) -> Value: ...
@overload
def convert(b: Builder, x: Operand, dtype: str) -> Operand: ...
def convert(b: Builder, x: Operand, dtype: str) -> Operand:
    """Return a value converted to an element type."""
    if not isinstance(x, Value) or x.dtype == dtype:
        return x
    return _test(b, x) if dtype == "bool" else b.op(dtype, x)


def _test(b: Builder, x: Value) -> Value:
    """Return where a tensor is not 0: the test that it was made of, if it is 0 where that is false."""
    made = b.op("ne", x, 0 if x.dtype == "int" else 0.0)
    root, _ = b.layout(b.unwritten(x))
    test = root.args[0] if root.op in ("where", "int", "real") else None
    if isinstance(test, Value) and test.dtype == "bool" and test.shape == root.shape:
        found = b.laid_out(b.unwritten(test), b.unwritten(x), root)
        return found if found.array == made.array else made
    return made


@overload
def number_of(b: Builder, x: Value) -> Value: ...
@overload
def number_of(b: Builder, x: Operand) -> Operand: ...
def number_of(b: Builder, x: Operand) -> Operand:
    """Return an operand of arithmetic: booleans are 0 and 1."""
    if isinstance(x, Value):
        return convert(b, x, "int") if x.dtype == "bool" else x
    return int(x) if isinstance(x, bool) else x


def constant(number: Scalar, dtype: str) -> bool | int | float:
    """Return a number as one of an element type. Raises TypeError for a dimension."""
    if isinstance(number, Polynomial):
        raise TypeError("a dimension is no constant")
    return bool(number) if dtype == "bool" else int(number) if dtype == "int" else float(number)


def slice_axis(b: Builder, x: Value, axis: int, first: Dim, last: Dim) -> Value:
    """Return the elements along an axis from one index to another."""
    return b.op("slice", x, axis=axis, start=first, stop=last)


def fixed_size(size: Dim) -> int:
    """Return a size that depends on no dimension."""
    assert isinstance(size, int)
    return size
