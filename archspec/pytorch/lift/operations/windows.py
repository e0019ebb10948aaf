"""Windows and images of PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archspec.core.algebra import Dim
from archspec.pytorch.calls.images import Scales, is_identity, resampled, scales_of, window_means, windows
from archspec.pytorch.calls.layers import missing_ends, per_axis, windows_of
from archspec.pytorch.calls.values import Sizes, UntranslatableError, as_list
from archspec.pytorch.lift.operations.handlers import Handler, Types, fixed_size, slice_axis
from archspec.pytorch.lift.operations.layers import conv_settings, convolution
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Setting, Value


def _weighted(b: Builder, x: Value, axis: int, matrix: list[list[float]]) -> Value:
    """Return sums along an axis with constant weights."""
    if is_identity(matrix):
        return x
    rank, table = len(x.shape), b.op("table", values=matrix)
    last = [*[at for at in range(rank) if at != axis], axis]
    found = b.op("linear", b.permute(x, last), table)
    return b.permute(found, [last.index(at) for at in range(rank)])


def _adaptive_mean(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: object) -> Value:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            if new == 1:
                x = b.op("div", b.op("sum", x, axis=axis, keep=True), old)
            else:
                x = _weighted(b, x, axis, window_means(fixed_size(old), fixed_size(new)))
        return x

    return call


def _resize(rank: int, degree: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: object, aligned: bool = False, *scales: Scales) -> Value:
        for turn, scale in enumerate(scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if isinstance(old, int) and isinstance(new, int):
                x = _weighted(b, x, axis, resampled(old, new, aligned, scale, degree))
            else:
                x = _stretched(b, x, axis, new)
        return x

    return call


def _stretched(b: Builder, x: Value, axis: int, new: Dim) -> Value:
    """Return a linear resizing of an axis to a size that depends on a dimension."""
    old, rank = x.shape[axis], len(x.shape)
    middles = b.op("add", b.op("real", b.op("arange", stop=new)), 0.5)
    places = b.op("sub", b.op("div", b.op("mul", middles, old), new), 0.5)
    places = b.reshape(b.op("min", b.op("max", places, 0.0), old - 1), (new, 1))
    distances = b.op("abs", b.op("sub", places, b.op("real", b.op("arange", stop=old))))
    weights = b.op("max", b.op("sub", 1.0, distances), 0.0)
    last = [*[at for at in range(rank) if at != axis], axis]
    return b.permute(b.op("linear", b.permute(x, last), weights), [last.index(at) for at in range(rank)])


def _nearest(rank: int, shift: float = 0.0) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: object, *scales: Scales) -> Value:
        for turn, scale in enumerate(scales_of(rank, scales)):
            axis = len(x.shape) - rank + turn
            old, new = x.shape[axis], types[0].shape[axis]
            if new == old:
                continue
            if scale is not None and float(scale).is_integer() and new == old * int(scale):
                wide = (*x.shape[: axis + 1], int(scale), *x.shape[axis + 1 :])
                spread = b.expand(b.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])), wide)
                x = b.reshape(spread, (*x.shape[:axis], new, *x.shape[axis + 1 :]))
                continue
            step = 1 / scale if scale else fixed_size(old) / fixed_size(new)
            places = [math.floor((i + shift) * step) for i in range(fixed_size(new))]
            x = b.op("concat", *[slice_axis(b, x, axis, place, place + 1) for place in places], axis=axis)
        return x

    return call


def _adaptive_max(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, sizes: object) -> list[Value | None]:
        for axis in range(len(x.shape) - rank, len(x.shape)):
            old, new = x.shape[axis], types[0].shape[axis]
            ends = [(0, old)] if new == 1 else windows(fixed_size(old), fixed_size(new))
            parts = [b.op("amax", slice_axis(b, x, axis, *end), axis=axis, keep=True) for end in ends]
            x = b.op("concat", *parts, axis=axis)
        return [x, None]

    return call


def _convolution(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, weight: Value, bias: Value | None = None, stride: Sizes = 1,
             padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1) -> Value:  # fmt: skip
        if isinstance(padding, str):
            gaps = [0] * rank if padding == "valid" else per_axis(dilation, rank)
            padding = [gap * (fixed_size(size) - 1) // 2 for gap, size in zip(gaps, weight.shape[2:], strict=True)]
        batched = x if len(x.shape) == rank + 2 else b.reshape(x, (1, *x.shape))
        found = convolution(b, batched, weight, bias, stride, padding, dilation, groups)
        return b.reshape(found, types[0].shape)

    return call


def _max_pool(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, kernel: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
             *rest: object) -> Value:  # fmt: skip
        windows = windows_of(rank, kernel, stride, padding)
        x = _lengthened(b, x, types[0].shape, windows, -math.inf)
        return b.op("max_pool", x, **_window(*windows))

    return call


def _mean_pool(rank: int) -> Handler:
    def call(b: Builder, types: Types, x: Value, kernel: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
             ceil_mode: bool = False, count_include_pad: bool = True, *rest: object) -> Value:  # fmt: skip
        windows = sizes, steps, ends = windows_of(rank, kernel, stride, padding)
        whole = _lengthened(b, x, types[0].shape, windows, 0)
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


def _window(kernel: Sequence[Dim], stride: Sequence[Dim], padding: Sequence[Dim]) -> dict[str, Setting]:
    given = {"kernel": kernel, "stride": stride, "padding": padding}
    settings = {name: value[0] if len(set(value)) == 1 else value for name, value in given.items()}
    return {name: value for name, value in settings.items()
            if name == "kernel" or value != {"stride": settings["kernel"], "padding": 0}[name]}  # fmt: skip


def _lengthened(b: Builder, x: Value, shape: Sequence[Dim], windows: Sequence[Sequence[Dim]], value: float) -> Value:
    """Return a tensor that is long enough for as many windows as the result has, if its size is rounded up."""
    for axis, missing in missing_ends(x.shape, shape, windows):
        x = b.op("pad", x, axis=axis, after=missing, **({"value": value} if value else {}))
    return x


def _transposed_convolution(
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
    if any(as_list(output_padding)):
        raise UntranslatableError("it pads the result of a transposed convolution")
    settings = conv_settings(stride, padding, dilation, groups)
    return b.op("conv", x, weight, *([bias] if bias is not None else []), **settings, transposed=True)


def _grid_sample(
    b: Builder, types: Types, x: Value, grid: Value, interpolation: int, padding: int, aligned: bool
) -> Value | None:
    settings = {"aligned": True} if aligned else {}
    return b.function("grid_sample", [b.written(x), b.written(grid)], types[0].shape, "real", **settings)


NAMES: dict[Handler, str] = {
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
    _grid_sample: "grid_sampler grid_sampler_2d",
    _transposed_convolution: "conv_transpose1d conv_transpose2d conv_transpose3d",
}
"""The names of the operations that each function is for."""
