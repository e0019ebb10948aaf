"""Operations along an axis, and pooling over spatial axes. Axes count from 0, or from the end: -1 is the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.ops.check import (
    OpError,
    Shape,
    check_axes,
    check_axis,
    check_boolean,
    check_integer,
    check_rank,
    check_size,
    is_certainly_below,
    per_axis_values,
    replace_axis_size,
)
from archspec.ir.ops.record import Attribute, Input, Interval, Op, Operands, Settings, TorchForm


def _reduced_shape(x: Type, axis: object, keep: object) -> Shape:
    axes, keeps_axes = check_axes(axis, x), check_boolean(keep, "keep")
    return tuple([1 if i in axes else size for i, size in enumerate(x.shape) if keeps_axes or i not in axes])


def _argmax_shape(x: Type, axis: object, keep: object) -> Shape:
    return _reduced_shape(x, check_axis(axis, x), keep)


def _fft_shape(x: Type, axis: object) -> Shape:
    check_axes(axis, x)
    return x.shape


def _axis_shape(x: Type, axis: object) -> Shape:
    check_axis(axis, x)
    return x.shape


def _topk_shape(x: Type, k: object, axis: object) -> tuple[Shape, Shape]:
    position, count = check_axis(axis, x), check_size(k, "k")
    size = x.shape[position]
    if is_certainly_below(size - count, 0):
        raise OpError(f"cannot take {count} elements from {size}", "k")
    shape = replace_axis_size(x.shape, position, count)
    return shape, shape


def _sum_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    """Return the interval of the sums of 1 to all elements along the axis."""
    (low, high), steps = inputs[0], result.shape[check_integer(attributes["axis"], "axis")]
    return (min(low, low * steps), max(high, high * steps)) if isinstance(steps, int) else None


def _reduction_code(method: str) -> Callable[[Operands], str]:
    def code(o: Operands) -> str:
        return f"x.{method}(axis)" if o.literal("keep") is False else f"x.{method}(axis, keepdim=keep)"

    return code


_TOPK_CODE = '''def topk(x: Tensor, k: int, dim: int) -> tuple[Tensor, Tensor]:
    """The k largest elements and their indices; of equal ones the first is first."""
    values, indices = torch.sort(x, dim=dim, descending=True, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)'''

_FFT_CODE = '''def fft(x: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """The real part of the discrete Fourier transform, computed in float32 or wider."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.fft.fftn(wide, dim=dim).real.to(x.dtype)'''

_X = (Input("x", "number"),)
_LAST_AXIS = Attribute("axis", -1)

OPS = (
    *[
        Op(
            name,
            "Along an axis",
            f"The {value} along axis, an integer or a list of them.",
            _X,
            (Attribute("axis"), Attribute("keep", False)),
            "type of x; shape of x without the axis, or with size 1 there if keep",
            _reduced_shape,
            ("x",),
            work=1,
            over="input",
            torch=TorchForm(_reduction_code(name)),
            normal=normal,
        )
        for name, value, normal in (("sum", "sum", "along.total"), ("amax", "largest element", "along.largest"))
    ],
    Op(
        "softmax",
        "Along an axis",
        "exp(x) / sum(exp(x)) along axis, computed without overflow (by subtracting the largest element there); "
        "NaN where all of x is -inf there.",
        _X,
        (_LAST_AXIS,),
        "real, shape of x",
        _axis_shape,
        ("real",),
        attention="weights",
        work=5,  # the maximum, its subtraction, exp, the sum, the division
        torch=TorchForm("F.softmax(x, dim=axis)"),
        normal="along.normalized",
    ),
    Op(
        "cumsum",
        "Along an axis",
        "The sum of each element and all preceding ones along axis.",
        _X,
        (_LAST_AXIS,),
        "shape and type of x",
        _axis_shape,
        ("x",),
        interval=_sum_interval,
        work=1,
        torch=TorchForm("torch.cumsum(x, dim=axis)"),
        normal="along.running_total",
    ),
    Op(
        "topk",
        "Along an axis",
        "The k largest elements along axis, in descending order, and their indices; of equal ones the first is first.",
        _X,
        (Attribute("k"), _LAST_AXIS),
        "values: type of x; indices: int; each the shape of x with size k at axis",
        _topk_shape,
        ("x", "int"),
        chooses=1,
        work=1,
        over="input",
        torch=TorchForm("topk(x, k, axis)", helper=_TOPK_CODE),
        normal="along.first_in_order",
    ),
    Op(
        "argmax",
        "Along an axis",
        "The index of the largest element along axis; of equal ones the first.",
        _X,
        (_LAST_AXIS, Attribute("keep", False)),
        "int; shape of x without the axis, or with size 1 there if keep",
        _argmax_shape,
        ("int",),
        chooses=0,
        work=1,
        over="input",
        torch=TorchForm(_reduction_code("argmax")),
        normal="along.place_of_largest",
    ),
    Op(
        "fft",
        "Along an axis",
        "The real part of the discrete Fourier transform along axis, an integer or a list of them: for one axis, "
        "out[k] is the sum over j of x[j] * cos(2 * pi * j * k / n), n its size; for several, the cosine is of the sum "
        "of their angles. In half precision it is computed in float32.",
        _X,
        (_LAST_AXIS,),
        "real, shape of x",
        _fft_shape,
        ("real",),
        mixes=True,
        torch=TorchForm("fft(x, axis)", helper=_FFT_CODE, memory="view"),  # of a complex tensor
        normal="along.fourier",
    ),
)


# Pooling: windows that slide over the spatial axes of an image or a sequence ------------------------------------------


def _pool_shape(x: Type, kernel: object, stride: object, padding: object) -> Shape:
    batch, channels, *spatial = check_rank(x, 3, "x")
    count = len(spatial)
    reaches = per_axis_values(kernel, count, "kernel", 1)
    steps = reaches if stride is None else per_axis_values(stride, count, "stride", 1)
    sizes: list[Dim] = []
    paddings = per_axis_values(padding, count, "padding", 0)
    for size, reach, step, pad in zip(spatial, reaches, steps, paddings, strict=True):
        if is_certainly_below(reach - 2 * pad, 0):
            raise OpError(f"expects a padding of at most half of the kernel, found {pad} for {reach}", "padding")
        room = size + 2 * pad - reach
        if is_certainly_below(room, 0):
            raise OpError(f"cannot fit a window of {reach} on an axis of size {size} with padding {pad}", "x")
        sizes.append(room // step + 1)
    return (batch, channels, *sizes)


def _pooling_op(name: str, function: str, normal: str, doc: str) -> Op:
    """Return the record of a pooling operation; `function` is the prefix of its name in PyTorch."""

    def code(o: Operands) -> str:
        rank = o.rank("x")
        if rank not in (3, 4, 5):
            raise OpError("PyTorch supports pooling over one, two or three axes", "x")
        defaults = {"stride": None, "padding": 0}
        keywords = "".join(f", {word}={word}" for word, value in defaults.items() if o.literal(word) != value)
        return f"F.{function}_pool{rank - 2}d(x, kernel{keywords})"

    return Op(
        name,
        "Weights and positions",
        f"{doc} Windows of the size kernel begin stride positions apart (none: kernel); the padding at both ends is at "
        "most half of the kernel. All three are an integer, or a list with one per spatial axis.",
        (Input("x", "number", "[batch, channels, ...n]"),),
        (Attribute("kernel"), Attribute("stride", None), Attribute("padding", 0)),
        "real; [batch, channels, ...m], where m = (n + 2 * padding - kernel) // stride + 1",
        _pool_shape,
        ("real",),
        mixes=True,
        work=1,
        over="window",
        torch=TorchForm(code),
        normal=normal,
    )


POOL_OPS = (
    _pooling_op("max_pool", "max", "weights.max_pool", "The largest element of each window of x."),
    _pooling_op("mean_pool", "avg", "weights.mean_pool", "The mean of each window of x, in which padding counts as 0."),
)
