"""Operations that make tensors of numbers known when a spec is compiled."""

from __future__ import annotations

import math

from archspec.dims import LARGEST, Symbolic
from archspec.ir import Type
from archspec.ops.check import shape_of, size_of, told
from archspec.ops.record import Attribute, Op, OpError

GROUP = "Creation"


def _arange(stop: object) -> Type:
    return Type((size_of(stop, "stop"),), "int")


def _full(shape: object, value: object) -> Type:
    sizes = shape_of(shape, "shape")
    match value:
        case bool():
            return Type(sizes, "bool")
        case float() if not math.isnan(value):
            return Type(sizes)
        case Symbolic():
            return Type(sizes, "int")
        case int() if abs(value) <= LARGEST:
            return Type(sizes, "int")
        case _:
            raise OpError(f"expects a number or a boolean as `value`, found {told(value)}", "value")


OPS = (
    Op("arange", GROUP, "0, 1, 2, ... up to stop without stop.", (), (Attribute("stop"),), "int [stop]", _arange),
    Op(
        "full",
        GROUP,
        "The value everywhere; a shape of [] makes a single element.",
        (),
        (Attribute("shape"), Attribute("value")),
        "int, real or bool as the value is; shape",
        _full,
    ),
)
