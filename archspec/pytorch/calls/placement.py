"""Operations of PyTorch that put elements into tensors: padding, replacement of slices and of elements at indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import index_name
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.elementwise import where
from archspec.pytorch.calls.rows import Row, Types, constant, convert, fixed_size, slice_axis, take_along_axis
from archspec.pytorch.calls.shape import wrap_negative_indices
from archspec.pytorch.values.arguments import refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Value, number_in

# Beyond the ends. -----------------------------------------------------------------------------------------------------


def pad(
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
            fill = {"value": constant(value or 0, x.dtype)} if value or x.dtype == "bool" else {}
            x = b.op("pad", x, axis=axis, before=ends[0], after=ends[1], **fill)
    return x


def _pad_with_number(b: Builder, types: Types, x: Value, by: Sequence[Dim], value: Scalar = 0) -> Value:
    return pad(b, types, x, by, "constant", value)


def _padded_by(mode: str) -> Row:
    def call(b: Builder, types: Types, x: Value, by: Sequence[Dim]) -> Value:
        return pad(b, types, x, by, mode)

    return call


def _continued(b: Builder, x: Value, axis: int, before: Dim, after: Dim, mode: str) -> Value:
    """Return a tensor that continues beyond its ends: by its last element, mirrored, or repeated."""
    size = x.shape[axis]
    if not (isinstance(before, int) and isinstance(after, int)) and mode == "replicate":
        places = b.op("sub", b.op("arange", stop=before + size + after), before)
        return take_along_axis(b, x, b.op("min", b.op("max", places, 0), size - 1), axis)
    if not (isinstance(before, int) and isinstance(after, int) and before >= 0 <= after):
        refuse("pad")
    places = [_place_beyond(mode, size, place) for place in (*range(-before, 0), *range(after))]
    ends = [slice_axis(b, x, axis, place, place + 1) for place in places]
    return b.op("concat", *ends[:before], x, *ends[before:], axis=axis)


def _place_beyond(mode: str, size: Dim, place: int) -> Dim:
    """Return which element continues an axis before its beginning, for a place below 0, or after its end."""
    match mode:
        case "replicate":
            return 0 if place < 0 else size - 1
        case "reflect":
            return -place if place < 0 else size - 2 - place
        case "circular":
            return size + place if place < 0 else place
        case _:
            refuse("pad")


# In slices. -----------------------------------------------------------------------------------------------------------


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
    if step != 1 and count * step == size and first in range(step):  # a column of rows of so many elements
        column = b.reshape(source, (*x.shape[:axis], count, 1, *x.shape[axis + 1 :]))
        rows = b.reshape(x, (*x.shape[:axis], count, step, *x.shape[axis + 1 :]))
        return b.reshape(_slice_scatter(b, types, rows, column, axis + 1, first), x.shape)
    source = convert(b, source, types[0].dtype)
    if step != 1:
        return _replaced(b, x, source, axis, first, step)
    last = first + count
    before = [slice_axis(b, x, axis, 0, first)] if first != 0 else []
    after = [slice_axis(b, x, axis, last, size)] if last != size else []
    parts = [*before, source, *after]
    return b.recognize("slice_scatter", b.op("concat", *parts, axis=axis), *parts, axis=axis)


def _replaced(b: Builder, x: Value, source: Value, axis: int, first: Dim, step: int) -> Value:
    """Return a tensor in which elements in steps along an axis are replaced."""
    size, count, first = [fixed_size("slice_scatter", at) for at in (x.shape[axis], source.shape[axis], first)]
    if b.op("slice", x, axis=axis, start=first, stop=min(first + count * step, size), step=step).array == source.array:
        return x
    places = {first + turn * step: turn for turn in range(count)}
    pieces = [(source, places[at]) if at in places else (x, at) for at in range(size)]
    return b.op("concat", *[slice_axis(b, part, axis, at, at + 1) for part, at in pieces], axis=axis)


def _select_scatter(b: Builder, types: Types, x: Value, source: Value, dim: int, index: int) -> Value:
    axis = dim % len(x.shape)
    return _slice_scatter(b, types, x, b.reshape(source, (*x.shape[:axis], 1, *x.shape[axis + 1 :])), axis, index)


def _index_copy(b: Builder, types: Types, x: Value, dim: int, index: Value, source: Value) -> Value:
    first = first_index(b.arrays, index.array)
    return _slice_scatter(b, types, x, source, dim, first) if first is not None else refuse("index_copy")


def first_index(n: Arrays, index: Array) -> int | None:
    """Return the first of indices that follow each other; None for others."""
    if len(index.shape) != 1 or n.dtype(index) != "int":
        return None
    over = n.axes.index("s0", index.shape[0])
    first = n.elements.polynomial(n.at(index, [over])) - over
    return first if isinstance(first, int) and first >= 0 else None


# At indices. ----------------------------------------------------------------------------------------------------------


def _scatter(
    b: Builder,
    types: Types,
    x: Value,
    dim: int,
    index: Value,
    source: Operand | None = None,
    *,
    value: Operand | None = None,
    reduce: str | None = None,
) -> Value:
    """Return a tensor with one number where an index along an axis points."""
    number = source if value is None else value
    axis, rank = dim % len(x.shape), len(x.shape)
    last = [at for at in range(rank) if at != axis]
    if number is None or reduce is not None or any(index.shape[at] != x.shape[at] for at in last):
        refuse("scatter")
    hits = b.op("sum", b.op("one_hot", b.permute(index, [*last, axis]), count=x.shape[axis]), axis=-2)
    test = b.op("ge", b.permute(hits, [*range(axis), rank - 1, *range(axis, rank - 1)]), 1)
    return where(b, types, test, _one_number(b, types, number), x)


def _one_number(b: Builder, types: Types, value: Operand) -> Operand:
    """Return the number that all elements of a tensor are."""
    if not isinstance(value, Value):
        return constant(value, types[0].dtype)
    number = number_in(value.operands[0] if value.op == "real" else value)
    if number is not None:
        return constant(number, types[0].dtype)
    if b.arrays.elements.nodes[value.array.element].names:
        refuse("scatter")
    return value if not value.shape else b.form("scatter", Array((), value.array.element))


def _index_put(
    b: Builder, types: Types, x: Value, indices: list[Value | None], value: Value, accumulate: bool = False
) -> Value:
    """Return a tensor with other elements where a mask of its leading axes is true, the same in each place, or with one
    number at indices of its leading axes. Indices that follow each other are a slice, which any tensor replaces.
    """
    given = [index for index in indices if index is not None]
    first = first_index(b.arrays, given[0].array) if len(given) == len(indices) == 1 and not accumulate else None
    if first is not None and value.shape == (*given[0].shape, *x.shape[1:]):
        return _slice_scatter(b, types, x, value, 0, first)
    masks = [index for index in given if index.dtype == "bool"]
    if accumulate or len(given) < len(indices) or (masks and len(given) > 1):
        refuse("index_put")
    test = masks[0] if masks else _hits(b, x.shape, given)
    is_repeated = bool(masks) and len(value.shape) <= len(x.shape) - len(test.shape)
    test = b.reshape(test, (*test.shape, *[1] * (len(x.shape) - len(test.shape))))
    number = number_in(value)
    replaced = value if is_repeated and number is None else _one_number(b, types, value)
    return where(b, types, test, replaced, x)


def _hits(b: Builder, shape: Sequence[Dim], indices: Sequence[Value]) -> Value:
    """Return which places of the leading axes of a shape are at indices, which have one axis."""
    rank = len(indices)
    size = max([index.shape[0] if index.shape else 1 for index in indices], key=str)
    if any(len(index.shape) != 1 or index.shape[0] not in (1, size) for index in indices):
        refuse("index_put")
    n = b.arrays
    is_each_row = first_index(n, indices[0].array) == 0 and indices[0].shape == (shape[0],) and shape[0] == size
    if is_each_row and rank == 2:
        ids = from_the_start(b, indices[1], shape[1])
        return b.op("eq", b.reshape(ids, (*ids.shape, 1)), b.op("arange", stop=shape[1]))
    tests: list[Value] = []
    for axis, index in enumerate(indices):
        ids = b.reshape(from_the_start(b, index, shape[axis]), (*index.shape, *[1] * rank))
        places = b.reshape(b.op("arange", stop=shape[axis]), (shape[axis], *[1] * (rank - 1 - axis)))
        tests.append(b.op("eq", ids, places))
    hits = tests[0]
    for test in tests[1:]:
        hits = b.op("and", hits, test)
    return b.op("ge", b.op("sum", b.op("int", hits), axis=0), 1)


def from_the_start(b: Builder, ids: Value, size: Dim) -> Value:
    """Return indices of an axis, of which negative ones count from its end, as those that count from its start."""
    return ids if wrap_negative_indices(b.arrays, ids.array, size) == ids.array else b.op("mod", ids, size)


def _masked_scatter(b: Builder, types: Types, x: Value, mask: Value, source: Value) -> Value:
    """Return a tensor with the rows of another one in the rows where a mask is true, in their order."""
    lead = len(x.shape) - _axes_of_rows(b.arrays, types[0].shape, mask.array, source.shape)
    sizes, rest = x.shape[:lead], x.shape[lead:]
    for axis in range(len(mask.shape)):
        if axis - len(mask.shape) >= -len(rest):
            mask = b.op("slice", mask, axis=axis, stop=1)
    hits = b.expand(b.reshape(mask, mask.shape[: len(mask.shape) - len(rest)]), sizes)
    counts = b.op("cumsum", convert(b, b.reshape(hits, (product(sizes),)), "int"))
    places = b.reshape(b.op("max", b.op("sub", counts, 1), 0), sizes)
    rows = b.reshape(source, (product(source.shape[: len(source.shape) - len(rest)]), *rest))
    return b.op("where", b.reshape(hits, (*sizes, *[1] * len(rest))), b.op("embedding", places, rows), x)


def _axes_of_rows(n: Arrays, shape: Sequence[Dim], mask: Array, source: Sequence[Dim]) -> int:
    """Return how many last axes a row has: a mask is the same along them, and two tensors have the same sizes."""
    names = n.elements.nodes[mask.element].names
    varying = [index_name(at) in names for at in n.own(mask.shape)]
    found = 0
    for size, other, is_varying in zip_longest(shape[:0:-1], source[::-1], varying[::-1]):
        if size is None or size != other or is_varying:
            break
        found += 1
    return found or refuse("masked_scatter")


NAMES: dict[Row, str] = {
    pad: "pad",
    _pad_with_number: "constant_pad_nd",
    _padded_by("reflect"): "reflection_pad1d reflection_pad2d reflection_pad3d",
    _padded_by("replicate"): "replication_pad1d replication_pad2d replication_pad3d",
    _slice_scatter: "slice_scatter",
    _select_scatter: "select_scatter",
    _index_copy: "index_copy",
    _scatter: "scatter",
    _index_put: "index_put",
    _masked_scatter: "masked_scatter",
}
"""The names of the operations that each row is for."""
