"""Arrangements of elements by PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from archspec.equivalence.calls.images import resampled, window_means, windows
from archspec.equivalence.calls.values import Untranslatable, listed
from archspec.lifting.builder import Builder
from archspec.lifting.operations.handlers import Handler, Types, converted
from archspec.lifting.operations.table import OPERATIONS
from archspec.lifting.values import Value


def _slice(b: Builder, x: Value, axis: int, first: Any, last: Any) -> Value:
    return b.op("slice", x, axis=axis, start=first, stop=last)


def _alias(name: str) -> Handler:
    """Return the handler of the operation of another name, which takes the shape from the result."""

    def call(b: Builder, types: Types, x: Value, *rest: Any, **keywords: Any) -> Value:
        return OPERATIONS[name](b, types, x, *rest, **keywords)

    return call


def _tile(b: Builder, types: Types, x: Value, repeats: list[Any]) -> Value:
    return OPERATIONS["repeat"](b, types, x, [*[1] * (len(x.shape) - len(repeats)), *repeats])


def _taken(b: Builder, x: Value, ids: Value, axis: int) -> Value:
    """Return the elements at indices along an axis, which is replaced by the axes of the indices."""
    rank, count = len(x.shape), len(ids.shape)
    rows = b.op("embedding", ids, b.permute(x, [axis, *[at for at in range(rank) if at != axis]]))
    return b.permute(rows, [*range(count, count + axis), *range(count), *range(count + axis, rank + count - 1)])


def flip(b: Builder, types: Types, x: Value, dims: Sequence[int]) -> Value:
    """Return the elements in the opposite order along axes."""
    for dim in dims:
        axis = dim % len(x.shape)
        size = x.shape[axis]
        x = _taken(b, x, b.op("sub", size - 1, b.op("arange", stop=size)), axis)
    return x


def _index_select(b: Builder, types: Types, x: Value, dim: int, index: Value) -> Value:
    return _taken(b, x, index, dim % len(x.shape))


def _windows(b: Builder, count: Any, step: int, size: int, gap: int = 1) -> Value:
    """Return where the elements of windows are: [size, count]."""
    starts = b.op("mul", b.op("arange", stop=count), step) if step != 1 else b.op("arange", stop=count)
    taps = b.reshape(b.op("arange", stop=size), (size, 1))
    return b.op("add", b.op("mul", taps, gap) if gap != 1 else taps, starts)


def _unfold(b: Builder, types: Types, x: Value, dim: int, size: int, step: int) -> Value:
    axis = dim % len(x.shape)
    found = _taken(b, x, _windows(b, types[0].shape[axis], step, size), axis)
    return b.permute(found, [*[at for at in range(len(found.shape)) if at != axis], axis])


def _columns(
    b: Builder, types: Types, x: Value, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Value:
    for turn, (size, gap, end, step) in enumerate(zip(kernel, dilation, padding, stride, strict=True)):
        axis = 2 + 2 * turn
        x = b.op("pad", x, axis=axis, before=end, after=end) if end else x
        count = (x.shape[axis] - gap * (size - 1) - 1) // step + 1
        x = _taken(b, x, _windows(b, count, step, size, gap), axis)
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


def _move(b: Builder, types: Types, x: Value, source: Any, destination: Any) -> Value:
    rank = len(x.shape)
    moved = dict(zip([at % rank for at in listed(destination)], [at % rank for at in listed(source)], strict=True))
    rest = iter([axis for axis in range(rank) if axis not in moved.values()])
    return b.permute(x, [moved[axis] if axis in moved else next(rest) for axis in range(rank)])


def _mesh(b: Builder, types: Types, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    shape = types[0].shape
    return [
        b.spread(b.reshape(tensor, (tensor.shape[0], *[1] * (len(shape) - 1 - axis))), shape)
        for tensor, axis in zip(tensors, order, strict=True)
    ]


def _pad(b: Builder, types: Types, x: Value, pad: list[Any], value: Any = 0, mode: str = "constant") -> Value:
    if isinstance(value, str):
        value, mode = 0, value
    for turn in range(len(pad) // 2):
        axis, ends = len(x.shape) - 1 - turn, pad[2 * turn : 2 * turn + 2]
        if mode != "constant":
            x = _continued(b, x, axis, ends[0], ends[1], mode)
            continue
        cut = [-end if isinstance(end, int) and end < 0 else 0 for end in ends]
        if any(cut):
            x = _slice(b, x, axis, cut[0], x.shape[axis] - cut[1])
            ends = [0 if taken else end for end, taken in zip(ends, cut, strict=True)]
        x = OPERATIONS["pad"](b, types, x, [*[0] * (2 * turn), *ends], value)
    return x


def _continued(b: Builder, x: Value, axis: int, before: Any, after: Any, mode: str) -> Value:
    """Return a tensor that continues beyond its ends: by its last element, mirrored, or repeated."""
    size = x.shape[axis]
    if not isinstance(before, int) or not isinstance(after, int):
        raise Untranslatable("it pads by a number that depends on a dimension")
    ends: list[Value] = []
    for place in (*range(-before, 0), *range(after)):
        match mode:
            case "replicate":
                at = 0 if place < 0 else size - 1
            case "reflect":
                at = -place if place < 0 else size - 2 - place
            case _:
                at = size + place if place < 0 else place
        ends.append(_slice(b, x, axis, at, at + 1))
    return b.op("concat", *ends[:before], x, *ends[before:], axis=axis) if ends else x


def _padded_by(mode: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, pad: list[Any]) -> Value:
        return _pad(b, types, x, pad, mode)

    return call


def _slice_scatter(
    b: Builder, types: Types, x: Value, source: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    axis = dim % len(x.shape)
    size, count = x.shape[axis], source.shape[axis]
    first: Any = 0 if start is None else start
    first = first + size if isinstance(first, int) and first < 0 else first
    last = first + count
    if step != 1:
        return _replaced(b, x, converted(b, source, types[0].dtype), axis, first, step)
    before = [_slice(b, x, axis, 0, first)] if first != 0 else []
    after = [_slice(b, x, axis, last, size)] if last != size else []
    parts = [*before, converted(b, source, types[0].dtype), *after]
    return b.op("concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _replaced(b: Builder, x: Value, source: Value, axis: int, first: int, step: int) -> Value:
    """Return a tensor in which elements in steps along an axis are replaced."""
    size, count = _whole(x.shape[axis]), _whole(source.shape[axis])
    if b.op("slice", x, axis=axis, start=first, stop=min(first + count * step, size), step=step).array == source.array:
        return x
    places = {first + turn * step: turn for turn in range(count)}
    pieces = [(source, places[at]) if at in places else (x, at) for at in range(size)]
    return b.op("concat", *[_slice(b, part, axis, at, at + 1) for part, at in pieces], axis=axis)


def _select_scatter(b: Builder, types: Types, x: Value, source: Value, dim: int, index: int) -> Value:
    axis = dim % len(x.shape)
    return _slice_scatter(b, types, x, b.reshape(source, (*x.shape[:axis], 1, *x.shape[axis + 1 :])), axis, index)


def _scatter(b: Builder, types: Types, x: Value, dim: int, index: Value, source: Any = None, **rest: Any) -> Value:
    """Return a tensor with a number where an index along an axis points."""
    value = rest.pop("value", source)
    if isinstance(value, Value):
        value = value.args[0] if value.op == "real" else value
        value = value.settings["value"] if isinstance(value, Value) and value.op == "full" else None
    axis = dim % len(x.shape)
    if rest or value is None:
        raise Untranslatable("it scatters other than one number")
    last = [at for at in range(len(x.shape)) if at != axis]
    hits = b.op("sum", b.op("one_hot", b.permute(index, [*last, axis]), count=x.shape[axis]), axis=-2)
    order = [*range(axis), len(x.shape) - 1, *range(axis, len(x.shape) - 1)]
    test = b.op("ge", b.permute(hits, order), 1)
    kinds: dict[str, Any] = {"real": float, "int": int, "bool": bool}
    return b.op("where", test, kinds[types[0].dtype](value), x)


def _index_put(b: Builder, types: Types, x: Value, indices: list[Value | None], value: Value, *rest: Any) -> Value:
    (mask,) = indices
    if mask is None or mask.dtype != "bool" or any(rest) or value.op != "full":
        raise Untranslatable("it replaces elements at indices")
    shape = (*mask.shape, *[1] * (len(x.shape) - len(mask.shape)))
    return b.op("where", b.reshape(mask, shape), value.settings["value"], x)


def _places(b: Builder, rows: Any, columns: Any) -> Value:
    """Return by how much the column exceeds the row."""
    return b.op("sub", b.op("arange", stop=columns), b.reshape(b.op("arange", stop=rows), (rows, 1)))


def _triangle(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, diagonal: int = 0) -> Value:
        test = b.op(name, _places(b, *x.shape[-2:]), diagonal)
        if x.dtype == "bool":
            return b.op("and", x, test)
        return b.op("where", test, x, 0.0 if x.dtype == "real" else 0)

    return call


def _identity(b: Builder, types: Types, *rest: Any, **keywords: Any) -> Value:
    return converted(b, b.op("int", b.op("eq", _places(b, *types[0].shape), 0)), types[0].dtype)


def _one_hot(b: Builder, types: Types, ids: Value, count: int = -1) -> Value:
    return b.op("one_hot", ids, count=types[0].shape[-1])


def _spaced(b: Builder, types: Types, start: float, end: float, steps: int, **keywords: Any) -> Value:
    by = (end - start) / max(steps - 1, 1)
    return b.op("add", b.op("mul", b.op("real", b.op("arange", stop=steps)), by), float(start))


def _difference(
    b: Builder, types: Types, x: Value, times: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Value:
    if times != 1:
        raise Untranslatable("it takes differences more than once")
    parts = [part for part in (prepend, x, append) if part is not None]
    x = b.op("concat", *parts, axis=dim) if len(parts) > 1 else x
    size = x.shape[dim]
    return b.op("sub", _slice(b, x, dim, 1, size), _slice(b, x, dim, 0, size - 1))


def _weighted(b: Builder, x: Value, axis: int, matrix: list[list[float]]) -> Value:
    """Return sums along an axis with constant weights."""
    if all(value == float(i == j) for i, row in enumerate(matrix) for j, value in enumerate(row)) and len(
        matrix
    ) == len(matrix[0]):
        return x
    rank, table = len(x.shape), b.op("table", values=matrix)
    last = [*[at for at in range(rank) if at != axis], axis]
    found = b.op("linear", b.permute(x, last), table)
    return b.permute(found, [last.index(at) for at in range(rank)])


def _adaptive_mean(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: Any) -> Value:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            if new == 1:
                x = b.op("div", b.op("sum", x, axis=axis, keep=True), old)
            else:
                x = _weighted(b, x, axis, window_means(_whole(old), _whole(new)))
        return x

    return call


def _whole(size: Any) -> int:
    if not isinstance(size, int):
        raise Untranslatable("it resizes an axis whose size is a dimension")
    return size


def _resize(rank: int, degree: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: Any, aligned: bool = False, *scales: Any) -> Value:
        given = listed(scales[0]) if len(scales) == 1 and isinstance(scales[0], list) else [*scales]
        for turn, scale in enumerate([*given, *[None] * (rank - len(given))]):
            axis = len(x.shape) - rank + turn
            old, new = _whole(x.shape[axis]), _whole(types[0].shape[axis])
            x = _weighted(b, x, axis, resampled(old, new, aligned, scale, degree))
        return x

    return call


def _nearest(rank: int, shift: float = 0.0) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: Any, *scales: Any) -> Value:
        given = listed(scales[0]) if len(scales) == 1 and isinstance(scales[0], list) else [*scales]
        for turn, scale in enumerate([*given, *[None] * (rank - len(given))]):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if new == old:
                continue
            if scale is not None and float(scale).is_integer() and new == old * int(scale):
                wide = (*x.shape[: axis + 1], int(scale), *x.shape[axis + 1 :])
                spread = b.expand(b.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])), wide)
                x = b.reshape(spread, (*x.shape[:axis], new, *x.shape[axis + 1 :]))
                continue
            step = 1 / scale if scale else _whole(old) / _whole(new)
            places = [min(math.floor((i + shift) * step), _whole(old) - 1) for i in range(_whole(new))]
            x = b.op("concat", *[_slice(b, x, axis, place, place + 1) for place in places], axis=axis)
        return x

    return call


def _adaptive_max(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: Any) -> list[Value | None]:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            ends = [(0, old)] if new == 1 else windows(_whole(old), _whole(new))
            parts = [_slice(b, x, axis, first, last) if (first, last) != (0, old) else x for first, last in ends]
            parts = [b.op("amax", part, axis=axis, keep=True) for part in parts]
            x = b.op("concat", *parts, axis=axis) if len(parts) > 1 else parts[0]
        return [x, None]

    return call


def _convolution(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, weight: Value, bias: Value | None = None, stride: Any = 1,
             padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Value:  # fmt: skip
        if padding == "valid":
            padding = 0
        elif padding == "same":
            gaps = listed(dilation) * (rank // len(listed(dilation)))
            padding = [gap * (size - 1) // 2 for gap, size in zip(gaps, weight.shape[2:], strict=True)]
        batched = x if len(x.shape) == rank + 2 else b.reshape(x, (1, *x.shape))
        args = [batched, weight, bias, stride, padding, dilation, groups]
        return b.reshape(OPERATIONS[f"conv{rank}d"](b, types, *args), types[0].shape)

    return call


def _max_pool(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Value:  # fmt: skip
        if any(gap != 1 for gap in listed(dilation)):
            raise Untranslatable("it pools with gaps")
        windows = _spread(rank, kernel, stride, padding)
        x = _lengthened(b, x, types[0].shape, windows, -math.inf)
        return b.op("max_pool", x, **_window(*windows))

    return call


def _mean_pool(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, kernel: Any, stride: Any = None, padding: Any = 0,
             ceil_mode: bool = False, count_include_pad: bool = True, divisor: Any = None) -> Value:  # fmt: skip
        windows = sizes, steps, ends = _spread(rank, kernel, stride, padding)
        whole = _lengthened(b, x, types[0].shape, windows, 0)
        if divisor is not None:
            raise Untranslatable("it divides the sum of windows by another number")
        found = b.op("mean_pool", whole, **_window(*windows))
        if whole.shape == x.shape and (count_include_pad or not any(ends)):
            return found
        places, counted = x.shape[-rank:], ends
        if count_include_pad:
            places, counted = tuple([size + 2 * end for size, end in zip(places, ends, strict=True)]), [0] * rank
        ones = b.op("full", shape=(1, 1, *places), value=1.0)
        ones = _lengthened(b, ones, types[0].shape, [sizes, steps, counted], 0)
        return b.op("div", found, b.op("mean_pool", ones, **_window(sizes, steps, counted)))

    return call


def _spread(rank: int, kernel: Any, stride: Any, padding: Any) -> list[list[Any]]:
    steps = kernel if stride is None or stride == [] else stride
    return [listed(value) * (rank // len(listed(value))) for value in (kernel, steps, padding)]


def _window(kernel: list[Any], stride: list[Any], padding: list[Any]) -> dict[str, Any]:
    given = {"kernel": kernel, "stride": stride, "padding": padding}
    settings = {name: value[0] if len(set(value)) == 1 else value for name, value in given.items()}
    return {name: value for name, value in settings.items()
            if name == "kernel" or value != {"stride": settings["kernel"], "padding": 0}[name]}  # fmt: skip


def _lengthened(b: Builder, x: Value, shape: Sequence[Any], windows: list[list[Any]], value: float) -> Value:
    """Return a tensor that is long enough for as many windows as the result has, if its size is rounded up."""
    rank = len(windows[0])
    for axis, (size, step, end) in enumerate(zip(*windows, strict=True), len(x.shape) - rank):
        missing = (shape[axis] - 1) * step + size - (x.shape[axis] + 2 * end)
        if isinstance(missing, int) and missing > 0:
            x = b.op("pad", x, axis=axis, after=missing, **({"value": value} if value else {}))
    return x


def _transposed_convolution(
    b: Builder,
    types: Types,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    if any(listed(output_padding)):
        raise Untranslatable("it pads the result of a transposed convolution")
    given = {"stride": stride, "padding": padding, "dilation": dilation}
    settings = {name: value if len({*listed(value)}) > 1 else listed(value)[0] for name, value in given.items()}
    usual = {"stride": 1, "padding": 0, "dilation": 1}
    settings = {name: value for name, value in settings.items() if value != usual[name]}
    settings |= {"groups": groups} if groups != 1 else {}
    return b.op("conv", x, weight, *([bias] if bias is not None else []), **settings, transposed=True)


NAMES: dict[Handler, str] = {
    _alias("view"): "view_as reshape_as ravel",
    _alias("expand"): "expand_as",
    _alias("split"): "tensor_split unsafe_split unsafe_chunk",
    _tile: "tile",
    _alias("mT"): "adjoint",
    _alias("matmul"): "mv",
    _alias("clone"): "positive alias_copy",
    _alias("zeros"): "empty empty_like new_empty",
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
    _triangle("ge"): "triu",
    _triangle("le"): "tril",
    _identity: "eye",
    _one_hot: "one_hot",
    _spaced: "linspace",
    _difference: "diff",
    **{_adaptive_mean(rank): f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)},
    _resize(1, 1): "upsample_linear1d",
    _resize(2, 1): "upsample_bilinear2d",
    _resize(3, 1): "upsample_trilinear3d",
    _resize(2, 3): "upsample_bicubic2d",
    **{_nearest(rank): f"upsample_nearest{rank}d" for rank in (1, 2, 3)},
    **{_nearest(rank, 0.5): f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)},
    **{_adaptive_max(rank): f"adaptive_max_pool{rank}d" for rank in (1, 2, 3)},
    **{_convolution(rank): f"conv{rank}d" for rank in (1, 2, 3)},
    **{_max_pool(rank): f"max_pool{rank}d" for rank in (1, 2, 3)},
    **{_mean_pool(rank): f"avg_pool{rank}d" for rank in (1, 2, 3)},
    _pad: "pad constant_pad_nd",
    _transposed_convolution: "conv_transpose1d conv_transpose2d conv_transpose3d",
}
"""The names of the operations that each function is for."""
