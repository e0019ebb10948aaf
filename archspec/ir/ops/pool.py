"""Operations on windows that slide over the spatial axes of an image or a sequence."""

from __future__ import annotations

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.ops.check import OpError, Shape, check_rank, is_certainly_below, per_axis_values
from archspec.ir.ops.record import Attribute, Input, Op, Operands, TorchForm


def _pool(x: Type, kernel: object, stride: object, padding: object) -> Shape:
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


def _pooling(name: str, function: str, normal: str, doc: str) -> Op:
    """Return the record of a pool; `function` is the beginning of its name in PyTorch."""

    def form(o: Operands) -> str:
        rank = o.rank("x")
        if rank not in (3, 4, 5):
            raise OpError("PyTorch supports pooling over one, two or three axes", "x")
        usual = {"stride": None, "padding": 0}
        keywords = "".join(f", {word}={word}" for word, value in usual.items() if o.literal(word) != value)
        return f"F.{function}_pool{rank - 2}d(x, kernel{keywords})"

    return Op(
        name,
        "Weights and positions",
        f"{doc} Windows of the size kernel begin stride positions apart (none: kernel); the padding at both ends is at "
        "most half of the kernel. All three are an integer, or a list with one per spatial axis.",
        (Input("x", "number", "[batch, channels, ...n]"),),
        (Attribute("kernel"), Attribute("stride", None), Attribute("padding", 0)),
        "real; [batch, channels, ...m], where m = (n + 2 * padding - kernel) // stride + 1",
        _pool,
        ("real",),
        mixes=True,
        work=1,
        over="window",
        torch=TorchForm(form),
        normal=normal,
    )


OPS = (
    _pooling("max_pool", "max", "weights.max_pool", "The largest element of each window of x."),
    _pooling("mean_pool", "avg", "weights.mean_pool", "The mean of each window of x, in which padding counts as 0."),
)
