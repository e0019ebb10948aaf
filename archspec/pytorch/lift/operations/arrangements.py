"""Arrangements of elements by PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from archspec.core.algebra import Dim, product
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.placing import axes_of_rows, first_index
from archspec.pytorch.calls.shape import moved_axes, number_of_type, place_beyond
from archspec.pytorch.calls.values import UntranslatableError
from archspec.pytorch.lift.operations.handlers import Handler, Types, constant, convert, fixed_size, slice_axis
from archspec.pytorch.lift.operations.shape import from_the_start, take_along_axis
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Operand, Value, number_in


def flip(b: Builder, types: Types, x: Value, dims: Sequence[int]) -> Value:
    """Return the elements in the opposite order along axes."""
    for dim in dims:
        axis = dim % len(x.shape)
        size = x.shape[axis]
        x = take_along_axis(b, x, b.op("sub", size - 1, b.op("arange", stop=size)), axis)
    return x


def _index_select(b: Builder, types: Types, x: Value, dim: int, index: Value) -> Value:
    return take_along_axis(b, x, index, dim % len(x.shape))


def _windows(b: Builder, count: Dim, step: int, size: int, gap: int = 1) -> Value:
    """Return where the elements of windows are: [size, count]."""
    taps = b.reshape(b.op("arange", stop=size), (size, 1))
    return b.op("add", b.op("mul", taps, gap), b.op("mul", b.op("arange", stop=count), step))


def _unfold(b: Builder, types: Types, x: Value, dim: int, size: int, step: int) -> Value:
    axis = dim % len(x.shape)
    found = take_along_axis(b, x, _windows(b, types[0].shape[axis], step, size), axis)
    return b.permute(found, [*[at for at in range(len(found.shape)) if at != axis], axis])


def _columns(
    b: Builder, types: Types, x: Value, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Value:
    for turn, (size, gap, end, step) in enumerate(zip(kernel, dilation, padding, stride, strict=True)):
        axis = 2 + 2 * turn
        x = b.op("pad", x, axis=axis, before=end, after=end) if end else x
        count = (x.shape[axis] - gap * (size - 1) - 1) // step + 1
        x = take_along_axis(b, x, _windows(b, count, step, size, gap), axis)
    places = range(2, len(x.shape))
    return b.reshape(b.permute(x, [0, 1, *places[::2], *places[1::2]]), types[0].shape)


def _pixel_shuffle(b: Builder, types: Types, x: Value, factor: int) -> Value:
    *lead, channels, height, width = x.shape
    rank = len(lead)
    split = b.reshape(x, (*lead, channels // factor**2, factor, factor, height, width))
    order = [*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2]
    return b.reshape(b.permute(split, order), types[0].shape)


def _pixel_unshuffle(b: Builder, types: Types, x: Value, factor: int) -> Value:
    *lead, channels, height, width = x.shape
    rank = len(lead)
    split = b.reshape(x, (*lead, channels, height // factor, factor, width // factor, factor))
    order = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    return b.reshape(b.permute(split, order), types[0].shape)


def _move(b: Builder, types: Types, x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    return b.permute(x, moved_axes(len(x.shape), source, destination))


def _mesh(b: Builder, types: Types, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    shape = types[0].shape
    return [
        b.spread(b.reshape(tensor, (tensor.shape[0], *[1] * (len(shape) - 1 - axis))), shape)
        for tensor, axis in zip(tensors, order, strict=True)
    ]


def _pad(
    b: Builder, types: Types, x: Value, pad: Sequence[Dim], mode: str = "constant", value: Scalar | None = None
) -> Value:
    """Return a tensor with a number before and after its last axes, or continued; with fewer elements below 0."""
    for turn in range(len(pad) // 2):
        axis, ends = len(x.shape) - 1 - turn, pad[2 * turn : 2 * turn + 2]
        if mode != "constant":
            x = _continued(b, x, axis, ends[0], ends[1], mode)
            continue
        cut = [max(-end, 0) if isinstance(end, int) else 0 for end in ends]
        if any(cut):
            x = slice_axis(b, x, axis, cut[0], x.shape[axis] - cut[1])
            ends = [0 if less else end for end, less in zip(ends, cut, strict=True)]
        if [*ends] != [0, 0]:
            fill = {"value": number_of_type(value or 0, x.dtype)} if value or x.dtype == "bool" else {}
            x = b.op("pad", x, axis=axis, before=ends[0], after=ends[1], **fill)
    return x


def _pad_with_number(b: Builder, types: Types, x: Value, pad: Sequence[Dim], value: Scalar = 0) -> Value:
    return _pad(b, types, x, pad, "constant", value)


def _continued(b: Builder, x: Value, axis: int, before: Dim, after: Dim, mode: str) -> Value:
    """Return a tensor that continues beyond its ends: by its last element, mirrored, or repeated."""
    size = x.shape[axis]
    if not isinstance(before, int) or not isinstance(after, int):
        places = b.op("sub", b.op("arange", stop=before + size + after), before)
        return take_along_axis(b, x, b.op("min", b.op("max", places, 0), size - 1), axis)
    places = [place_beyond(mode, size, place) for place in (*range(-before, 0), *range(after))]
    ends = [slice_axis(b, x, axis, place, place + 1) for place in places]
    return b.op("concat", *ends[:before], x, *ends[before:], axis=axis)


def _padded_by(mode: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, pad: Sequence[Dim]) -> Value:
        return _pad(b, types, x, pad, mode)

    return call


def _slice_scatter(
    b: Builder,
    types: Types,
    x: Value,
    source: Value,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: int = 1,
) -> Value:
    """Return a tensor in which a slice is replaced."""
    axis = dim % len(x.shape)
    size, count = x.shape[axis], source.shape[axis]
    first = 0 if start is None else start
    first = first + size if isinstance(first, int) and first < 0 else first
    last = first + count
    if step != 1 and count * step == size and first in range(step):  # a column of rows of so many elements
        column = b.reshape(source, (*x.shape[:axis], count, 1, *x.shape[axis + 1 :]))
        rows = b.reshape(x, (*x.shape[:axis], count, step, *x.shape[axis + 1 :]))
        return b.reshape(_slice_scatter(b, types, rows, column, axis + 1, first), x.shape)
    if step != 1:
        return _replaced(b, x, convert(b, source, types[0].dtype), axis, first, step)
    source = convert(b, source, types[0].dtype)
    before = [slice_axis(b, x, axis, 0, first)] if first != 0 else []
    after = [slice_axis(b, x, axis, last, size)] if last != size else []
    found = b.op("concat", *before, source, *after, axis=axis)
    parts = [*_parts(x, axis, 0, first), source, *_parts(x, axis, last, size)]
    shorter = b.op("concat", *parts, axis=axis) if sum([part.shape[axis] for part in parts]) == size else found
    return shorter if shorter.array == found.array else found


def _parts(x: Value, axis: int, first: Dim, last: Dim) -> list[Value]:
    """Return the values that are joined between two indices along an axis; none if these are not where parts end."""
    if x.op == "concat" and x.settings.get("axis") in (axis, axis - len(x.shape)):
        ends = [*accumulate([part.shape[axis] for part in x.operands], initial=0)]
        if first in ends and last in ends:
            return [*x.operands[ends.index(first) : ends.index(last)]]
    return []


def _replaced(b: Builder, x: Value, source: Value, axis: int, first: Dim, step: int) -> Value:
    """Return a tensor in which elements in steps along an axis are replaced."""
    size, count, first = fixed_size(x.shape[axis]), fixed_size(source.shape[axis]), fixed_size(first)
    if b.op("slice", x, axis=axis, start=first, stop=min(first + count * step, size), step=step).array == source.array:
        return x
    places = {first + turn * step: turn for turn in range(count)}
    pieces = [(source, places[at]) if at in places else (x, at) for at in range(size)]
    return b.op("concat", *[slice_axis(b, part, axis, at, at + 1) for part, at in pieces], axis=axis)


def _select_scatter(b: Builder, types: Types, x: Value, source: Value, dim: int, index: int) -> Value:
    axis = dim % len(x.shape)
    return _slice_scatter(b, types, x, b.reshape(source, (*x.shape[:axis], 1, *x.shape[axis + 1 :])), axis, index)


def _scatter(
    b: Builder,
    types: Types,
    x: Value,
    dim: int,
    index: Value,
    source: Operand | None = None,
    *,
    value: Operand | None = None,
) -> Value:
    """Return a tensor with a number where an index along an axis points."""
    number = source if value is None else value
    if isinstance(number, Value):
        number = number_in(number.operands[0] if number.op == "real" else number)
    axis = dim % len(x.shape)
    if number is None:
        raise UntranslatableError("`scatter` is supported for a single number only")
    last = [at for at in range(len(x.shape)) if at != axis]
    hits = b.op("sum", b.op("one_hot", b.permute(index, [*last, axis]), count=x.shape[axis]), axis=-2)
    order = [*range(axis), len(x.shape) - 1, *range(axis, len(x.shape) - 1)]
    test = b.op("ge", b.permute(hits, order), 1)
    return b.op("where", test, constant(number, types[0].dtype), x)


def _index_put(b: Builder, types: Types, x: Value, indices: list[Value], value: Value, *rest: object) -> Value:
    """Return a tensor with other elements where a mask of its leading axes is true, the same in each place, in a slice
    of its first axis, or with a number in each row of that where an index points.
    """
    first, *others = indices
    start = first_index(b.arrays, first.array) if not others else None
    if start is not None and value.shape == (*first.shape, *x.shape[1:]):
        return _slice_scatter(b, types, x, value, 0, start)
    if first.dtype == "bool":
        test = first
    elif first.op == "arange" and len(others) == 1:
        ids = from_the_start(b, others[0], x.shape[1])
        test = b.op("eq", b.reshape(ids, (*ids.shape, 1)), b.op("arange", stop=x.shape[1]))
    else:
        raise UntranslatableError("it replaces elements at indices")
    test = b.reshape(test, (*test.shape, *[1] * (len(x.shape) - len(test.shape))))
    number = number_in(value)
    return b.op("where", test, value if number is None else number, x)


def _masked_scatter(b: Builder, types: Types, x: Value, mask: Value, source: Value) -> Value:
    """Return a tensor with the rows of another one in the rows where a mask is true, in their order."""
    lead = len(x.shape) - axes_of_rows(b.arrays, types[0].shape, mask.array, source.shape)
    sizes, rest = x.shape[:lead], x.shape[lead:]
    for axis in range(len(mask.shape)):
        if axis - len(mask.shape) >= -len(rest):
            mask = b.op("slice", mask, axis=axis, stop=1)
    hits = b.expand(b.reshape(mask, mask.shape[: len(mask.shape) - len(rest)]), sizes)
    counts = b.op("cumsum", convert(b, b.reshape(hits, (product(sizes),)), "int"))
    places = b.reshape(b.op("max", b.op("sub", counts, 1), 0), sizes)
    rows = b.reshape(source, (product(source.shape[: len(source.shape) - len(rest)]), *rest))
    return b.op("where", b.reshape(hits, (*sizes, *[1] * len(rest))), b.op("embedding", places, rows), x)


def _index_copy(b: Builder, types: Types, x: Value, dim: int, index: Value, source: Value) -> Value:
    return _slice_scatter(b, types, x, source, dim, first_index(b.arrays, index.array))


def _places(b: Builder, rows: Dim, columns: Dim) -> Value:
    """Return by how much the column exceeds the row."""
    return b.op("sub", b.op("arange", stop=columns), b.reshape(b.op("arange", stop=rows), (rows, 1)))


def _triangle(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, diagonal: int = 0) -> Value:
        test = b.op(name, _places(b, *x.shape[-2:]), diagonal)
        if x.dtype == "bool":
            return b.op("and", x, test)
        return b.op("where", test, x, 0.0 if x.dtype == "real" else 0)

    return call


def _identity(b: Builder, types: Types, *rest: object, **keywords: object) -> Value:
    return convert(b, b.op("int", b.op("eq", _places(b, *types[0].shape), 0)), types[0].dtype)


def _one_hot(b: Builder, types: Types, ids: Value, count: int = -1) -> Value:
    return b.op("one_hot", ids, count=types[0].shape[-1])


def _spaced(b: Builder, types: Types, start: float, end: float, steps: int, **keywords: object) -> Value:
    by = (end - start) / max(steps - 1, 1)
    return b.op("add", b.op("mul", b.op("real", b.op("arange", stop=steps)), by), float(start))


def _difference(
    b: Builder,
    types: Types,
    x: Value,
    times: int = 1,
    dim: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
) -> Value:
    """Return the differences between neighbors along an axis."""
    x = b.op("concat", *[part for part in (prepend, x, append) if part is not None], axis=dim)
    size = x.shape[dim]
    return b.op("sub", slice_axis(b, x, dim, 1, size), slice_axis(b, x, dim, 0, size - 1))


NAMES: dict[Handler, str] = {
    flip: "flip",
    _index_select: "index_select",
    _unfold: "unfold",
    _columns: "im2col",
    _pixel_shuffle: "pixel_shuffle",
    _pixel_unshuffle: "pixel_unshuffle",
    _move: "movedim moveaxis",
    _mesh: "meshgrid",
    _padded_by("reflect"): "reflection_pad1d reflection_pad2d reflection_pad3d",
    _padded_by("replicate"): "replication_pad1d replication_pad2d replication_pad3d",
    _slice_scatter: "slice_scatter",
    _select_scatter: "select_scatter",
    _scatter: "scatter",
    _index_put: "index_put",
    _masked_scatter: "masked_scatter",
    _index_copy: "index_copy",
    _triangle("ge"): "triu",
    _triangle("le"): "tril",
    _identity: "eye",
    _one_hot: "one_hot",
    _spaced: "linspace",
    _difference: "diff",
    _pad: "pad",
    _pad_with_number: "constant_pad_nd",
}
"""The names of the operations that each function is for."""
