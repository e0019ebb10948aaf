"""Types and conversions that all rows of the table of calls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, overload

from archspec.core.algebra import Dim, Polynomial
from archspec.ir.module import Type
from archspec.ir.ops.record import Scalar
from archspec.pytorch.values.arguments import Axes, as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Setting, Value

Results: TypeAlias = Value | Sequence[Value | None]
"""What a call makes. None stands for a result that is not computed, because only training uses it."""

Row: TypeAlias = Callable[..., Results]
Types: TypeAlias = Sequence[Type]


@overload
def convert(b: Builder, x: Value, dtype: str) -> Value: ...
@overload
def convert(b: Builder, x: Operand, dtype: str) -> Operand: ...
def convert(b: Builder, x: Operand, dtype: str) -> Operand:
    """Return a value converted to an element type."""
    if not isinstance(x, Value) or x.dtype == dtype:
        return x
    return b.op("ne", x, 0 if x.dtype == "int" else 0.0) if dtype == "bool" else b.op(dtype, x)


@overload
def number_of(b: Builder, x: Value) -> Value: ...
@overload
def number_of(b: Builder, x: Operand) -> Operand: ...
def number_of(b: Builder, x: Operand) -> Operand:
    """Return an operand of arithmetic: booleans are 0 and 1."""
    if isinstance(x, Value):
        return convert(b, x, "int") if x.dtype == "bool" else x
    return int(x) if isinstance(x, bool) else x


def tensor_of(b: Builder, x: Operand) -> Value:
    """Return an operand as a tensor: a number as one without axes."""
    return x if isinstance(x, Value) else b.op("full", shape=(), value=x)


def constant(number: Scalar, dtype: str) -> bool | int | float:
    """Return a number as one of an element type, which PyTorch converts it to. Raises TypeError for a dimension."""
    if isinstance(number, Polynomial):
        raise TypeError("a dimension is no constant")
    return bool(number) if dtype == "bool" else int(number) if dtype == "int" else float(number)


def filled(b: Builder, types: Types, value: Scalar) -> Value:
    """Return a result that is one number everywhere."""
    return b.op("full", shape=types[0].shape, value=constant(value, types[0].dtype))


def int_if_whole(value: Scalar) -> Scalar:
    """Return a number, as an integer if it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def axes_of(rank: int, dim: Axes) -> list[int]:
    """Return the axes of a tensor of some rank that an argument names; all for none."""
    return list(range(rank)) if dim is None or dim == [] else [axis % rank for axis in as_list(dim)]


def along(x: Value, dim: Axes, keepdim: bool = False) -> dict[str, Setting]:
    """Return the settings of an operation along axes; the last one alone is -1."""
    axes = axes_of(len(x.shape), dim)
    axis = (-1 if axes[0] == len(x.shape) - 1 else axes[0]) if len(axes) == 1 else axes
    return {"axis": axis, **({"keep": True} if keepdim else {})}


def reduced(b: Builder, name: str, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    """Return a reduction along axes; a tensor without axes is its own."""
    return b.op(name, x, **along(x, dim, keepdim)) if x.shape else x


def slice_axis(b: Builder, x: Value, axis: int, first: Dim, last: Dim) -> Value:
    """Return the elements along an axis from one index to another."""
    return b.op("slice", x, axis=axis, start=first, stop=last)


def take_along_axis(b: Builder, x: Value, ids: Value, axis: int) -> Value:
    """Return the elements at indices along an axis, which is replaced by the axes of the indices."""
    rank, count = len(x.shape), len(ids.shape)
    rows = b.op("embedding", ids, b.permute(x, [axis, *[at for at in range(rank) if at != axis]]))
    return b.permute(rows, [*range(count, count + axis), *range(count), *range(count + axis, rank + count - 1)])


def fixed_size(name: str, size: Dim) -> int:
    """Return a size that depends on no dimension. Raises Untranslatable for others."""
    return size if isinstance(size, int) else refuse(name)
