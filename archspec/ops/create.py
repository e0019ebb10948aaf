"""Operations that create tensors from compile-time constants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archspec.algebra import LARGEST, Polynomial
from archspec.ir import Type
from archspec.ops.check import OpError, Shape, describe, shape_of, size_of
from archspec.ops.record import Attribute, Interval, Op, Settings, Torch


def _arange(stop: object) -> Shape:
    return (size_of(stop, "stop"),)


def _full(shape: object, value: object) -> Shape:
    sizes = shape_of(shape, "shape")
    match value:
        case bool() | Polynomial():
            pass
        case float() if not math.isnan(value):
            pass
        case int() if abs(value) <= LARGEST:
            pass
        case _:
            raise OpError(f"expects a number or a boolean as `value`, found {describe(value)}", "value")
    return sizes


def _counted(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    stop = attributes["stop"]
    return (0, stop - 1) if isinstance(stop, int) else None


def _constant(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval | None:
    value = attributes["value"]
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else None


OPS = (
    Op(
        "arange",
        "Creation",
        "0, 1, 2, ..., stop - 1.",
        (),
        (Attribute("stop"),),
        "int [stop]",
        _arange,
        ("int",),
        interval=_counted,
        torch=Torch("torch.arange(stop, **new)"),
    ),
    Op(
        "full",
        "Creation",
        "A tensor filled with the value; a shape of [] yields a single element.",
        (),
        (Attribute("shape"), Attribute("value")),
        "int, real or bool, like the value; shape",
        _full,
        ("value",),
        interval=_constant,
        torch=Torch("torch.full(shape, value, **new)"),
    ),
)
