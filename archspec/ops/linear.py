"""Products of streams and weights, look-ups in tables, and the normalisation that takes weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archspec.dims import Dim
from archspec.ir import Type
from archspec.ops.check import (
    amount,
    axis_of,
    broadcast,
    certainly_below,
    exactly,
    flag,
    is_list,
    non_negative,
    numeric,
    ranked,
    same,
    shown,
    typed,
    wants,
)
from archspec.ops.record import Attribute, Input, Op, OpError

GROUP = "Weights and positions"


def _matmul(a: Type, b: Type) -> Type:
    (*left, rows, inner), (*right, other, columns) = ranked(a, 2, "a"), ranked(b, 2, "b")
    same(other, inner, "b", f"as many rows in {shown(b.shape)} as there are columns in {shown(a.shape)}")
    return Type((*broadcast(tuple(left), tuple(right), "b"), rows, columns), numeric(("a", a), ("b", b)))


def _linear(x: Type, weight: Type, bias: Type | None) -> Type:
    (*leading, inner) = ranked(x, 1, "x")
    if len(weight.shape) != 2:
        raise OpError(f"expects a `weight` [out, in], found {typed(weight)}", "weight")
    out, size = weight.shape
    same(inner, size, "x", f"the last size of {shown(x.shape)} to match `in` of the weight {shown(weight.shape)}")
    if bias is not None:
        exactly((out,), bias, "bias")
    return Type((*leading, out), numeric(("x", x), ("weight", weight), ("bias", bias)))


def _expert_linear(x: Type, experts: Type, weight: Type, bias: Type | None) -> Type:
    wants("int", "experts", experts)
    (*leading, inner) = ranked(x, 1, "x")
    if len(weight.shape) != 3:
        raise OpError(f"expects a `weight` [n, out, in], found {typed(weight)}", "weight")
    count, out, size = weight.shape
    same(inner, size, "x", f"the last size of {shown(x.shape)} to match `in` of the weight {shown(weight.shape)}")
    if bias is not None:
        exactly((count, out), bias, "bias")
    shape = (*broadcast(tuple(leading), experts.shape, "experts"), out)
    return Type(shape, numeric(("x", x), ("weight", weight), ("bias", bias)))


def _each(value: object, count: int, argument: str, least: int) -> list[Dim]:
    """One integer, or dimension, for every spatial axis, from one alone or a list."""
    if not is_list(value):
        return [amount(value, argument, least)] * count
    if len(value) != count:
        raise OpError(
            f"expects an integer or a list of {count} as `{argument}`, found a list of {len(value)}", argument
        )
    return [amount(item, argument, least) for item in value]


def _conv(
    x: Type,
    weight: Type,
    bias: Type | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    transposed: object,
) -> Type:
    batch, channels, *spatial = ranked(x, 3, "x")
    if len(weight.shape) != len(x.shape):
        raise OpError(f"expects a `weight` with {len(x.shape)} axes for {typed(x)}, found {typed(weight)}", "weight")
    first, second, *kernel = weight.shape
    count, parts, turned = len(spatial), amount(groups, "groups", 1), flag(transposed, "transposed")
    strides, paddings = _each(stride, count, "stride", 1), _each(padding, count, "padding", 0)
    dilations = _each(dilation, count, "dilation", 1)
    taken = first if turned else second * parts
    same(channels, taken, "x", f"the channels of {shown(x.shape)} to match the weight {shown(weight.shape)}")
    if first % parts != 0:
        raise OpError(f"cannot divide {first} channels into {parts} groups", "groups")
    out = second * parts if turned else first
    if bias is not None:
        exactly((out,), bias, "bias")
    sizes: list[Dim] = []
    for size, reach, step, pad, gap in zip(spatial, kernel, strides, paddings, dilations, strict=True):
        span = (reach - 1) * gap + 1
        room = size + 2 * pad - span
        if not turned and certainly_below(room, 0):
            message = f"cannot fit a kernel that spans {span} on an axis of size {size} with padding {pad} at both ends"
            raise OpError(message, "x")
        sizes.append((size - 1) * step - 2 * pad + span if turned else room // step + 1)
    return Type((batch, out, *sizes), numeric(("x", x), ("weight", weight), ("bias", bias)))


def _layer_norm(x: Type, weight: Type | None, bias: Type | None, eps: object) -> Type:
    non_negative(eps, "eps")
    scale = weight if weight is not None else bias
    argument = "weight" if weight is not None else "bias"
    if scale is None:
        ranked(x, 1, "x")
    else:
        rank = len(ranked(scale, 1, argument))
        exactly(ranked(x, rank, "x")[-rank:], scale, argument)
        if bias is not None:
            exactly(scale.shape, bias, "bias")
    numeric(("x", x), ("weight", weight), ("bias", bias))
    return Type(x.shape)


def _embedding(ids: Type, table: Type) -> Type:
    wants("int", "ids", ids)
    return Type((*ids.shape, *ranked(table, 1, "table")[1:]), table.dtype)


def _gather(x: Type, index: Type, axis: object) -> Type:
    wants("int", "index", index)
    place = axis_of(axis, x)
    if len(index.shape) != len(x.shape):
        raise OpError(f"expects an `index` with {len(x.shape)} axes for {typed(x)}, found {typed(index)}", "index")
    exactly((*x.shape[:place], index.shape[place], *x.shape[place + 1 :]), index, "index")
    return Type(index.shape, x.dtype)


# Costs ----------------------------------------------------------------------------------------------------------------


def _of_rows(inputs: Sequence[Type | None], result: Type, attributes: Mapping[str, Any]) -> Sequence[Dim]:
    """Each element of the result is a sum over the last axis of the first input."""
    first = inputs[0]
    assert first is not None
    return (*result.shape, first.shape[-1])


def _of_kernels(inputs: Sequence[Type | None], result: Type, attributes: Mapping[str, Any]) -> Sequence[Dim]:
    """Each element of the result (of x, if transposed) meets a whole kernel: zeros around x are multiplied, too."""
    x, weight, *_ = inputs
    assert x is not None and weight is not None
    return (*(x if attributes.get("transposed") else result).shape, *weight.shape[1:])


_NUMBER = "number "
_PROMOTED = "real if any input is, else int; "

OPS = (
    Op(
        "matmul",
        GROUP,
        "The matrix product over the last two axes: out[..., i, j] is the sum over k of a[..., i, k] * b[..., k, j]; "
        "the leading axes stretch to each other.",
        (Input("a", _NUMBER + "[..., n, k]"), Input("b", _NUMBER + "[..., k, m]")),
        (),
        _PROMOTED + "[..., n, m]",
        _matmul,
        mixes=True,
        macs=_of_rows,
    ),
    Op(
        "linear",
        GROUP,
        "out[..., o] is the sum over i of x[..., i] * weight[o, i], plus bias[o].",
        (
            Input("x", _NUMBER + "[..., in]"),
            Input("weight", _NUMBER + "[out, in]"),
            Input("bias", _NUMBER + "[out]", optional=True),
        ),
        (),
        _PROMOTED + "[..., out]",
        _linear,
        mixes=True,
        macs=_of_rows,
    ),
    Op(
        "expert_linear",
        GROUP,
        "Each vector of x through the matrix its expert index names: with e = experts[...], out[..., o] is the sum "
        "over i of x[..., i] * weight[e, o, i], plus bias[e, o]; the leading axes of x and the axes of experts stretch "
        "to each other, and 0 <= experts < n.",
        (
            Input("x", _NUMBER + "[..., in]"),
            Input("experts", "int [...]"),
            Input("weight", _NUMBER + "[n, out, in]"),
            Input("bias", _NUMBER + "[n, out]", optional=True),
        ),
        (),
        _PROMOTED + "[..., out]",
        _expert_linear,
        mixes=True,
        macs=_of_rows,
    ),
    Op(
        "conv",
        GROUP,
        "Convolution over one or more spatial axes, without flipping the kernel: out[b, o, p] is bias[o] plus the "
        "sum over c and k of x[b, g * (in / groups) + c, p * stride - padding + k * dilation] * weight[o, c, k], "
        "where g = o // (out / groups) and x is 0 outside. If transposed, its adjoint: each x[b, c, q] * weight[c, "
        "o, k] is added, onto bias, at p = q * stride - padding + k * dilation of channel g * (out / groups) + o, "
        "where g = c // (in / groups) and the weight is [in, out / groups, ...kernel]. stride, padding and dilation "
        "are an integer, or a list with one for each spatial axis; groups divides in and out.",
        (
            Input("x", _NUMBER + "[batch, in, ...n]"),
            Input("weight", _NUMBER + "[out, in / groups, ...kernel]"),
            Input("bias", _NUMBER + "[out]", optional=True),
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
        _conv,
        mixes=True,
        macs=_of_kernels,
    ),
    Op(
        "layer_norm",
        GROUP,
        "(x - mean) / sqrt(variance + eps) * weight + bias, with the mean and the variance (the mean square of "
        "x - mean) taken over the axes that weight has, or bias, or over the last if neither is there.",
        (
            Input("x", _NUMBER + "[..., d]"),
            Input("weight", _NUMBER + "[d]", optional=True),
            Input("bias", _NUMBER + "[d]", optional=True),
        ),
        (Attribute("eps"),),
        "real, shape of x",
        _layer_norm,
        work=5,  # the sum for the mean, take it off, the square, the sum for the variance, scale
    ),
    Op(
        "embedding",
        GROUP,
        "The rows of table that ids name: out[..., :] is table[ids[...], :], with 0 <= ids < n.",
        (Input("ids", "int [...]"), Input("table", "[n, d]")),
        (),
        "type of table; [..., d] (d may be no axis, one or several)",
        _embedding,
        mixes=True,
    ),
    Op(
        "gather",
        GROUP,
        "Elements picked along axis: out[i, ..., j, ..., k] is x[i, ..., index[i, ..., j, ..., k], ..., k], the index "
        "standing at axis, with 0 <= index < the size of x there. The other sizes of x and index are equal.",
        (Input("x", "[...]"), Input("index", "int [...]")),
        (Attribute("axis"),),
        "type of x, shape of index",
        _gather,
    ),
)
