"""Operations that create tensors from compile-time constants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archspec.core.algebra import MAX_SIZE, Polynomial
from archspec.ir.module import Type
from archspec.ir.ops.check import OpError, Shape, check_shape, check_size, describe, element_type, is_list
from archspec.ir.ops.record import Attribute, Interval, Op, Settings, TorchForm


def _arange_shape(stop: object) -> Shape:
    return (check_size(stop, "stop"),)


def _full_shape(shape: object, value: object) -> Shape:
    sizes = check_shape(shape)
    match value:
        case bool() | Polynomial():
            pass
        case float() if not math.isnan(value):
            pass
        case int() if abs(value) <= MAX_SIZE:
            pass
        case _:
            raise OpError(f"expects a number or a boolean as `value`, found {describe(value)}", "value")
    return sizes


def _table_shape(values: object) -> Shape:
    if not is_list(values):
        raise OpError(f"expects a list of numbers or booleans as `values`, found {describe(values)}", "values")
    if not values:
        raise OpError("expects at least one item in each list of `values`", "values")
    shapes = [_table_shape(item) if is_list(item) else () for item in values]
    for item, shape in zip(values, shapes, strict=True):
        if shape != shapes[0]:
            raise OpError("expects lists of equal length in `values`", "values")
        if not is_list(item) and not isinstance(item, int | float | Polynomial):
            raise OpError(f"expects numbers or booleans in `values`, found {describe(item)}", "values")
    are_boolean = {isinstance(item, bool) if not is_list(item) else element_type(item) == "bool" for item in values}
    if len(are_boolean) > 1:
        raise OpError("cannot mix booleans with numbers in `values`", "values")
    return (len(values), *shapes[0])


def _arange_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    stop = attributes["stop"]
    return (0, stop - 1) if isinstance(stop, int) else None


def _full_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    value = attributes["value"]
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else None


def _table_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    items = _flatten_list(attributes["values"])
    numbers = [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    return (min(numbers), max(numbers)) if len(numbers) == len(items) else None


def _flatten_list(value: object) -> list[object]:
    return [nested for item in value for nested in _flatten_list(item)] if is_list(value) else [value]


OPS = (
    Op(
        "arange",
        "Creation",
        "0, 1, 2, ..., stop - 1.",
        (),
        (Attribute("stop"),),
        "int [stop]",
        _arange_shape,
        ("int",),
        interval=_arange_interval,
        torch=TorchForm("torch.arange(stop, **new)"),
        normal="shape.arange",
    ),
    Op(
        "full",
        "Creation",
        "A tensor filled with the value; a shape of [] yields a single element.",
        (),
        (Attribute("shape"), Attribute("value")),
        "int, real or bool, like the value; shape",
        _full_shape,
        ("value",),
        interval=_full_interval,
        torch=TorchForm("torch.full(shape, value, **new)"),
        normal="shape.full",
    ),
    Op(
        "table",
        "Creation",
        "The numbers or booleans in a list, or in nested lists of equal length, as a tensor.",
        (),
        (Attribute("values"),),
        "int, real or bool, like the values; the lengths of the lists",
        _table_shape,
        ("values",),
        interval=_table_interval,
        torch=TorchForm("torch.tensor(values, **new)"),
    ),
)
