"""Functions of PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from archspec.pytorch.calls.compositions import COMPOSITIONS
from archspec.pytorch.calls.values import UntranslatableError
from archspec.pytorch.lift.operations.handlers import Handler, Types, convert
from archspec.pytorch.lift.operations.shape import filled
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Operand, Value


def _composed(function: Callable[..., Value]) -> Handler:
    """Return the handler of a composition of operations on one real; further arguments are numbers."""

    def call(b: Builder, types: Types, x: Value, *numbers: float | None, **named: float | None) -> Value:
        def op(name: str, *operands: Operand) -> Value:
            if name == "softplus":
                return b.activation(name, b.written(cast("Value", operands[0])))
            return b.op(name, *operands)

        return function(op, convert(b, x, "real"), *numbers, **named)

    return call


def _is_infinite(b: Builder, types: Types, x: Value) -> Value:
    return b.op("eq", b.op("abs", convert(b, x, "real")), math.inf)


def _gated(b: Builder, types: Types, x: Value, dim: int = -1) -> Value:
    half = types[0].shape[dim]
    value, gate = b.ops("split", x, sizes=(half, half), axis=dim)
    return b.op("mul", value, b.op("sigmoid", gate))


def _prelu(b: Builder, types: Types, x: Value, weight: Value) -> Value:
    size = weight.shape[0] if weight.shape else 1
    scale = b.reshape(weight, (size, *[1] * (len(x.shape) - 2)) if size != 1 else ())
    return b.op("where", b.op("gt", x, 0.0), x, b.op("mul", x, scale))


def _threshold(b: Builder, types: Types, x: Value, threshold: float, value: float) -> Value:
    return b.op("where", b.op("gt", x, threshold), x, value)


def _interpolated(b: Builder, types: Types, x: Value, y: Value, weight: Operand) -> Value:
    return b.op("add", x, b.op("mul", b.op("sub", y, x), weight))


def _added(name: str) -> Handler:
    """Return the handler of `x + value * (y * z)`, or of the quotient."""

    def call(b: Builder, types: Types, x: Value, y: Operand, z: Operand, *, value: float = 1) -> Value:
        return b.op("add", x, b.op("mul", b.op(name, y, z), value))

    return call


def _truncated(b: Builder, types: Types, x: Value) -> Value:
    return x if types[0].dtype == "int" else b.op("real", b.op("int", x))


def _remainder(b: Builder, types: Types, x: Value, y: Operand) -> Value:
    """Return the remainder with the sign of `x`."""
    if types[0].dtype == "int":
        raise UntranslatableError("it divides integers and rounds towards zero")
    whole = b.op("real", b.op("int", b.op("div", x, y)))
    return b.op("sub", x, b.op("mul", whole, y))


def _exclusive(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("ne", convert(b, x, "bool"), convert(b, y, "bool"))


def _fill(b: Builder, types: Types, x: Value, value: Operand, *rest: object) -> Value:
    """Return another value in the shape of a tensor."""
    if isinstance(value, Value):
        return b.spread(convert(b, value, types[0].dtype), types[0].shape)
    return filled(b, types, value)


NAMES: dict[Handler, str] = {
    **{_composed(function): name for name, function in COMPOSITIONS.items()},
    _is_infinite: "isinf",
    _gated: "glu",
    _prelu: "prelu",
    _threshold: "threshold",
    _interpolated: "lerp",
    _added("mul"): "addcmul",
    _added("div"): "addcdiv",
    _truncated: "trunc fix",
    _remainder: "fmod",
    _exclusive: "logical_xor bitwise_xor __xor__",
    _fill: "fill copy",
}
"""The names of the operations that each function is for."""
