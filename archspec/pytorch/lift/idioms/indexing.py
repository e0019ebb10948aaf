"""Elements at indices as operations of the language; each function returns None if they are not that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from archspec.core.algebra import Dim, product
from archspec.ir.ops.check import broadcast_shapes
from archspec.pytorch.calls.placement import first_index, from_the_start
from archspec.pytorch.calls.rows import take_along_axis
from archspec.pytorch.calls.shape import embedding, last_as_negative
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Value, number_in

Indices = Sequence[tuple[int, Value]]
"""The axes that have indices, and these."""


def rows_of_table(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return rows of the first axis: a slice where they follow each other, or else an embedding."""
    axis, ids = indices[0]
    if len(indices) > 1 or axis != 0 or ids.dtype != "int":
        return None
    first = first_index(b.arrays, ids.array)
    if first is not None:
        return b.op("slice", x, axis=0, start=first, stop=first + ids.shape[0])
    return embedding(b, from_the_start(b, ids, x.shape[0]), x)


def one_place(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return the slice at a single known index."""
    axis, ids = indices[0]
    number = number_in(ids) if len(indices) == 1 and ids.shape == (1,) else None
    if not isinstance(number, int):
        return None
    at = number % x.shape[axis]
    return b.op("slice", x, axis=last_as_negative(axis, x), **({"start": at} if at else {}), stop=at + 1)


def whole_tensor(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return a tensor with the axes that indices have if each of them counts along one axis."""
    rank = max(len(index.shape) for _, index in indices)
    shape: list[Dim] = [1] * rank
    for size, (_, index) in zip(x.shape, indices, strict=False):
        along = [axis - len(index.shape) for axis, other in enumerate(index.shape) if other != 1]
        if len(along) != 1:
            return None
        shape[along[0]] = size
    return b.reshape(x, shape) if [size for size in shape if size != 1] == [*x.shape] else None


def token_at(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return the token of each sequence at an index."""
    if len(x.shape) != 3 or [axis for axis, _ in indices] != [0, 1]:
        return None
    return b.function("token_at", [b.written(x), b.shortened(indices[1][1])], made.shape)


def rows_of_each(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return the rows of each item of a batch at indices of its own."""
    if [axis for axis, _ in indices] != [0, 1] or indices[1][1].shape != made.shape[:2]:
        return None
    index, rest = indices[1][1], x.shape[2:]
    wide = b.reshape(index, (*index.shape, *[1] * len(rest)))
    return b.op("gather", x, b.spread(wide, (*index.shape, *rest)), axis=1)


def along_axis(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return elements at indices along one axis."""
    axis, ids = indices[0]
    if made.dtype != "real" or len(indices) > 1 or ids.dtype != "int":
        return None
    return take_along_axis(b, x, from_the_start(b, ids, x.shape[axis]), axis)


def at_places(b: SpecBuilder, made: Value, x: Value, indices: Indices) -> Value | None:
    """Return elements at indices along several axes, which are replaced by the axes of the indices."""
    if made.dtype != "real" or any(index.dtype != "int" for _, index in indices):
        return None
    shape = reduce(partial(broadcast_shapes, argument="index"), [ids.shape for _, ids in indices])
    starts = [from_the_start(b, ids, x.shape[axis]) for axis, ids in indices]
    flat = [b.reshape(b.spread(ids, shape), (product(shape),)) for ids in starts]
    axes = [axis for axis, _ in indices]
    rest = [axis for axis in range(len(x.shape)) if axis not in axes]
    found = b.op("embedding", flat[0], b.permute(x, [*axes, *rest]))
    for ids in flat[1:]:
        sizes = found.shape[2:]
        index = b.spread(b.reshape(ids, (product(shape), *[1] * (1 + len(sizes)))), (product(shape), 1, *sizes))
        found = b.reshape(b.op("gather", found, index, axis=1), (product(shape), *sizes))
    found = b.reshape(found, (*shape, *found.shape[1:]))
    first = axes[0] if axes == [*range(axes[0], axes[-1] + 1)] else 0  # where the axes are apart, theirs are in front
    count = len(shape)
    return b.permute(found, [*range(count, count + first), *range(count), *range(count + first, len(found.shape))])
