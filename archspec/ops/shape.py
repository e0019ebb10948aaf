"""Operations that move elements and compute none."""

from __future__ import annotations

from archspec.dims import Dim, product
from archspec.ir import Type
from archspec.ops.check import (
    alike,
    axis_of,
    certainly_below,
    dimension,
    is_list,
    shape_of,
    shown,
    size_of,
    told,
    typed,
    unlike,
    whole,
)
from archspec.ops.record import Attribute, Input, Op, OpError

GROUP = "Shape"


def _reshape(x: Type, shape: object) -> Type:
    sizes = shape_of(shape, "shape")
    had, wanted = product(x.shape), product(sizes)
    if had != wanted:
        reason = f"element counts must match, but {unlike(wanted, had)}"
        raise OpError(f"cannot turn {shown(x.shape)} into {shown(sizes)}: {reason}", "shape")
    return Type(sizes, x.dtype)


def _transpose(x: Type, a: object, b: object) -> Type:
    first, second = axis_of(a, x, "a"), axis_of(b, x, "b")
    shape = list(x.shape)
    shape[first], shape[second] = shape[second], shape[first]
    return Type(tuple(shape), x.dtype)


def _permute(x: Type, order: object) -> Type:
    if not is_list(order):
        raise OpError(f"expects a list of axes as `order`, found {told(order)}", "order")
    axes = [axis_of(axis, x, "order") for axis in order]
    if sorted(axes) != list(range(len(x.shape))):
        raise OpError(f"expects `order` to name each of the {len(x.shape)} axes of {typed(x)} once", "order")
    return Type(tuple([x.shape[axis] for axis in axes]), x.dtype)


def _expand(x: Type, shape: object) -> Type:
    sizes = shape_of(shape, "shape")
    new = len(sizes) - len(x.shape)
    if new < 0:
        raise OpError(f"cannot stretch {shown(x.shape)} to {shown(sizes)}, which has fewer axes", "shape")
    for had, wanted in zip(x.shape, sizes[new:], strict=True):
        if had != wanted and had != 1:
            message = f"cannot stretch {shown(x.shape)} to {shown(sizes)}: {unlike(had, wanted)}"
            raise OpError(message, "shape", "make each size 1 or equal to the new size, starting from the last axis")
    return Type(sizes, x.dtype)


def _concat(*tensors: Type, axis: object) -> Type:
    first = tensors[0]
    place = axis_of(axis, first)
    total: Dim = 0
    named = [(f"tensors{i + 1}" if i else "tensors", tensor) for i, tensor in enumerate(tensors)]
    for name, tensor in named:
        if len(tensor.shape) != len(first.shape):
            raise OpError(
                f"expects tensors with the same number of axes, found {typed(first)} and {typed(tensor)}", name
            )
        for i, (size, other) in enumerate(zip(first.shape, tensor.shape, strict=True)):
            if i != place and size != other:
                message = f"cannot join {shown(first.shape)} and {shown(tensor.shape)} on axis {place}"
                raise OpError(f"{message}: {unlike(size, other)}", name)
        total = total + tensor.shape[place]
    dtype = alike(*named)
    return Type((*first.shape[:place], total, *first.shape[place + 1 :]), dtype)


def _split(x: Type, sizes: object, axis: object) -> tuple[Type, ...]:
    place = axis_of(axis, x)
    if not is_list(sizes) or not sizes:
        raise OpError(
            f"expects a list of sizes as `sizes`, found {told(sizes) if sizes != () else 'an empty list'}", "sizes"
        )
    parts = [size_of(size, "sizes") for size in sizes]
    total: Dim = 0
    for part in parts:
        total = total + part
    if total != x.shape[place]:
        raise OpError(f"expects sizes that add up to the size of the axis: {unlike(total, x.shape[place])}", "sizes")
    return tuple([Type((*x.shape[:place], part, *x.shape[place + 1 :]), x.dtype) for part in parts])


def _from_start(value: object, size: Dim, argument: str) -> Dim:
    """A place on an axis, counted from its start; what is certainly negative was counted from its end."""
    place = dimension(value, argument)
    return place + size if certainly_below(place, 0) else place


def _slice(x: Type, axis: object, start: object, stop: object, step: object) -> Type:
    at, stride = axis_of(axis, x), whole(step, "step", 1)
    size = x.shape[at]
    first = _from_start(start, size, "start")
    last = size if stop is None else _from_start(stop, size, "stop")
    if certainly_below(first, 0):
        raise OpError(f"cannot start at {told(start)}, before the beginning of an axis of size {size}", "start")
    if certainly_below(size - last, 0):
        raise OpError(f"cannot stop at {last} on an axis of size {size}", "stop")
    if certainly_below(last - first, 1):
        raise OpError(
            f"selects nothing from {first} up to {last} on an axis of size {size}", "start" if stop is None else "stop"
        )
    length = (last - first + stride - 1) // stride
    return Type((*x.shape[:at], length, *x.shape[at + 1 :]), x.dtype)


def _pick(x: Type, axis: object, index: object) -> Type:
    at = axis_of(axis, x)
    size = x.shape[at]
    place = _from_start(index, size, "index")
    if certainly_below(place, 0) or certainly_below(size - place, 1):
        raise OpError(f"cannot select element {told(index)} on an axis of size {size}", "index")
    return Type((*x.shape[:at], *x.shape[at + 1 :]), x.dtype)


_X = (Input("x", "[...]"),)

OPS = (
    Op(
        "reshape",
        GROUP,
        "The elements of x in the same order (the last axis runs fastest) in another shape of as many elements.",
        _X,
        (Attribute("shape"),),
        "type of x; shape",
        _reshape,
    ),
    Op(
        "transpose",
        GROUP,
        "x with the axes a and b exchanged.",
        _X,
        (Attribute("a", -2), Attribute("b", -1)),
        "type of x; shape of x with sizes a and b exchanged",
        _transpose,
    ),
    Op(
        "permute",
        GROUP,
        "x with its axes in another order: axis i of the result is axis order[i] of x.",
        _X,
        (Attribute("order"),),
        "type of x; sizes of x in that order",
        _permute,
    ),
    Op(
        "expand",
        GROUP,
        "x repeated along new leading axes and along axes of size 1 until it has the shape.",
        _X,
        (Attribute("shape"),),
        "type of x; shape",
        _expand,
    ),
    Op(
        "concat",
        GROUP,
        "The tensors one after the other along axis; their other sizes are equal; all are numbers or all bool.",
        (Input("tensors", "[...]", variadic=True),),
        (Attribute("axis"),),
        "bool if all are, real if any is, else int; the sizes at axis added up",
        _concat,
    ),
    Op(
        "split",
        GROUP,
        "x cut along axis into parts of the given sizes, which add up to its size there; as many outputs as sizes.",
        _X,
        (Attribute("sizes"), Attribute("axis", -1)),
        "each: type of x; shape of x with its own size at axis",
        _split,
    ),
    Op(
        "slice",
        GROUP,
        "Every step-th element along axis, from start up to stop without stop; negative ones count from the end, and "
        "stop = none is the end. Both lie within the axis: nothing is cut short.",
        _X,
        (Attribute("axis"), Attribute("start", 0), Attribute("stop", None), Attribute("step", 1)),
        "type of x; shape of x with (stop - start + step - 1) // step at axis",
        _slice,
    ),
    Op(
        "pick",
        GROUP,
        "The one element at index along axis, which goes; a negative index counts from the end.",
        _X,
        (Attribute("axis"), Attribute("index")),
        "type of x; shape of x without the axis",
        _pick,
    ),
)
