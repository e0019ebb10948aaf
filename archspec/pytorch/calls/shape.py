"""Operations of PyTorch that arrange or make elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archspec.core.algebra import Dim, Expression, Polynomial, dim_max, dim_min
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms import shape as forms
from archspec.ir.normal.forms import weights
from archspec.ir.normal.forms.elementwise import constant
from archspec.ir.normal.nodes import Element, ElementNode
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.values import (
    Axes,
    Handler,
    Sizes,
    UntranslatableError,
    array_of,
    as_list,
    cast_to_type,
    int_if_whole,
    is_list,
    refuse,
)


def _reshape(n: Arrays, types: Sequence[Type], x: Array, *rest: object, **keywords: object) -> Array:
    return n.reshape(x, types[0].shape)


def _expand(n: Arrays, types: Sequence[Type], x: Array, *rest: object, **keywords: object) -> Array:
    return forms.expand(n, x, types[0].shape)


def _permute(n: Arrays, types: Sequence[Type], x: Array, order: list[int]) -> Array:
    return forms.permute(n, x, order)


def _transpose(n: Arrays, types: Sequence[Type], x: Array, a: int, b: int) -> Array:
    return forms.transpose(n, x, a, b)


def _matrix_transpose(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return forms.transpose(n, x, -1, -2) if len(x.shape) > 1 else x


def _slice(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: int = 1,
) -> Array:
    axis = dim % len(x.shape)
    size, first = x.shape[axis], 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = first + size
    if isinstance(first, int) and isinstance(size, int):
        first = min(max(first, 0), size)
    if not isinstance(first, int) and n.axes.is_at_least(-first, 1):
        first = first + size
    if not isinstance(first, int) and not n.axes.is_at_least(first, 0):
        first = dim_max(first, 0)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], i[axis] * step + first, *i[axis + 1 :]])


def _select(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Dim) -> Array:
    return forms.pick(n, x, dim, index)


def _concat(n: Arrays, types: Sequence[Type], tensors: list[Array], dim: int = 0) -> Array:
    kept = [tensor for tensor in tensors if tensor.shape != (0,)]
    return cast_to_type(n, forms.concat(n, *kept, axis=dim), types[0])


def _stack(n: Arrays, types: Sequence[Type], tensors: list[Array], dim: int = 0) -> Array:
    return cast_to_type(n, forms.stack(n, *tensors, axis=dim), types[0])


def _split(n: Arrays, types: Sequence[Type], x: Array, sizes: object, dim: int = 0) -> list[Array]:
    axis = dim % len(x.shape)
    return forms.split(n, x, [type.shape[axis] for type in types], axis)


def _unbind(n: Arrays, types: Sequence[Type], x: Array, dim: int = 0) -> list[Array]:
    return [forms.pick(n, x, dim, i) for i in range(len(types))]


def _repeat(n: Arrays, types: Sequence[Type], x: Array, repeats: list[Dim]) -> Array:
    new = max(len(repeats) - len(x.shape), 0)  # `tile` permits fewer repeats than axes
    wide = types[0].shape

    def place(i: Indices) -> list[Expression]:
        axes = zip(i[new:], wide[new:], x.shape, strict=True)
        return [at if size == whole else n.axes.divide(at, size)[1] for at, whole, size in axes]

    return n.view(x, wide, place)


def _repeat_interleave(
    n: Arrays, types: Sequence[Type], x: Array, repeats: int, dim: int, output_size: Dim | None = None
) -> Array:
    axis = dim % len(x.shape)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], n.axes.divide(i[axis], repeats)[0], *i[axis + 1 :]])


def flip(n: Arrays, types: Sequence[Type], x: Array, dims: list[int]) -> Array:
    """Return the elements in the opposite order along axes."""
    axes = {dim % len(x.shape) for dim in dims}
    return n.view(x, x.shape, lambda i: [x.shape[axis] - 1 - at if axis in axes else at for axis, at in enumerate(i)])


def _roll(n: Arrays, types: Sequence[Type], x: Array, shifts: Sizes, dims: Axes = ()) -> Array:
    return forms.roll(n, x, shifts, dims)


def _pad(
    n: Arrays, types: Sequence[Type], x: Array, pad: list[Dim], mode: str = "constant", value: float | None = None
) -> Array:
    for turn in range(len(pad) // 2):
        before, after = pad[2 * turn : 2 * turn + 2]
        axis = len(x.shape) - 1 - turn
        if mode != "constant":
            x = _continued(n, x, axis, before, after, mode)
            continue
        cut = [-end if isinstance(end, int) and end < 0 else 0 for end in (before, after)]
        if any(cut):
            x = forms.cut(n, x, axis, cut[0], x.shape[axis] - cut[1])
            before, after = [0 if less else end for end, less in zip((before, after), cut, strict=True)]
        if (before, after) != (0, 0):
            x = forms.pad(n, x, axis, before, after, number_of_type(value or 0, n.dtype(x)))
    return x


def number_of_type(value: Scalar, dtype: str) -> Scalar:
    """Return a number as an element of a tensor of this type, which PyTorch converts it to."""
    if dtype == "bool":
        return bool(value)
    return int(value) if dtype == "int" and isinstance(value, float) else value


def _pad_with_number(n: Arrays, types: Sequence[Type], x: Array, pad: list[Dim], value: float = 0) -> Array:
    return _pad(n, types, x, pad, "constant", value)


def _continued(n: Arrays, x: Array, axis: int, before: Dim, after: Dim, mode: str) -> Array:
    """Return a tensor that continues beyond its ends: by its last element, mirrored, or repeated."""
    size = x.shape[axis]
    if not (isinstance(before, int) and isinstance(after, int)) and mode == "replicate":
        shape = (*x.shape[:axis], before + size + after, *x.shape[axis + 1 :])
        return n.view(x, shape, lambda i: [*i[:axis], dim_min(dim_max(i[axis] - before, 0), size - 1), *i[axis + 1 :]])
    if not (isinstance(before, int) and isinstance(after, int) and before >= 0 <= after):
        refuse("pad")
    places = [place_beyond(mode, size, place) for place in (*range(-before, 0), *range(after))]
    ends = [forms.cut(n, x, axis, place, place + 1) for place in places]
    return forms.concat(n, *ends[:before], x, *ends[before:], axis=axis)


def place_beyond(mode: str, size: Dim, place: int) -> Dim:
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


def _pad_by(mode: str) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, pad: list[Dim]) -> Array:
        return _pad(n, types, x, pad, mode)

    return call


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


def _index(n: Arrays, types: Sequence[Type], x: Array, indices: list[Array | None]) -> Array:
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if any(n.dtype(index) == "bool" for index in given.values()):
        raise UntranslatableError("it selects by a mask")
    given = {axis: wrap_negative_indices(n, index, x.shape[axis]) for axis, index in given.items()}
    axes = sorted(given)
    together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if together else 0
    rank = max(len(index.shape) for index in given.values())

    def element(i: Indices) -> int:
        chosen = i[first : first + rank]
        rest = iter([*i[:first], *i[first + rank :]])
        return n.at(
            x,
            [
                n.elements.polynomial(n.broadcast_element(given[axis], chosen)) if axis in given else next(rest)
                for axis in range(len(x.shape))
            ],
        )

    return n.make(types[0].shape, element)


def _gather(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    return weights.gather(n, x, index, dim)


def _index_select(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array) -> Array:
    axis = dim % len(x.shape)  # unlike in `x[index]`, no index is negative

    def at(i: Indices) -> list[Expression]:
        return [*i[:axis], n.elements.polynomial(n.at(index, [i[axis]])), *i[axis + 1 :]]

    return n.view(x, types[0].shape, at)


def _embedding(n: Arrays, types: Sequence[Type], table: Array, ids: Array, *rest: object) -> Array:
    return weights.embedding(n, ids, table)


def _unfold(n: Arrays, types: Sequence[Type], x: Array, dim: int, size: int, step: int) -> Array:
    axis = dim % len(x.shape)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1]])


def _columns(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    kernel: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Array:
    """Return the windows of an image as columns."""
    batch, channels, *places = x.shape
    spaces = zip(places, kernel, dilation, padding, stride, strict=True)
    counts = [(size + 2 * end - gap * (taken - 1) - 1) // step + 1 for size, taken, gap, end, step in spaces]
    for axis, end in enumerate(padding):
        x = forms.pad(n, x, axis + 2, end, end, 0) if end else x
    shape = (batch, channels, *kernel, *counts)

    def at(i: Indices) -> list[Expression]:
        taps, own = i[2 : 2 + len(kernel)], i[2 + len(kernel) :]
        return [*i[:2], *[p * step + tap * gap for p, step, tap, gap in zip(own, stride, taps, dilation, strict=True)]]

    return n.reshape(n.view(x, shape, at), types[0].shape)


def _pixel_shuffle(n: Arrays, types: Sequence[Type], x: Array, factor: int) -> Array:
    *lead, channels, height, width = x.shape
    rank = len(lead)
    split = n.reshape(x, (*lead, channels // factor**2, factor, factor, height, width))
    order = [*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2]
    return n.reshape(forms.permute(n, split, order), types[0].shape)


def _pixel_unshuffle(n: Arrays, types: Sequence[Type], x: Array, factor: int) -> Array:
    *lead, channels, height, width = x.shape
    rank = len(lead)
    split = n.reshape(x, (*lead, channels, height // factor, factor, width // factor, factor))
    order = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    return n.reshape(forms.permute(n, split, order), types[0].shape)


def _move(
    n: Arrays, types: Sequence[Type], x: Array, source: int | Sequence[int], destination: int | Sequence[int]
) -> Array:
    return forms.permute(n, x, moved_axes(len(x.shape), source, destination))


def moved_axes(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> list[int]:
    """Return the order of axes in which some are moved, and the others fill the remaining places."""
    moved = dict(zip([at % rank for at in as_list(destination)], [at % rank for at in as_list(source)], strict=True))
    rest = iter([axis for axis in range(rank) if axis not in moved.values()])
    return [moved[axis] if axis in moved else next(rest) for axis in range(rank)]


def _arange(n: Arrays, types: Sequence[Type], *values: Scalar, step: Scalar = 1, **keywords: object) -> Array:
    start, by = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else step)
    e = n.elements
    is_whole = types[0].dtype == "int"
    if is_whole or isinstance(start, Polynomial) or isinstance(by, Polynomial):
        start, by = int_if_whole(start), int_if_whole(by)
    if not isinstance(start, float) and not isinstance(by, float):
        return cast_to_type(n, n.make(types[0].shape, lambda i: e.integer(i[0] * by + start)), types[0])
    if is_whole or isinstance(start, Polynomial) or isinstance(by, Polynomial):
        refuse("arange")
    return n.make(types[0].shape, lambda i: e.combination([(float(by), e.real(e.integer(i[0])))], float(start)))


def _full(n: Arrays, types: Sequence[Type], shape: object, value: Scalar, **keywords: object) -> Array:
    return cast_to_type(n, n.array(types[0].shape, constant(n.elements, value)), types[0])


def _new_full(n: Arrays, types: Sequence[Type], like: Array, shape: object, value: Scalar, **keywords: object) -> Array:
    return _full(n, types, shape, value)


def _filled(value: float) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *rest: object, **keywords: object) -> Array:
        return cast_to_type(n, n.array(types[0].shape, constant(n.elements, value)), types[0])

    return call


def _scalar(n: Arrays, types: Sequence[Type], value: Scalar, **keywords: object) -> Array:
    return cast_to_type(n, array_of(n, value), types[0])


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
    _repeat: "repeat tile",
    _unfold: "unfold",
    _columns: "im2col",
    _pixel_shuffle: "pixel_shuffle",
    _pixel_unshuffle: "pixel_unshuffle",
    _move: "movedim moveaxis",
    _pad_by("reflect"): "reflection_pad1d reflection_pad2d reflection_pad3d",
    _pad_by("replicate"): "replication_pad1d replication_pad2d replication_pad3d",
    _repeat_interleave: "repeat_interleave",
    flip: "flip",
    _roll: "roll",
    _pad: "pad",
    _pad_with_number: "constant_pad_nd",
    _index: "index",
    _gather: "gather",
    _index_select: "index_select",
    _embedding: "embedding",
    _arange: "arange",
    _full: "full full_like",
    _new_full: "new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros empty empty_like new_empty",
    _filled(1): "ones ones_like new_ones",
}
"""The names of the operations that each function is for."""
