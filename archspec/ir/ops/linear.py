"""Products with weights, table lookups, and normalization with weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.ops.check import (
    OpError,
    Shape,
    broadcast_shapes,
    check_amount,
    check_axis,
    check_boolean,
    check_exact_shape,
    check_non_negative,
    check_rank,
    check_same_size,
    check_size,
    format_shape,
    format_type,
    is_certainly_below,
    per_axis_values,
    replace_axis_size,
)
from archspec.ir.ops.record import Attribute, Input, Op, Operands, Settings, TorchForm

# PyTorch code of `expert_linear`, which generated files contain.

EXPERT_LINEAR = '''def expert_linear(
    x: Tensor, experts: Tensor | int, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Each vector of x through the matrix that its expert index names."""
    by_expert = ByExpert(experts, x)
    return by_expert.restored(by_expert.linear(by_expert.sorted(x), weight, bias))


class ByExpert:
    """Sorts vectors by expert, for one matrix product an expert. Compiled graphs sort
    nothing, but gather matrices: how many vectors an expert is given is data.
    """

    def __init__(self, experts: Tensor | int, x: Tensor) -> None:
        self.experts = experts
        self.order = None
        if isinstance(experts, int) or x.is_meta or torch.compiler.is_compiling():
            return
        self.shape = torch.broadcast_shapes(x.shape[:-1], experts.shape)
        self.experts, self.order = experts.expand(self.shape).flatten().sort()
        rows = torch.arange(x.shape[:-1].numel(), device=x.device)
        rows = rows.reshape(x.shape[:-1]).expand(self.shape).flatten()
        self.rows = rows[self.order]

    def sorted(self, x: Tensor) -> Tensor:
        if self.order is None:
            return x
        return x.reshape(-1, x.shape[-1]).index_select(0, self.rows)

    def restored(self, x: Tensor) -> Tensor:
        if self.order is None:
            return x
        return x.index_select(0, self.order.argsort()).reshape(*self.shape, x.shape[-1])

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if self.order is None:
            y = (weight[self.experts] @ x[..., None])[..., 0]
            return y if bias is None else y + bias[self.experts]
        sizes = group_sizes(self.experts, len(weight))
        biases = [None] * len(weight) if bias is None else bias
        if torch.is_grad_enabled() or x.dtype != weight.dtype:
            return torch.cat([*map(F.linear, x.split(sizes), weight, biases)])
        y = x.new_empty(len(x), weight.shape[1])
        for part, taken, matrix, offset in zip(
            y.split(sizes), x.split(sizes), weight.mT, biases, strict=True
        ):
            torch.mm(taken, matrix, out=part)
            if offset is not None:
                part += offset
        return y


def group_sizes(experts: Tensor, count: int) -> list[int]:
    """How many vectors each of `count` experts is given."""
    return torch.bincount(experts, minlength=count).tolist()'''


def _matmul_shape(a: Type, b: Type) -> Shape:
    (*left, rows, width), (*right, height, columns) = check_rank(a, 2, "a"), check_rank(b, 2, "b")
    check_same_size(
        height, width, "b", f"the rows of {format_shape(b.shape)} to match the columns of {format_shape(a.shape)}"
    )
    return (*broadcast_shapes(tuple(left), tuple(right), "b"), rows, columns)


def _forward_substitution_shape(a: Type, b: Type) -> Shape:
    (*left, rows, columns), (*right, height, width) = check_rank(a, 2, "a"), check_rank(b, 2, "b")
    check_same_size(rows, columns, "a", f"the columns of {format_shape(a.shape)} to match its rows")
    check_same_size(
        height, rows, "b", f"the rows of {format_shape(b.shape)} to match the rows of {format_shape(a.shape)}"
    )
    return (*broadcast_shapes(tuple(left), tuple(right), "b"), rows, width)


def _check_weight(x: Type, weight: Type, bias: Type | None, layout: str) -> None:
    """Check a matrix with a layout that is applied to the last axis of x, and its bias."""
    width = check_rank(x, 1, "x")[-1]
    if len(weight.shape) != layout.count(",") + 1:
        raise OpError(f"expects a `weight` {layout}, found {format_type(weight)}", "weight")
    *bias_shape, size = weight.shape
    check_same_size(
        width,
        size,
        "x",
        f"the last size of {format_shape(x.shape)} to match `in` of the weight {format_shape(weight.shape)}",
    )
    if bias is not None:
        check_exact_shape(tuple(bias_shape), bias, "bias")


def _linear_shape(x: Type, weight: Type, bias: Type | None) -> Shape:
    _check_weight(x, weight, bias, "[out, in]")
    return (*x.shape[:-1], weight.shape[0])


def _expert_linear_shape(x: Type, experts: Type, weight: Type, bias: Type | None) -> Shape:
    _check_weight(x, weight, bias, "[n, out, in]")
    return (*broadcast_shapes(x.shape[:-1], experts.shape, "experts"), weight.shape[1])


def _conv_shape(
    x: Type,
    weight: Type,
    bias: Type | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    transposed: object,
) -> Shape:
    batch, channels, *spatial = check_rank(x, 3, "x")
    if len(weight.shape) != len(x.shape):
        raise OpError(
            f"expects a `weight` with {len(x.shape)} axes for {format_type(x)}, found {format_type(weight)}", "weight"
        )
    first, second, *kernel = weight.shape
    count, parts = len(spatial), check_amount(groups, "groups", 1)
    is_transposed = check_boolean(transposed, "transposed")
    strides, paddings = per_axis_values(stride, count, "stride", 1), per_axis_values(padding, count, "padding", 0)
    dilations = per_axis_values(dilation, count, "dilation", 1)
    expected = first if is_transposed else second * parts
    check_same_size(
        channels,
        expected,
        "x",
        f"the channels of {format_shape(x.shape)} to match the weight {format_shape(weight.shape)}",
    )
    if first % parts != 0:
        raise OpError(f"cannot divide {first} channels into {parts} groups", "groups")
    out = second * parts if is_transposed else first
    if bias is not None:
        check_exact_shape((out,), bias, "bias")
    sizes: list[Dim] = []
    for size, reach, step, pad, gap in zip(spatial, kernel, strides, paddings, dilations, strict=True):
        span = (reach - 1) * gap + 1
        room = size + 2 * pad - span
        if not is_transposed and is_certainly_below(room, 0):
            message = f"cannot fit a kernel that spans {span} on an axis of size {size} with padding {pad} at both ends"
            raise OpError(message, "x")
        sizes.append((size - 1) * step - 2 * pad + span if is_transposed else room // step + 1)
    return (batch, out, *sizes)


def _layer_norm_shape(x: Type, weight: Type | None, bias: Type | None, eps: object) -> Shape:
    check_non_negative(eps, "eps")
    scale = weight if weight is not None else bias
    argument = "weight" if weight is not None else "bias"
    if scale is None:
        check_rank(x, 1, "x")
    else:
        rank = len(check_rank(scale, 1, argument))
        check_exact_shape(check_rank(x, rank, "x")[-rank:], scale, argument)
        if bias is not None:
            check_exact_shape(scale.shape, bias, "bias")
    return x.shape


def _group_norm_shape(x: Type, weight: Type | None, bias: Type | None, groups: object, eps: object) -> Shape:
    check_non_negative(eps, "eps")
    channels, parts = check_rank(x, 2, "x")[1], check_amount(groups, "groups", 1)
    if channels % parts != 0:
        raise OpError(f"cannot divide {channels} channels into {parts} groups", "groups")
    for name, scale in (("weight", weight), ("bias", bias)):
        if scale is not None:
            check_exact_shape((channels,), scale, name)
    return x.shape


def _one_hot_shape(ids: Type, count: object) -> Shape:
    return (*ids.shape, check_size(count, "count"))


def _embedding_shape(ids: Type, table: Type) -> Shape:
    return (*ids.shape, *check_rank(table, 1, "table")[1:])


def _gather_shape(x: Type, index: Type, axis: object) -> Shape:
    position = check_axis(axis, x)
    if len(index.shape) != len(x.shape):
        raise OpError(
            f"expects an `index` with {len(x.shape)} axes for {format_type(x)}, found {format_type(index)}", "index"
        )
    check_exact_shape(replace_axis_size(x.shape, position, index.shape[position]), index, "index")
    return index.shape


# Costs ----------------------------------------------------------------------------------------------------------------


def _row_work(inputs: Sequence[Type | None], result: Type, attributes: Settings) -> Sequence[Dim]:
    """Return the work if each element of the result is a sum over the last axis of the first input."""
    first = inputs[0]
    assert first is not None
    return (*result.shape, first.shape[-1])


def _triangle_work(inputs: Sequence[Type | None], result: Type, attributes: Settings) -> Sequence[Dim]:
    """Return the work if each row of the result is a sum over the rows above it."""
    *leading, rows, width = result.shape
    return (*leading, rows * (rows - 1) // 2, width)


def _kernel_work(inputs: Sequence[Type | None], result: Type, attributes: Settings) -> Sequence[Dim]:
    """Return the work of a convolution: a kernel per element of the result (of x, if transposed), padding included."""
    x, weight, *_ = inputs
    assert x is not None and weight is not None
    return (*(x if attributes.get("transposed") else result).shape, *weight.shape[1:])


# PyTorch --------------------------------------------------------------------------------------------------------------


def _append_bias(call: str) -> Callable[[Operands], str]:
    """Return the code of a call, with the bias as its last argument if present."""
    return lambda o: f"{call}, bias)" if o.is_given("bias") else f"{call})"


def _conv_code(o: Operands) -> str:
    rank = o.rank("x")
    if rank not in (3, 4, 5):
        raise OpError("PyTorch supports convolutions over one, two or three axes", "x")
    transposed = o.literal("transposed")
    if not isinstance(transposed, bool):
        raise OpError("cannot translate a convolution that is transposed only in some uses", "transposed")
    function = f"F.conv_transpose{rank - 2}d" if transposed else f"F.conv{rank - 2}d"
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    keywords = "".join(f", {word}={word}" for word, value in defaults.items() if o.literal(word) != value)
    return f"{function}(x, weight{', bias' if o.is_given('bias') else ''}{keywords})"


def _layer_norm_code(o: Operands) -> str:
    present = [name for name in ("weight", "bias") if o.is_given(name)]
    scale = next((name for name in present if not o.is_optional(name)), "")
    if not scale and any(o.rank(name) != 1 for name in present):
        raise OpError("cannot normalize over axes that differ between uses")
    weight, bias = (name if name in present else None for name in ("weight", "bias"))
    return f"F.layer_norm(x, {f'{scale}.shape' if scale else 'x.shape[-1:]'}, {weight}, {bias}, eps)"


def _group_norm_code(o: Operands) -> str:
    weight, bias = (name if o.is_given(name) else None for name in ("weight", "bias"))
    return f"F.group_norm(x, groups, {weight}, {bias}, eps)"


def _one_hot_code(o: Operands) -> str:
    if o.is_number("ids"):
        return "torch.arange(count, **new).eq(ids).long()"
    return "ids[..., None].eq(torch.arange(count, **new)).long()"


def _embedding_code(o: Operands) -> str:
    return "F.embedding(ids, table)" if o.rank("table") == 2 and not o.is_number("ids") else "table[ids]"


_PROMOTED = "real if any input is, else int; "

OPS = (
    Op(
        "matmul",
        "Weights and positions",
        "The matrix product over the last two axes: out[..., i, j] is the sum over k of a[..., i, k] * b[..., k, j]; "
        "the leading axes are broadcast.",
        (Input("a", "number", "[..., n, k]"), Input("b", "number", "[..., k, m]")),
        (),
        _PROMOTED + "[..., n, m]",
        _matmul_shape,
        ("a b",),
        mixes=True,
        attention="product",
        macs=_row_work,
        torch=TorchForm("torch.matmul(a, b)", promotes=False),
        normal="weights.matmul",
    ),
    Op(
        "forward_substitution",
        "Weights and positions",
        "The solution x of matmul(l, x) = b, where l is a below its diagonal, 1 on it and 0 above: out[..., i, j] is "
        "b[..., i, j] minus the sum over k < i of a[..., i, k] * out[..., k, j]; the leading axes are broadcast.",
        (Input("a", "number", "[..., n, n]"), Input("b", "number", "[..., n, m]")),
        (),
        "real, [..., n, m]",
        _forward_substitution_shape,
        ("real",),
        mixes=True,
        macs=_triangle_work,
        torch=TorchForm("torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)"),
        normal="weights.forward_substitution",
    ),
    Op(
        "linear",
        "Weights and positions",
        "out[..., o] is the sum over i of x[..., i] * weight[o, i], plus bias[o].",
        (
            Input("x", "number", "[..., in]"),
            Input("weight", "number", "[out, in]"),
            Input("bias", "number", "[out]", optional=True),
        ),
        (),
        _PROMOTED + "[..., out]",
        _linear_shape,
        ("x weight bias",),
        mixes=True,
        macs=_row_work,
        torch=TorchForm(_append_bias("F.linear(x, weight"), promotes=False),
        normal="weights.linear",
    ),
    Op(
        "expert_linear",
        "Weights and positions",
        "Applies to each vector of x the matrix of its expert: with e = experts[...], out[..., o] is the sum "
        "over i of x[..., i] * weight[e, o, i], plus bias[e, o]; the leading axes of x and the axes of experts are "
        "broadcast, and 0 <= experts < n.",
        (
            Input("x", "number", "[..., in]"),
            Input("experts", "int", indexes="weight bias"),
            Input("weight", "number", "[n, out, in]"),
            Input("bias", "number", "[n, out]", optional=True),
        ),
        (),
        _PROMOTED + "[..., out]",
        _expert_linear_shape,
        ("x weight bias",),
        mixes=True,
        macs=_row_work,
        torch=TorchForm(_append_bias("expert_linear(x, experts, weight"), helper=EXPERT_LINEAR, promotes=False),
        normal="weights.expert_linear",
    ),
    Op(
        "conv",
        "Weights and positions",
        "Convolution over one or more spatial axes, without flipping the kernel: out[b, o, p] is bias[o] plus the "
        "sum over c and k of x[b, g * (in / groups) + c, p * stride - padding + k * dilation] * weight[o, c, k], "
        "where g = o // (out / groups) and x is 0 outside. If transposed, its adjoint: each x[b, c, q] * weight[c, "
        "o, k] is added, onto bias, at p = q * stride - padding + k * dilation of channel g * (out / groups) + o, "
        "where g = c // (in / groups) and the weight is [in, out / groups, ...kernel]. stride, padding and dilation "
        "are an integer, or a list with one per spatial axis; groups divides in and out.",
        (
            Input("x", "number", "[batch, in, ...n]"),
            Input("weight", "number", "[out, in / groups, ...kernel]"),
            Input("bias", "number", "[out]", optional=True),
        ),
        (
            Attribute("stride", 1),
            Attribute("padding", 0),
            Attribute("dilation", 1),
            Attribute("groups", 1),
            Attribute("transposed", False),
        ),
        _PROMOTED + "[batch, out, ...m], where m = (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1, "
        "or if transposed (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1",
        _conv_shape,
        ("x weight bias",),
        mixes=True,
        macs=_kernel_work,
        torch=TorchForm(_conv_code, promotes=False),
        normal="weights.convolution",
    ),
    Op(
        "layer_norm",
        "Weights and positions",
        "(x - mean) / sqrt(variance + eps) * weight + bias, with the mean and the variance (the mean square of "
        "x - mean) over the axes of weight, or of bias, or over the last axis if both are none.",
        (
            Input("x", "number", "[..., d]"),
            Input("weight", "number", "[d]", optional=True),
            Input("bias", "number", "[d]", optional=True),
        ),
        (Attribute("eps"),),
        "real, shape of x",
        _layer_norm_shape,
        ("real",),
        work=5,  # the sum for the mean, its subtraction, the square, the sum for the variance, the scaling
        torch=TorchForm(_layer_norm_code, promotes=False),
        normal="weights.layer_norm",
    ),
    Op(
        "group_norm",
        "Weights and positions",
        "(x - mean) / sqrt(variance + eps) * weight + bias, with the mean and the variance over each of groups groups "
        "of adjacent channels, at all positions; weight and bias have one element per channel.",
        (
            Input("x", "number", "[batch, channels, ...n]"),
            Input("weight", "number", "[channels]", optional=True),
            Input("bias", "number", "[channels]", optional=True),
        ),
        (Attribute("groups"), Attribute("eps")),
        "real, shape of x",
        _group_norm_shape,
        ("real",),
        work=5,  # as for layer_norm
        torch=TorchForm(_group_norm_code, promotes=False),
        normal="weights.group_norm",
    ),
    Op(
        "embedding",
        "Weights and positions",
        "The rows of table selected by ids: out[..., :] is table[ids[...], :], with 0 <= ids < n.",
        (Input("ids", "int", indexes="table"), Input("table", "", "[n, d]")),
        (),
        "type of table; [..., d] (d may be no axis, one or several)",
        _embedding_shape,
        ("table",),
        mixes=True,
        torch=TorchForm(_embedding_code),
        normal="weights.embedding",
    ),
    Op(
        "gather",
        "Weights and positions",
        "Elements selected along axis: out[i, ..., j, ..., k] is x[i, ..., index[i, ..., j, ..., k], ..., k], with the "
        "index at axis, and 0 <= index < the size of x there. The other sizes of x and index are equal.",
        (Input("x"), Input("index", "int", indexes="x")),
        (Attribute("axis"),),
        "type of x, shape of index",
        _gather_shape,
        ("x",),
        torch=TorchForm("torch.gather(x, axis, index)"),
        normal="weights.gather",
    ),
    Op(
        "one_hot",
        "Weights and positions",
        "1 where ids equals the position along a new last axis, else 0: out[..., i] is 1 if ids[...] is i. All are 0 "
        "unless 0 <= ids < count.",
        (Input("ids", "int"),),
        (Attribute("count"),),
        "int, [..., count]",
        _one_hot_shape,
        ("int",),
        work=1,
        torch=TorchForm(_one_hot_code),
        normal="weights.one_hot",
    ),
)
