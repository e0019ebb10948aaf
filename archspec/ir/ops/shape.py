"""Operations that move elements without computing any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.ir.ops.check import (
    OpError,
    Shape,
    check_axes,
    check_axis,
    check_boolean,
    check_dimension,
    check_integer,
    check_shape,
    check_size,
    describe,
    explain_size_mismatch,
    format_shape,
    format_type,
    is_certainly_below,
    is_list,
    replace_axis_size,
)
from archspec.ir.ops.record import (
    Attribute,
    Input,
    Interval,
    Op,
    Operands,
    Settings,
    TorchForm,
    identity_interval,
)

_MAX_EXACT_INTEGER = 2**53
"""Largest integer up to which float64 is exact. PyTorch passes the value of padding as a float64."""


def _reshape_shape(x: Type, shape: object) -> Shape:
    sizes = check_shape(shape)
    old_count, new_count = product(x.shape), product(sizes)
    if old_count != new_count:
        reason = f"element counts must match, but {explain_size_mismatch(new_count, old_count)}"
        raise OpError(f"cannot turn {format_shape(x.shape)} into {format_shape(sizes)}: {reason}", "shape")
    return sizes


def _transpose_shape(x: Type, a: object, b: object) -> Shape:
    first, second = check_axis(a, x, "a"), check_axis(b, x, "b")
    shape = list(x.shape)
    shape[first], shape[second] = shape[second], shape[first]
    return tuple(shape)


def _permute_shape(x: Type, order: object) -> Shape:
    if not is_list(order):
        raise OpError(f"expects a list of axes as `order`, found {describe(order)}", "order")
    axes = [check_axis(axis, x, "order") for axis in order]
    if sorted(axes) != list(range(len(x.shape))):
        raise OpError(f"expects `order` to name each of the {len(x.shape)} axes of {format_type(x)} once", "order")
    return tuple([x.shape[axis] for axis in axes])


def _expand_shape(x: Type, shape: object) -> Shape:
    sizes = check_shape(shape)
    new = len(sizes) - len(x.shape)
    if new < 0:
        raise OpError(f"cannot stretch {format_shape(x.shape)} to {format_shape(sizes)}, which has fewer axes", "shape")
    for old, size in zip(x.shape, sizes[new:], strict=True):
        if old != size and old != 1:
            message = (
                f"cannot stretch {format_shape(x.shape)} to {format_shape(sizes)}: {explain_size_mismatch(old, size)}"
            )
            raise OpError(message, "shape", "make each size 1 or equal to the new size, starting from the last axis")
    return sizes


def _concat_shape(*tensors: Type, axis: object) -> Shape:
    first = tensors[0]
    position = check_axis(axis, first)
    total: Dim = 0
    for number, tensor in enumerate(tensors, 1):
        name = f"tensors{number}"  # unused for the first tensor, which equals itself
        if len(tensor.shape) != len(first.shape):
            message = (
                f"expects tensors with the same number of axes, found {format_type(first)} and {format_type(tensor)}"
            )
            raise OpError(message, name)
        for i, (size, other_size) in enumerate(zip(first.shape, tensor.shape, strict=True)):
            if i != position and size != other_size:
                message = f"cannot join {format_shape(first.shape)} and {format_shape(tensor.shape)} on axis {position}"
                raise OpError(f"{message}: {explain_size_mismatch(size, other_size)}", name)
        total = total + tensor.shape[position]
    return replace_axis_size(first.shape, position, total)


def _stack_shape(*tensors: Type, axis: object) -> Shape:
    first = tensors[0]
    position, rank = check_integer(axis, "axis"), len(first.shape)
    if not -rank - 1 <= position <= rank:
        raise OpError(
            f"expects a new axis from {-rank - 1} to {rank} for {format_type(first)}, found {position}", "axis"
        )
    for number, tensor in enumerate(tensors[1:], 2):
        if tensor.shape != first.shape:
            raise OpError(
                f"expects tensors of one shape, found {format_type(first)} and {format_type(tensor)}",
                f"tensors{number}",
            )
    position %= rank + 1
    return (*first.shape[:position], len(tensors), *first.shape[position:])


def _split_shapes(x: Type, sizes: object, axis: object) -> list[Shape]:
    position = check_axis(axis, x)
    if not is_list(sizes) or not sizes:
        description = describe(sizes) if sizes != () else "an empty list"
        raise OpError(f"expects a list of sizes as `sizes`, found {description}", "sizes")
    parts = [check_size(size, "sizes") for size in sizes]
    total = sum(parts)
    if total != x.shape[position]:
        raise OpError(
            f"expects sizes that add up to the size of the axis: {explain_size_mismatch(total, x.shape[position])}",
            "sizes",
        )
    return [replace_axis_size(x.shape, position, part) for part in parts]


def _position_from_start(value: object, size: Dim, argument: str) -> Dim:
    """Return a position from the start of an axis; a certainly negative one is counted from its end."""
    position = check_dimension(value, argument)
    return position + size if is_certainly_below(position, 0) else position


def _slice_shape(x: Type, axis: object, start: object, stop: object, step: object) -> Shape:
    sliced_axis, stride = check_axis(axis, x), check_integer(step, "step", 1)
    size = x.shape[sliced_axis]
    first = _position_from_start(start, size, "start")
    last = size if stop is None else _position_from_start(stop, size, "stop")
    if is_certainly_below(first, 0):
        raise OpError(f"cannot start at {describe(start)}, before the beginning of an axis of size {size}", "start")
    if is_certainly_below(size - last, 0):
        raise OpError(f"cannot stop at {last} on an axis of size {size}", "stop")
    if is_certainly_below(last - first, 1):
        raise OpError(
            f"selects nothing from {first} up to {last} on an axis of size {size}", "start" if stop is None else "stop"
        )
    length = (last - first + stride - 1) // stride
    return replace_axis_size(x.shape, sliced_axis, length)


def _pick_shape(x: Type, axis: object, index: object) -> Shape:
    removed_axis = check_axis(axis, x)
    size = x.shape[removed_axis]
    position = _position_from_start(index, size, "index")
    if is_certainly_below(position, 0) or is_certainly_below(size - position, 1):
        raise OpError(f"cannot select element {describe(index)} on an axis of size {size}", "index")
    return replace_axis_size(x.shape, removed_axis)


def _pad_shape(x: Type, axis: object, before: object, after: object, value: object) -> Shape:
    padded_axis, first, last = check_axis(axis, x), check_dimension(before, "before"), check_dimension(after, "after")
    for argument, count in (("before", first), ("after", last)):
        if is_certainly_below(count, 0):
            raise OpError(f"expects `{argument}` to be at least 0, found {count}", argument)
    if x.dtype == "bool":
        check_boolean(value, "value")
    elif isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise OpError(f"expects a number as `value`, found {describe(value)}", "value")
    elif x.dtype == "int":
        fill = check_integer(value, "value")
        if abs(fill) > _MAX_EXACT_INTEGER:
            raise OpError(f"expects `value` to be between -2^53 and 2^53, found {fill}", "value")
    return replace_axis_size(x.shape, padded_axis, first + x.shape[padded_axis] + last)


def _pad_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    (low, high), value = inputs[0], attributes["value"]
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    is_unpadded = attributes["before"] == attributes["after"] == 0
    return (low, high) if is_unpadded else (min(low, value), max(high, value))


def _roll_shape(x: Type, shift: object, axis: object) -> Shape:
    if is_list(shift) != is_list(axis) or (is_list(shift) and is_list(axis) and len(shift) != len(axis)):
        raise OpError("expects one axis and one `shift`, or a list of shifts, one per axis", "shift")
    check_axes(axis, x)
    for positions in shift if is_list(shift) else (shift,):
        check_dimension(positions, "shift")
    return x.shape


def _index_code(part: Callable[[Operands], str]) -> Callable[[Operands], str]:
    """Return the code of an index: `x[:, part]`, or from the end `x[..., part, :]`."""

    def code(o: Operands) -> str:
        axis = o.literal("axis")
        if not isinstance(axis, int):
            raise OpError("cannot slice along an axis that differs between uses", "axis")
        items = [":"] * axis + [part(o)] if axis >= 0 else ["...", part(o), *[":"] * (-1 - axis)]
        return f"x[{', '.join(items)}]"

    return code


def _pad_code(o: Operands) -> str:
    axis, rank = o.literal("axis"), o.rank("x")
    if isinstance(axis, int) and axis >= 0 and rank is not None:
        axis -= rank
    if not isinstance(axis, int) or axis >= 0:
        raise OpError("cannot pad along an axis that differs between uses", "axis")
    value = "" if o.literal("value") == 0 else ", value=value"
    return f"F.pad(x, [{'0, 0, ' * (-1 - axis)}before, after]{value})"


def _slice_code(o: Operands) -> str:
    start = "" if o.literal("start") == 0 else "start"
    stop = "" if o.literal("stop") is None else "stop"
    return f"{start}:{stop}" if o.literal("step") == 1 else f"{start}:{stop}:step"


_X = (Input("x"),)

OPS = (
    Op(
        "reshape",
        "Shape",
        "The elements of x in the same order (the last axis varies fastest), with another shape of the same size.",
        _X,
        (Attribute("shape"),),
        "type of x; shape",
        _reshape_shape,
        ("x",),
        rearranges=True,
        interval=identity_interval,
        torch=TorchForm("x.reshape(*shape)", fills=("x",), memory="whole"),
        normal="shape.reshape",
    ),
    Op(
        "transpose",
        "Shape",
        "x with the axes a and b exchanged.",
        _X,
        (Attribute("a", -2), Attribute("b", -1)),
        "type of x; shape of x with sizes a and b exchanged",
        _transpose_shape,
        ("x",),
        rearranges=True,
        interval=identity_interval,
        torch=TorchForm("x.transpose(a, b)", memory="turned"),
        normal="shape.transpose",
    ),
    Op(
        "permute",
        "Shape",
        "x with its axes reordered: axis i of the result is axis order[i] of x.",
        _X,
        (Attribute("order"),),
        "type of x; sizes of x in that order",
        _permute_shape,
        ("x",),
        rearranges=True,
        interval=identity_interval,
        torch=TorchForm("x.permute(*order)", memory="turned"),
        normal="shape.permute",
    ),
    Op(
        "expand",
        "Shape",
        "x repeated along new leading axes and along axes of size 1 until it has the shape.",
        _X,
        (Attribute("shape"),),
        "type of x; shape",
        _expand_shape,
        ("x",),
        interval=identity_interval,
        torch=TorchForm("x.expand(*shape)", fills=("x",), memory="view"),
        normal="shape.expand",
    ),
    Op(
        "concat",
        "Shape",
        "The tensors concatenated along axis; their other sizes are equal; all are numbers or all bool.",
        (Input("tensors", variadic=True),),
        (Attribute("axis"),),
        "bool if all are, real if any is, else int; the sizes at axis added up",
        _concat_shape,
        ("tensors",),
        rearranges=True,
        torch=TorchForm("torch.cat(tensors, dim=axis)"),
        normal="shape.concat",
    ),
    Op(
        "stack",
        "Shape",
        "The tensors along a new axis; their shapes are equal; all are numbers or all bool.",
        (Input("tensors", variadic=True),),
        (Attribute("axis"),),
        "bool if all are, real if any is, else int; the shape of each with their number at axis",
        _stack_shape,
        ("tensors",),
        rearranges=True,
        torch=TorchForm("torch.stack(tensors, dim=axis)", fills=("tensors",)),
        normal="shape.stack",
    ),
    Op(
        "split",
        "Shape",
        "x split along axis into parts of the given sizes, which add up to its size there; one output per size.",
        _X,
        (Attribute("sizes"), Attribute("axis", -1)),
        "each: type of x; shape of x with its own size at axis",
        _split_shapes,
        ("x", ...),
        rearranges=True,
        torch=TorchForm("torch.split(x, sizes, dim=axis)", memory="view"),
        normal="shape.split",
    ),
    Op(
        "slice",
        "Shape",
        "Every step-th element along axis, from start up to but excluding stop; negative ones count from the end, and "
        "stop = none is the end. Both must be within the axis; they are not clamped.",
        _X,
        (Attribute("axis"), Attribute("start", 0, True), Attribute("stop", None, True), Attribute("step", 1)),
        "type of x; shape of x with (stop - start + step - 1) // step at axis",
        _slice_shape,
        ("x",),
        torch=TorchForm(_index_code(_slice_code), memory="view"),
        normal="shape.cut",
    ),
    Op(
        "pick",
        "Shape",
        "The element at index along axis, which is removed; a negative index counts from the end.",
        _X,
        (Attribute("axis"), Attribute("index", is_position=True)),
        "type of x; shape of x without the axis",
        _pick_shape,
        ("x",),
        torch=TorchForm(_index_code(lambda o: "index"), memory="view"),
        normal="shape.pick",
    ),
    Op(
        "pad",
        "Shape",
        "x with elements that have the value before its first and after its last along axis. The value has the type of "
        "x: an integer for int, a boolean for bool, which has to be given.",
        _X,
        (Attribute("axis"), Attribute("before", 0), Attribute("after", 0), Attribute("value", 0)),
        "type of x; shape of x with before and after added at axis",
        _pad_shape,
        ("x",),
        interval=_pad_interval,
        torch=TorchForm(_pad_code),
        normal="shape.pad",
    ),
    Op(
        "roll",
        "Shape",
        "x moved by shift positions along axis; what leaves at one end enters at the other: out[(i + shift) % n] is "
        "x[i], n the size of the axis. Both may be lists, with one shift per axis.",
        _X,
        (Attribute("shift"), Attribute("axis", -1)),
        "type and shape of x",
        _roll_shape,
        ("x",),
        rearranges=True,
        interval=identity_interval,
        torch=TorchForm("torch.roll(x, shift, axis)"),
        normal="shape.roll",
    ),
)
