"""Which axes of a value count channels, followed through operations that move elements.

An axis is a product of factors, the last of which varies fastest. A channel comes from a linear map, a convolution or
a table; a repetition from `expand`; all else are positions. So a query of shape [batch, 12, seq, 64] has 12 heads if
its second axis counts channels, and one that is split into windows has no more heads for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias, cast

from archspec.core.algebra import Dim, product
from archspec.core.record import Record
from archspec.ir.module import Call, Type
from archspec.ir.ops import OPS


class Factor(Record):
    """A factor of an axis; `kind` is "channel", "repetition" or "position"."""

    size: Dim
    kind: str


Axis: TypeAlias = tuple[Factor, ...]
Axes: TypeAlias = tuple[Axis, ...]


def axis(size: Dim, kind: str = "position") -> Axis:
    """Return an axis of one factor, of none for size 1."""
    return () if size == 1 else (Factor(size, kind),)


def axes_of_type(type: Type) -> Axes:
    """Return the axes of a value of unknown origin: numbers have channels in their last axis."""
    kinds = ["position"] * len(type.shape)
    if type.dtype == "real" and kinds:
        kinds[-1] = "channel"
    return tuple(map(axis, type.shape, kinds))


def channels(axes: Sequence[Axis]) -> Dim:
    """Return the number of channels that axes count together."""
    return product([factor.size for axis in axes for factor in axis if factor.kind == "channel"])


def moved_axes(call: Call, operands: Sequence[Axes], type: Type) -> Axes:
    """Return the axes of a result of an operation of the group Shape."""
    op, axes, rank = OPS[call.type], operands[0], len(operands[0])
    settings = op.settings(call.attributes)
    if "shape" in settings:
        return _regrouped(axes, type.shape) if op.rearranges else _repeated(axes, type.shape)
    if "order" in settings:
        return tuple([axes[i % rank] for i in cast("Sequence[int]", settings["order"])])
    if "a" in settings:
        a, b = (cast("int", settings[name]) % rank for name in "ab")
        order = list(range(rank))
        order[a], order[b] = b, a
        return tuple([axes[i] for i in order])
    if len(type.shape) > rank:
        position = cast("int", settings["axis"]) % (rank + 1)
        return (*axes[:position], axis(len(operands), "channel"), *axes[position:])
    if len(type.shape) < rank:
        position = cast("int", settings["axis"]) % rank
        return (*axes[:position], *axes[position + 1 :])
    kinds = [_main_kind(axis) for axis in axes]
    return resized_axes(axes, type.shape, kinds)


def resized_axes(axes: Axes, shape: Sequence[Dim], kinds: Sequence[str] = ()) -> Axes:
    """Return axes of which some have another size; those count what `kinds` says, by default positions."""
    kinds = kinds or ["position"] * len(axes)
    sizes = zip(axes, shape, kinds, strict=True)
    return tuple([old if size_of(old) == size else axis(size, kind) for old, size, kind in sizes])


def product_axes(left: Axes, right: Axes, type: Type) -> Axes:
    """Return the axes of a matrix product."""
    batch = joined_axes([left[:-2], right[:-2]], Type(type.shape[:-2]))
    return (*batch, *left[-2:-1], *right[-1:])


def _repeated(axes: Axes, shape: Sequence[Dim]) -> Axes:
    padded = ((),) * (len(shape) - len(axes)) + axes
    return tuple([old or axis(size, "repetition") for old, size in zip(padded, shape, strict=True)])


def joined_axes(operands: Sequence[Axes], type: Type) -> Axes:
    """Return the axes of an elementwise result, each from the operand in which it counts channels."""
    rank = len(type.shape)

    def choose(position: int, size: Dim) -> Axis:
        aligned = [axes[position - rank] for axes in operands if len(axes) >= rank - position]
        return max((a for a in aligned if size_of(a) == size), key=_is_channel, default=axis(size))

    return tuple([choose(position, size) for position, size in enumerate(type.shape)])


def _is_channel(axis: Axis) -> bool:
    return any(factor.kind == "channel" for factor in axis)


def _main_kind(axis: Axis) -> str:
    return "channel" if _is_channel(axis) else axis[-1].kind if axis else "position"


def size_of(axis: Axis) -> Dim:
    """Return the size of an axis."""
    return product([factor.size for factor in axis])


def _regrouped(axes: Axes, shape: Sequence[Dim]) -> Axes:
    """Return the axes of the same elements with another shape, as far as factors can be told apart from either end."""
    result: list[Axis | None] = [None] * len(shape)
    left = [factor for axis in axes for factor in axis]
    for place in reversed(range(len(shape))):
        axis_factors = _take(left, shape[place], from_end=True)
        if axis_factors is None:
            break
        result[place] = axis_factors
    for place in range(len(shape)):
        if result[place] is not None:
            break
        axis_factors = _take(left, shape[place], from_end=False)
        if axis_factors is None:
            break
        result[place] = axis_factors
    return tuple(
        [axis(size) if regrouped is None else regrouped for regrouped, size in zip(result, shape, strict=True)]
    )


def _take(factors: list[Factor], size: Dim, *, from_end: bool) -> Axis | None:
    """Remove the factors of an axis of a size from one end; None if none fit."""
    axis_factors: list[Factor] = []
    remaining = size
    while remaining != 1:
        if not factors:
            return None
        factor = factors[-1 if from_end else 0]
        quotient, part = _divide(remaining, factor.size), _divide(factor.size, remaining)
        if quotient is not None:
            axis_factors.append(factors.pop(-1 if from_end else 0))
            remaining = quotient
        elif part is not None:
            factors[-1 if from_end else 0] = factor._replace(size=part)
            axis_factors.append(Factor(remaining, factor.kind))
            remaining = 1
        else:
            return None
    return tuple(reversed(axis_factors)) if from_end else tuple(axis_factors)


def _divide(size: Dim, by: Dim) -> Dim | None:
    """Return an exact quotient of two sizes; None if there is none."""
    if size == by:
        return 1
    if isinstance(size, int) and isinstance(by, int):
        return size // by if size % by == 0 else None
    quotient = size // by
    return quotient if reduce(lambda a, b: a * b, [quotient, by]) == size else None
