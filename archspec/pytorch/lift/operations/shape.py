"""Operations of PyTorch that arrange or make elements, as values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from sys import maxsize

from archspec.core.algebra import Dim, Polynomial, product
from archspec.ir.ops.check import broadcast_shapes
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.placing import first_index
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.calls.shape import wrap_negative_indices
from archspec.pytorch.calls.values import UntranslatableError, compute_results, int_if_whole
from archspec.pytorch.lift.idioms.rotary import partial_rotation, rotation_of_parts
from archspec.pytorch.lift.operations.handlers import Handler, Types, constant, convert
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.numbers import is_counted_exactly
from archspec.pytorch.lift.values.values import Setting, Value, number_in


def _reshape(b: Builder, types: Types, x: Value, *rest: object, **keywords: object) -> Value:
    return b.reshape(x, types[0].shape)


def _expand(b: Builder, types: Types, x: Value, *rest: object, **keywords: object) -> Value:
    return b.expand(x, types[0].shape)


def _permute(b: Builder, types: Types, x: Value, order: list[int]) -> Value:
    return b.permute(x, order)


def _transpose(b: Builder, types: Types, x: Value, first: int, second: int) -> Value:
    order = list(range(len(x.shape)))
    order[first], order[second] = order[second], order[first]
    return b.permute(x, order)


def _matrix_transpose(b: Builder, types: Types, x: Value) -> Value:
    return _transpose(b, types, x, -1, -2) if len(x.shape) > 1 else x


def _slice(
    b: Builder, types: Types, x: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: int = 1
) -> Value:
    axis, shape = dim % len(x.shape), types[0].shape
    if shape == x.shape:
        return x
    size, first = x.shape[axis], 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = first + size
    settings: dict[str, Setting] = {} if first == 0 else {"start": first}
    stop = first + shape[axis] if step == 1 else end
    if isinstance(stop, int) and isinstance(size, int):
        stop = min(stop, size)  # as PyTorch does
    if stop not in (size, maxsize):
        settings["stop"] = stop
    return b.op("slice", x, axis=_last(axis, x), **settings, **({"step": step} if step != 1 else {}))


def _last(axis: int, x: Value) -> int:
    """Return the number of an axis; -1 for the last."""
    return -1 if axis % len(x.shape) == len(x.shape) - 1 and len(x.shape) > 2 else axis % len(x.shape)


def _select(b: Builder, types: Types, x: Value, dim: int, index: Dim) -> Value:
    x = b.written(x)
    axis = dim % len(x.shape)
    if len(x.shape) == 3 and axis == 1 and index == 0:
        found = b.function("first", [x], types[0].shape, x.dtype)
        if found is not None:
            return found
    return b.op("pick", x, axis=axis, index=index)


def _concat(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    kept = [tensor for tensor in tensors if 0 not in tensor.shape]
    axis = _last(dim, kept[0])
    if len(kept) == 1:
        return kept[0]
    rotated = partial_rotation(b, kept, axis) or rotation_of_parts(b, kept, axis)
    return rotated or b.op("concat", *kept, axis=axis)


def _stack(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    return b.op("stack", *tensors, axis=dim)


def _split(b: Builder, types: Types, x: Value, sizes: object, dim: int = 0) -> list[Value]:
    axis = dim % len(x.shape)
    return b.ops("split", x, sizes=tuple([type.shape[axis] for type in types]), axis=_last(axis, x))


def _unbind(b: Builder, types: Types, x: Value, dim: int = 0) -> list[Value]:
    return [b.op("pick", x, axis=dim % len(x.shape), index=turn) for turn in range(len(types))]


def repeat(b: Builder, types: Types, x: Value, repeats: Sequence[Dim]) -> Value:
    """Return a tensor that is repeated along its axes, the last of which the numbers are for."""
    repeats = [*[1] * (len(x.shape) - len(repeats)), *repeats]
    sizes = (1,) * (len(repeats) - len(x.shape)) + x.shape
    split = [part for size in sizes for part in (1, size)]
    wide = [part for times, size in zip(repeats, sizes, strict=True) for part in (times, size)]
    return b.reshape(b.expand(b.reshape(x, split), wide), types[0].shape)


def _repeat_interleave(b: Builder, types: Types, x: Value, repeats: int, dim: int, output_size: object = None) -> Value:
    axis = dim % len(x.shape) + 1
    split = (*x.shape[:axis], 1, *x.shape[axis:])
    return b.reshape(b.expand(b.reshape(x, split), (*x.shape[:axis], repeats, *x.shape[axis:])), types[0].shape)


def _roll(b: Builder, types: Types, x: Value, shifts: Dim | Sequence[Dim], dims: int | Sequence[int] = ()) -> Value:
    return b.op("roll", x, shift=shifts, axis=dims)


def _selected_all(b: Builder, x: Value, indices: Sequence[Value]) -> Value | None:
    """Return a tensor with the axes that indices have if each of them counts along one axis; None otherwise."""
    rank = max(len(index.shape) for index in indices)
    shape: list[Dim] = [1] * rank
    for size, index in zip(x.shape, indices, strict=False):
        along = [axis - len(index.shape) for axis, other in enumerate(index.shape) if other != 1]
        if len(along) != 1:
            return None
        shape[along[0]] = size
    return b.reshape(x, shape) if [size for size in shape if size != 1] == [*x.shape] else None


def from_the_start(b: Builder, ids: Value, size: Dim) -> Value:
    """Return indices of an axis, of which negative ones count from its end, as those that count from its start."""
    if wrap_negative_indices(b.arrays, ids.array, size) == ids.array:
        return ids
    return b.op("mod", ids, size)


def _index(b: Builder, types: Types, x: Value, indices: list[Value | None]) -> Value:
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(given) == 1 and given[0][0] == 0 and given[0][1].dtype == "int":
        ids = given[0][1]
        first = first_index(b.arrays, ids.array)
        if first is not None:
            return b.op("slice", x, axis=0, start=first, stop=first + ids.shape[0])
        return embedding(b, from_the_start(b, ids, x.shape[0]), x)
    number = number_in(given[0][1]) if len(given) == 1 and given[0][1].shape == (1,) else None
    if isinstance(number, int):
        axis = given[0][0]
        at = number % x.shape[axis]
        return b.op("slice", x, axis=_last(axis, x), **({"start": at} if at else {}), stop=at + 1)
    found = _by_form("index", b, types, x, indices)
    viewed = _selected_all(b, x, [index for _, index in given])
    if viewed is not None and viewed.array == found.array:
        return viewed
    if len(x.shape) == 3 and [axis for axis, _ in given] == [0, 1]:
        token = b.function("token_at", [b.written(x), b.shortened(given[1][1])], types[0].shape)
        if token is not None and token.array == found.array:
            return token
    if [axis for axis, _ in given] == [0, 1] and given[1][1].shape == types[0].shape[:2]:
        rows = _rows_of_each(b, x, given[1][1])
        if rows.array == found.array:
            return rows
    if found.dtype == "real" and len(given) == 1 and given[0][1].dtype == "int":
        axis, ids = given[0]
        return take_along_axis(b, x, from_the_start(b, ids, x.shape[axis]), axis)
    if found.dtype == "real" and all(index.dtype == "int" for _, index in given):
        return _at_places(b, x, [(axis, from_the_start(b, ids, x.shape[axis])) for axis, ids in given])
    return found


def _at_places(b: Builder, x: Value, given: Sequence[tuple[int, Value]]) -> Value:
    """Return the elements at indices along several axes, which are replaced by the axes of the indices."""
    shape = reduce(partial(broadcast_shapes, argument="index"), [ids.shape for _, ids in given])
    flat = [b.reshape(b.spread(ids, shape), (product(shape),)) for _, ids in given]
    axes = [axis for axis, _ in given]
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


def diagonal(b: Builder, types: Types, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Return the elements whose indices along two axes are the same, along a new last axis."""
    axes = [dim1 % len(x.shape), dim2 % len(x.shape)]
    places = b.op("arange", stop=types[0].shape[-1])
    ids = [b.op("add", places, max(by, 0)) for by in (-offset, offset)]
    found = _at_places(b, x, [*zip(axes, ids, strict=True)])
    first = axes[0] if axes[1] == axes[0] + 1 else 0
    return b.permute(found, [*[at for at in range(len(found.shape)) if at != first], first])


def take_along_axis(b: Builder, x: Value, ids: Value, axis: int) -> Value:
    """Return the elements at indices along an axis, which is replaced by the axes of the indices."""
    rank, count = len(x.shape), len(ids.shape)
    rows = b.op("embedding", ids, b.permute(x, [axis, *[at for at in range(rank) if at != axis]]))
    return b.permute(rows, [*range(count, count + axis), *range(count), *range(count + axis, rank + count - 1)])


def _rows_of_each(b: Builder, x: Value, index: Value) -> Value:
    """Return the rows of each item of a batch at indices of its own."""
    rest = x.shape[2:]
    wide = b.reshape(index, (*index.shape, *[1] * len(rest)))
    return b.op("gather", x, b.spread(wide, (*index.shape, *rest)), axis=1)


def _by_form(name: str, b: Builder, types: Types, x: Value, indices: list[Value | None]) -> Value:
    """Return a value that can only be written from its normal form, as masks can."""
    arrays = [None if index is None else index.array for index in indices]
    (found,) = compute_results(CALLS[name](b.arrays, types, x.array, arrays))
    return b.made(name, [x, indices], found)


def _gather(b: Builder, types: Types, x: Value, dim: int, index: Value, **rest: object) -> Value:
    return b.op("gather", x, index, axis=dim)


def embedding(b: Builder, ids: Value, table: Value) -> Value:
    """Return the rows of a table; leading axes of size 1 of the ids become a view."""
    written = b.shortened(ids)
    found = b.op("embedding", written, table)
    return b.spread(found, (*ids.shape, *table.shape[1:]))


def _embedding(b: Builder, types: Types, table: Value, ids: Value, *rest: object) -> Value:
    return embedding(b, ids, table)


def _arange(b: Builder, types: Types, *values: Scalar, **keywords: object) -> Value:
    start, step = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else 1)
    if not is_counted_exactly(values):
        raise UntranslatableError("it uses `arange` with a step that is not a binary fraction, which PyTorch rounds")
    if isinstance(start, Polynomial) or isinstance(step, Polynomial):
        start, step = int_if_whole(start), int_if_whole(step)
    found = b.op("arange", stop=types[0].shape[0])
    if isinstance(start, float) or isinstance(step, float):
        found, start, step = b.op("real", found), constant(start, "real"), constant(step, "real")
    for name, by, neutral in (("mul", step, 1), ("add", start, 0)):
        if by != neutral:
            found = b.op(name, found, by)
    return convert(b, found, types[0].dtype)


def filled(b: Builder, types: Types, value: Scalar) -> Value:
    """Return a result that is one number everywhere."""
    return b.op("full", shape=types[0].shape, value=constant(value, types[0].dtype))


def _full(b: Builder, types: Types, shape: object, value: Scalar, **keywords: object) -> Value:
    return filled(b, types, value)


def _new_full(b: Builder, types: Types, like: Value, shape: object, value: Scalar, **keywords: object) -> Value:
    return filled(b, types, value)


def _filled(value: float) -> Handler:
    def call(b: Builder, types: Types, *rest: object, **keywords: object) -> Value:
        return filled(b, types, value)

    return call


def _scalar(b: Builder, types: Types, value: Scalar, **keywords: object) -> Value:
    return filled(b, types, value)


NAMES: dict[Handler, str] = {
    _reshape: "view _unsafe_view reshape unsqueeze squeeze flatten unflatten view_as reshape_as ravel",
    _expand: "expand broadcast_to expand_as",
    _permute: "permute",
    _transpose: "transpose swapaxes swapdims",
    _matrix_transpose: "t numpy_T mT adjoint",
    _slice: "slice narrow",
    _select: "select",
    _concat: "cat concat",
    _stack: "stack",
    _split: "split split_with_sizes chunk tensor_split unsafe_split unsafe_chunk",
    _unbind: "unbind",
    repeat: "repeat tile",
    _repeat_interleave: "repeat_interleave",
    _roll: "roll",
    _index: "index",
    diagonal: "diagonal",
    _gather: "gather",
    _embedding: "embedding",
    _arange: "arange",
    _full: "full full_like",
    _new_full: "new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros empty empty_like new_empty",
    _filled(1): "ones ones_like new_ones",
}
"""The names of the operations that each function is for."""
