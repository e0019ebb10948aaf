"""Operations of PyTorch that arrange elements, select them, or make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import maxsize

from archspec.core.algebra import Dim, Polynomial, dim_max
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import Element, ElementNode
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.rows import (
    Row,
    Types,
    constant,
    convert,
    filled,
    int_if_whole,
    slice_axis,
    take_along_axis,
)
from archspec.pytorch.values.arguments import UntranslatableError, as_list, is_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.numbers import is_counted_exactly
from archspec.pytorch.values.values import Setting, Value


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


def _reversed(b: Builder, types: Types, x: Value) -> Value:
    return b.permute(x, [*range(len(x.shape))][::-1])


def _move(b: Builder, types: Types, x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    rank = len(x.shape)
    moved = dict(zip([at % rank for at in as_list(destination)], [at % rank for at in as_list(source)], strict=True))
    rest = iter([axis for axis in range(rank) if axis not in moved.values()])
    return b.permute(x, [moved[axis] if axis in moved else next(rest) for axis in range(rank)])


# Parts. ---------------------------------------------------------------------------------------------------------------


def _slice(
    b: Builder, types: Types, x: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: int = 1
) -> Value:
    axis, shape = dim % len(x.shape), types[0].shape
    if shape == x.shape:
        return x
    n, size = b.arrays, x.shape[axis]
    first = _first_of_slice(n, size, 0 if start is None else start)
    exact = n.view(x.array, shape, lambda i: [*i[:axis], i[axis] * step + first, *i[axis + 1 :]])

    def write() -> Value:
        settings: dict[str, Setting] = {} if first == 0 else {"start": first}
        stop = first + shape[axis] if step == 1 else end
        if isinstance(stop, int) and isinstance(size, int):
            stop = min(stop, size)  # as PyTorch does
        if stop not in (size, maxsize):
            settings["stop"] = stop
        return b.op("slice", x, axis=last_as_negative(axis, x), **settings, **({"step": step} if step != 1 else {}))

    return b.form("slice", exact, write)


def _first_of_slice(n: Arrays, size: Dim, first: Dim) -> Dim:
    """Return where a slice of an axis begins: PyTorch counts from the end below 0, and leaves out what is outside."""
    if isinstance(first, int) and first < 0:
        first = first + size
    if isinstance(first, int) and isinstance(size, int):
        first = min(max(first, 0), size)
    if not isinstance(first, int) and n.axes.is_at_least(-first, 1):
        first = first + size
    return first if isinstance(first, int) or n.axes.is_at_least(first, 0) else dim_max(first, 0)


def last_as_negative(axis: int, x: Value) -> int:
    """Return the number of an axis; -1 for the last."""
    return -1 if axis % len(x.shape) == len(x.shape) - 1 and len(x.shape) > 2 else axis % len(x.shape)


def _select(b: Builder, types: Types, x: Value, dim: int, index: Dim) -> Value:
    return b.op("pick", b.written(x), axis=dim % len(x.shape), index=index)


def _split(b: Builder, types: Types, x: Value, sizes: object, dim: int = 0) -> list[Value]:
    axis = dim % len(x.shape)
    return b.ops("split", x, sizes=tuple([type.shape[axis] for type in types]), axis=last_as_negative(axis, x))


def _unbind(b: Builder, types: Types, x: Value, dim: int = 0) -> list[Value]:
    return [b.op("pick", x, axis=dim % len(x.shape), index=turn) for turn in range(len(types))]


def _concat(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    kept = [convert(b, tensor, types[0].dtype) for tensor in tensors if 0 not in tensor.shape] or tensors[:1]
    return kept[0] if len(kept) == 1 else b.op("concat", *kept, axis=last_as_negative(dim, kept[0]))


def _stack(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    return b.op("stack", *[convert(b, tensor, types[0].dtype) for tensor in tensors], axis=dim)


def _repeat(b: Builder, types: Types, x: Value, repeats: Sequence[Dim]) -> Value:
    repeats = [*[1] * (len(x.shape) - len(repeats)), *repeats]  # `tile` permits fewer repeats than axes
    sizes = (1,) * (len(repeats) - len(x.shape)) + x.shape
    split = [part for size in sizes for part in (1, size)]
    wide = [part for times, size in zip(repeats, sizes, strict=True) for part in (times, size)]
    return b.reshape(b.expand(b.reshape(x, split), wide), types[0].shape)


def _repeat_interleave(b: Builder, types: Types, x: Value, repeats: int, dim: int, output_size: object = None) -> Value:
    axis = dim % len(x.shape) + 1
    split = (*x.shape[:axis], 1, *x.shape[axis:])
    return b.reshape(b.expand(b.reshape(x, split), (*x.shape[:axis], repeats, *x.shape[axis:])), types[0].shape)


def flip(b: Builder, types: Types, x: Value, dims: Sequence[int]) -> Value:
    """Return the elements in the opposite order along axes."""
    for dim in dims:
        axis = dim % len(x.shape)
        size = x.shape[axis]
        x = take_along_axis(b, x, b.op("sub", size - 1, b.op("arange", stop=size)), axis)
    return x


def _roll(b: Builder, types: Types, x: Value, shifts: Dim | Sequence[Dim], dims: int | Sequence[int] = ()) -> Value:
    return b.op("roll", x, shift=shifts, axis=dims)


# Elements at indices. -------------------------------------------------------------------------------------------------


def _index(b: Builder, types: Types, x: Value, indices: list[Value | None]) -> Value:
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if any(index.dtype == "bool" for index in given.values()):
        raise UntranslatableError("it selects by a mask")
    n = b.arrays
    arrays = {axis: wrap_negative_indices(n, index.array, x.shape[axis]) for axis, index in given.items()}
    axes = sorted(arrays)
    first = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0  # indices that are apart have the first axes
    rank = max(len(index.shape) for index in arrays.values())

    def element(i: Indices) -> Element:
        chosen = i[first : first + rank]
        rest = iter([*i[:first], *i[first + rank :]])
        at = [
            n.elements.polynomial(n.broadcast_element(arrays[axis], chosen)) if axis in arrays else next(rest)
            for axis in range(len(x.shape))
        ]
        return n.at(x.array, at)

    made = b.made("index", [x, indices], n.make(types[0].shape, element))
    return b.recognize("index", made, x, [*given.items()])


def wrap_negative_indices(n: Arrays, index: Array, size: Dim) -> Array:
    """Return indices in which those below 0 count from the end: the same modulo the size, as no others are in range.

    The results of searches are never below 0, nor are those constants whose numbers are known.
    """
    e = n.elements

    def of(_: Elements, part: Element) -> Element:
        node = e.nodes[part]
        base = e.nodes[node.base] if node.kind == "load" else node
        if base.kind in ("input", "order") or _is_whole(base) or e.at_least_zero(part) == e.true:
            return part
        return e.integer(n.axes.divide(e.polynomial(part), size)[1])

    return n.each(index.shape, of, index)


def _is_whole(base: ElementNode) -> bool:
    """Whether no number of a table that elements are loaded from is below 0."""
    is_table = base.kind == "operation" and base.arguments[0] == "table"
    return is_table and all(number >= 0 for number in _integers(base.arguments[1]))


def _integers(item: object) -> Iterator[int]:
    """Yield the integers in nested sequences."""
    if isinstance(item, int):
        yield item
    elif is_list(item):
        for part in item:
            yield from _integers(part)


def _gather(b: Builder, types: Types, x: Value, dim: int, index: Value, **rest: object) -> Value:
    return b.op("gather", x, index, axis=dim)


def _index_select(b: Builder, types: Types, x: Value, dim: int, index: Value) -> Value:
    return take_along_axis(b, x, index, dim % len(x.shape))  # unlike in `x[index]`, no index is negative


def embedding(b: Builder, ids: Value, table: Value) -> Value:
    """Return the rows of a table; leading axes of size 1 of the ids become a view."""
    return b.spread(b.op("embedding", b.shortened(ids), table), (*ids.shape, *table.shape[1:]))


def _embedding(b: Builder, types: Types, table: Value, ids: Value, *rest: object) -> Value:
    return embedding(b, ids, table)


def diagonal(b: Builder, types: Types, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Return the elements whose indices along two axes are the same, along a new last axis."""
    first, second = dim1 % len(x.shape), dim2 % len(x.shape)
    count, rest = types[0].shape[-1], [at for at in range(len(x.shape)) if at not in (first, second)]
    places = b.op("arange", stop=count)
    rows, columns = [b.op("add", places, max(by, 0)) for by in (-offset, offset)]
    flat = b.op("embedding", rows, b.permute(x, [first, second, *rest]))
    sizes = flat.shape[2:]
    index = b.spread(b.reshape(columns, (count, *[1] * (1 + len(sizes)))), (count, 1, *sizes))
    found = b.reshape(b.op("gather", flat, index, axis=1), (count, *sizes))
    return b.permute(found, [*range(1, len(found.shape)), 0])


def windows_along(b: Builder, x: Value, axis: int, count: Dim, step: int, size: int, gap: int = 1) -> Value:
    """Return the windows along an axis, which is replaced by an axis of elements of windows and one of windows."""
    taps = b.reshape(b.op("arange", stop=size), (size, 1))
    places = b.op("add", b.op("mul", taps, gap), b.op("mul", b.op("arange", stop=count), step))
    return take_along_axis(b, x, places, axis)


def _unfold(b: Builder, types: Types, x: Value, dim: int, size: int, step: int) -> Value:
    axis = dim % len(x.shape)
    found = windows_along(b, x, axis, types[0].shape[axis], step, size)
    return b.permute(found, [*[at for at in range(len(found.shape)) if at != axis], axis])


# Tensors that are made. -----------------------------------------------------------------------------------------------


def _arange(b: Builder, types: Types, *values: Scalar, step: Scalar = 1, **keywords: object) -> Value:
    start, by = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else step)
    is_whole = types[0].dtype == "int"
    if is_whole or isinstance(start, Polynomial) or isinstance(by, Polynomial):
        start, by = int_if_whole(start), int_if_whole(by)
    is_real = isinstance(start, float) or isinstance(by, float)
    if is_real and (is_whole or isinstance(start, Polynomial) or isinstance(by, Polynomial)):
        refuse("arange")
    made = b.op("arange", stop=types[0].shape[0])
    if is_real:
        made, start, by = b.op("real", made), constant(start, "real"), constant(by, "real")
    made = made if by == 1 else b.op("mul", made, by)
    made = convert(b, made if start == 0 else b.op("add", made, start), types[0].dtype)
    if is_counted_exactly([*values[:2], by] if len(values) > 1 else values):
        return made
    rounded = "it uses `arange` with a step that is not a binary fraction, which PyTorch rounds"
    return b.form("arange", made.array, reason=rounded)


def _full(b: Builder, types: Types, shape: object, value: Scalar, **keywords: object) -> Value:
    return _scalar(b, types, value)


def _new_full(b: Builder, types: Types, like: Value, shape: object, value: Scalar, **keywords: object) -> Value:
    return _scalar(b, types, value)


def _filled(value: float) -> Row:
    def call(b: Builder, types: Types, *rest: object, **keywords: object) -> Value:
        return filled(b, types, value)

    return call


def _scalar(b: Builder, types: Types, value: Scalar, **keywords: object) -> Value:
    if not isinstance(value, Polynomial):
        return filled(b, types, value)
    e = b.arrays.elements
    element = e.real(e.integer(value)) if types[0].dtype == "real" else e.integer(value)
    return b.form("full", b.arrays.array(types[0].shape, element))


def _places(b: Builder, rows: Dim, columns: Dim) -> Value:
    """Return by how much the column exceeds the row."""
    return b.op("sub", b.op("arange", stop=columns), b.reshape(b.op("arange", stop=rows), (rows, 1)))


def _triangle(name: str) -> Row:
    def call(b: Builder, types: Types, x: Value, diagonal: int = 0) -> Value:
        test = b.op(name, _places(b, *x.shape[-2:]), diagonal)
        return b.op("and", x, test) if x.dtype == "bool" else b.op("where", test, x, constant(0, x.dtype))

    return call


def _identity(b: Builder, types: Types, *rest: object, **keywords: object) -> Value:
    return convert(b, b.op("int", b.op("eq", _places(b, *types[0].shape), 0)), types[0].dtype)


def _one_hot(b: Builder, types: Types, ids: Value, count: int = -1) -> Value:
    return b.op("one_hot", ids, count=types[0].shape[-1])


def _spaced(b: Builder, types: Types, start: float, end: float, steps: int, **keywords: object) -> Value:
    by = (end - start) / max(steps - 1, 1)
    if types[0].dtype == "int" and (start % 1 or by % 1):  # PyTorch rounds from both ends
        refuse("linspace")
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
    """Return the differences of adjacent elements."""
    if times != 1:
        refuse("diff")
    x = b.op("concat", *parts, axis=dim) if len(parts := [part for part in (prepend, x, append) if part]) > 1 else x
    size = x.shape[dim]
    return b.op("sub", slice_axis(b, x, dim, 1, size), slice_axis(b, x, dim, 0, size - 1))


def _mesh(b: Builder, types: Types, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    shape = types[0].shape
    return [
        b.spread(b.reshape(tensor, (*tensor.shape, *[1] * (len(shape) - 1 - axis))), shape)
        for tensor, axis in zip(tensors, order, strict=True)
    ]


NAMES: dict[Row, str] = {
    _reshape: "view _unsafe_view reshape unsqueeze squeeze flatten unflatten view_as reshape_as ravel",
    _expand: "expand broadcast_to expand_as",
    _permute: "permute",
    _transpose: "transpose swapaxes swapdims",
    _matrix_transpose: "t mT adjoint",
    _reversed: "numpy_T",
    _move: "movedim moveaxis",
    _slice: "slice narrow",
    _select: "select",
    _split: "split split_with_sizes chunk tensor_split unsafe_split unsafe_chunk",
    _unbind: "unbind",
    _concat: "cat concat",
    _stack: "stack",
    _repeat: "repeat tile",
    _repeat_interleave: "repeat_interleave",
    flip: "flip",
    _roll: "roll",
    _index: "index",
    _gather: "gather",
    _index_select: "index_select",
    _embedding: "embedding",
    diagonal: "diagonal",
    _unfold: "unfold",
    _arange: "arange",
    _full: "full full_like",
    _new_full: "new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros empty empty_like new_empty",
    _filled(1): "ones ones_like new_ones",
    _triangle("ge"): "triu",
    _triangle("le"): "tril",
    _identity: "eye",
    _one_hot: "one_hot",
    _spaced: "linspace",
    _mesh: "meshgrid",
    _difference: "diff",
}
"""The names of the operations that each row is for."""
