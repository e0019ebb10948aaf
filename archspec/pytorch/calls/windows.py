"""Convolutions, pools and windows of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from archspec.core.algebra import Dim
from archspec.pytorch.calls.layers import mean
from archspec.pytorch.calls.placement import pad
from archspec.pytorch.calls.rows import Row, Types, fixed_size, slice_axis
from archspec.pytorch.calls.shape import windows_along
from archspec.pytorch.values.arguments import Sizes, as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Setting, Value


def _convolution(rank: int) -> Row:
    def call(
        b: Builder,
        types: Types,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Value:
        if isinstance(padding, str):
            gaps = [0] * rank if padding == "valid" else _per_axis(dilation, rank)
            ends = [gap * (size - 1) for gap, size in zip(gaps, weight.shape[2:], strict=True)]
            padding = [end // 2 if end % 2 == 0 else refuse("conv") for end in ends]
        settings = _unusual({"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1)}, groups)
        batched = _with_batch(b, x, rank)
        return _reshaped(b, b.op("conv", batched, weight, *([bias] if bias is not None else []), **settings), types)

    return call


def _transposed_convolution(rank: int) -> Row:
    def call(
        b: Builder,
        types: Types,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Value:
        spaces = {"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1)}
        batched = _with_batch(b, x, rank)
        ends = [fixed_size("conv_transpose", size) for size in _per_axis(output_padding, rank)]
        cuts = [fixed_size("conv_transpose", size) for size in _per_axis(padding, rank)]
        is_within = all(end <= cut for end, cut in zip(ends, cuts, strict=True))
        less = [cut - end for end, cut in zip(ends, cuts, strict=True)] if is_within else 0
        tensors = [weight, *([bias] if bias is not None and is_within else [])]
        spaces["padding"] = less, 0
        result = b.op("conv", batched, *tensors, **_unusual(spaces, groups), transposed=True)
        if is_within:  # fewer elements are cut at both ends, and then as many more at the first one
            for axis, end in enumerate(ends, 2):
                result = slice_axis(b, result, axis, end, result.shape[axis]) if end else result
            return _reshaped(b, result, types)
        by = [size for end, cut in zip(ends[::-1], cuts[::-1], strict=True) for size in (-cut, end - cut)]
        result = pad(b, types, result, by)
        of_bias = None if bias is None else b.reshape(bias, (*bias.shape, *[1] * rank))
        return _reshaped(b, result if of_bias is None else b.op("add", result, of_bias), types)

    return call


def _with_batch(b: Builder, x: Value, rank: int) -> Value:
    """Return a tensor with an axis for a batch before its channels."""
    return x if len(x.shape) == rank + 2 else b.reshape(x, (1, *x.shape))


def _reshaped(b: Builder, x: Value, types: Types) -> Value:
    return x if x.shape == types[0].shape else b.reshape(x, types[0].shape)


def _unusual(spaces: dict[str, tuple[Sizes, int]], groups: int) -> dict[str, Setting]:
    """Return the settings of a convolution that are not the usual ones."""
    named = {**spaces, "groups": (groups, 1)}
    return {name: _alike(value) for name, (value, usual) in named.items() if _alike(value) != usual}


def _alike(value: Sizes) -> Sizes:
    """Return one number for a list of equal ones."""
    values = as_list(value)
    return values[0] if len(set(values)) == 1 else values


def _per_axis(value: Sizes, rank: int) -> list[Dim]:
    """Return a value for each axis."""
    values = as_list(value)
    return values * rank if len(values) == 1 else values


# Pools. ---------------------------------------------------------------------------------------------------------------


def _max_pool(rank: int) -> Row:
    def call(
        b: Builder,
        types: Types,
        x: Value,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Value:
        if any(gap != 1 for gap in _per_axis(dilation, rank)):
            refuse("max_pool")
        windows = _windows_of(rank, kernel, stride, padding)
        whole = _lengthened(b, _with_batch(b, x, rank), types[0].shape, windows, -math.inf)
        return _reshaped(b, b.op("max_pool", whole, **_settings(*windows)), types)

    return call


def _mean_pool(rank: int) -> Row:
    def call(
        b: Builder,
        types: Types,
        x: Value,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        if divisor_override is not None:
            refuse("avg_pool")
        windows = sizes, steps, ends = _windows_of(rank, kernel, stride, padding)
        batched = _with_batch(b, x, rank)
        whole = _lengthened(b, batched, types[0].shape, windows, 0)
        made = b.op("mean_pool", whole, **_settings(*windows))
        if whole.shape == batched.shape and (count_include_pad or not any(ends)):
            return _reshaped(b, made, types)
        places, counted = x.shape[-rank:], ends
        if count_include_pad:
            places, counted = tuple([size + 2 * end for size, end in zip(places, ends, strict=True)]), [0] * rank
        ones = b.op("full", shape=(1, 1, *places), value=1.0)
        ones = _lengthened(b, ones, types[0].shape, [sizes, steps, counted], 0)
        return _reshaped(b, b.op("div", made, b.op("mean_pool", ones, **_settings(sizes, steps, counted))), types)

    return call


def _windows_of(rank: int, kernel: Sizes, stride: Sizes | None, padding: Sizes) -> list[list[Dim]]:
    """Return the sizes, steps and padding of windows along each axis."""
    steps = kernel if stride is None or stride == [] else stride
    return [_per_axis(value, rank) for value in (kernel, steps, padding)]


def _settings(kernel: Sequence[Dim], stride: Sequence[Dim], padding: Sequence[Dim]) -> dict[str, Setting]:
    given = {"kernel": kernel, "stride": stride, "padding": padding}
    settings = {name: value[0] if len(set(value)) == 1 else value for name, value in given.items()}
    return {name: value for name, value in settings.items()
            if name == "kernel" or value != {"stride": settings["kernel"], "padding": 0}[name]}  # fmt: skip


def _lengthened(b: Builder, x: Value, result: Sequence[Dim], windows: Sequence[Sequence[Dim]], value: float) -> Value:
    """Return a tensor that is long enough for as many windows as the result has, if its size is rounded up."""
    for axis, missing in _missing_ends(x.shape, result[-len(windows[0]) :], windows):
        x = b.op("pad", x, axis=axis, after=missing, **({"value": value} if value else {}))
    return x


def _missing_ends(
    shape: Sequence[Dim], counts: Sequence[Dim], windows: Sequence[Sequence[Dim]]
) -> Iterator[tuple[int, int]]:
    """Yield the axes of a shape that are too short for as many windows as a result has, and how much they lack."""
    start = len(shape) - len(counts)
    for axis, (count, size, step, end) in enumerate(zip(counts, *windows, strict=True), start):
        missing = (count - 1) * step + size - (shape[axis] + 2 * end)
        if isinstance(missing, int) and missing > 0:
            yield axis, missing


# Pools to sizes. ------------------------------------------------------------------------------------------------------


def _adaptive_mean(rank: int) -> Row:
    def call(b: Builder, types: Types, x: Value, sizes: object) -> Value:
        axes = range(len(x.shape) - rank, len(x.shape))
        single = [axis for axis in axes if types[0].shape[axis] == 1]
        if single:
            x = mean(b, types, x, single, True)
        for axis in [axis for axis in axes if axis not in single]:
            old, new = [fixed_size("adaptive_pool", each.shape[axis]) for each in (x, types[0])]
            means = [
                [1 / (last - first) if first <= at < last else 0.0 for at in range(old)]
                for first, last in _parts(old, new)
            ]
            x = weighted(b, x, axis, means)
        return x

    return call


def _adaptive_max(rank: int) -> Row:
    def call(b: Builder, types: Types, x: Value, sizes: object) -> list[Value | None]:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            ends = [(0, old)] if new == 1 else _parts(*[fixed_size("adaptive_pool", size) for size in (old, new)])
            parts = [b.op("amax", slice_axis(b, x, axis, *end), axis=axis, keep=True) for end in ends]
            x = b.op("concat", *parts, axis=axis)
        return [x, None]  # the places of the largest elements are not computed

    return call


def _parts(old: int, new: int) -> list[tuple[int, int]]:
    """Return where the windows of a pool to a size begin and end."""
    return [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]


def weighted(b: Builder, x: Value, axis: int, matrix: list[list[float]]) -> Value:
    """Return sums along an axis with constant weights."""
    if matrix == [[float(i == j) for j in range(len(matrix))] for i in range(len(matrix))]:
        return x
    rank, table = len(x.shape), b.op("table", values=matrix)
    last = [*[at for at in range(rank) if at != axis], axis]
    made = b.op("linear", b.permute(x, last), table)
    return b.permute(made, [last.index(at) for at in range(rank)])


def _columns(
    b: Builder, types: Types, x: Value, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Value:
    """Return the windows of an image as columns."""
    for turn, (size, gap, end, step) in enumerate(zip(kernel, dilation, padding, stride, strict=True)):
        axis = 2 + 2 * turn
        x = pad(b, types, x, [*[0, 0] * (len(x.shape) - 1 - axis), end, end]) if end else x
        count = (x.shape[axis] - gap * (size - 1) - 1) // step + 1
        x = windows_along(b, x, axis, count, step, size, gap)
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


NAMES: dict[Row, str] = {
    **{_convolution(rank): f"conv{rank}d" for rank in (1, 2, 3)},
    **{_transposed_convolution(rank): f"conv_transpose{rank}d" for rank in (1, 2, 3)},
    **{_max_pool(rank): f"max_pool{rank}d" for rank in (1, 2, 3)},
    **{_mean_pool(rank): f"avg_pool{rank}d" for rank in (1, 2, 3)},
    **{_adaptive_mean(rank): f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)},
    **{_adaptive_max(rank): f"adaptive_max_pool{rank}d" for rank in (1, 2, 3)},
    _columns: "im2col",
    _pixel_shuffle: "pixel_shuffle",
    _pixel_unshuffle: "pixel_unshuffle",
}
"""The names of the operations that each row is for."""
