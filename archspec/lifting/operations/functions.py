"""Functions of PyTorch that the language does not have, as several of its operations."""

from __future__ import annotations

import math
from collections.abc import Callable

from archspec.equivalence.calls.values import Untranslatable
from archspec.lifting.builder import Builder
from archspec.lifting.operations.handlers import Handler, Types, converted
from archspec.lifting.operations.shape import filled
from archspec.lifting.values import Operand, Value


def _of_real(function: Callable[..., Value]) -> Handler:
    """Return the handler of a function of one real; further arguments are numbers."""

    def call(b: Builder, types: Types, x: Value, *numbers: float | None, **named: float | None) -> Value:
        return function(b, converted(b, x, "real"), *numbers, **named)

    return call


def _bounded(b: Builder, x: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    return b.op("min", b.op("max", x, float(min_val)), float(max_val))


def _relu6(b: Builder, x: Value) -> Value:
    return _bounded(b, x, 0.0, 6.0)


def _hard_sigmoid(b: Builder, x: Value) -> Value:
    return b.op("div", _relu6(b, b.op("add", x, 3.0)), 6.0)


def _hard_swish(b: Builder, x: Value) -> Value:
    return b.op("mul", x, _hard_sigmoid(b, x))


def _leaky_relu(b: Builder, x: Value, negative_slope: float = 0.01) -> Value:
    return b.op("where", b.op("gt", x, 0.0), x, b.op("mul", x, negative_slope))


def _elu(b: Builder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    below = b.op("sub", b.op("exp", _times(b, x, input_scale)), 1.0)
    return b.op("where", b.op("gt", x, 0.0), _times(b, x, scale), _times(b, below, alpha * scale))


def _celu(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    return _elu(b, x, alpha, 1.0, 1 / alpha)


def _selu(b: Builder, x: Value) -> Value:
    return _elu(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _times(b: Builder, x: Value, by: float) -> Value:
    return x if by == 1 else b.op("mul", x, by)


def _soft_plus(b: Builder, x: Value) -> Value:
    below = b.op("log", b.op("add", b.op("exp", b.op("neg", b.op("abs", x))), 1.0))
    return b.op("add", b.op("max", x, 0.0), below)


def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    return _times(b, _soft_plus(b, _times(b, x, beta)), 1 / beta)


def _log_sigmoid(b: Builder, x: Value) -> Value:
    return b.op("neg", _soft_plus(b, b.op("neg", x)))


def _logit(b: Builder, x: Value, eps: float | None = None) -> Value:
    if eps is not None:
        raise Untranslatable("it clamps the argument of `logit`")
    return b.op("log", b.op("div", x, b.op("sub", 1.0, x)))


def _logarithm(base: float) -> Callable[[Builder, Value], Value]:
    def of(b: Builder, x: Value) -> Value:
        return b.op("mul", b.op("log", x), 1 / math.log(base))

    return of


def _log_of_sum(b: Builder, x: Value) -> Value:
    return b.op("log", b.op("add", x, 1.0))


def _exp_less_one(b: Builder, x: Value) -> Value:
    return b.op("sub", b.op("exp", x), 1.0)


def _exp_of_two(b: Builder, x: Value) -> Value:
    return b.op("exp", b.op("mul", x, math.log(2.0)))


def _tangent(b: Builder, x: Value) -> Value:
    return b.op("div", b.op("sin", x), b.op("cos", x))


def _inverse_hyperbolic_sine(b: Builder, x: Value) -> Value:
    size = b.op("abs", x)
    root = b.op("sqrt", b.op("add", b.op("mul", size, size), 1.0))
    above = b.op("log", b.op("add", size, root))
    return b.op("where", b.op("gt", x, 0.0), above, b.op("neg", above))


def _is_infinite(b: Builder, x: Value) -> Value:
    return b.op("eq", b.op("abs", x), math.inf)


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
        return b.op("add", x, _times(b, b.op(name, y, z), value))

    return call


def _truncated(b: Builder, types: Types, x: Value) -> Value:
    return x if types[0].dtype == "int" else b.op("real", b.op("int", x))


def _remainder(b: Builder, types: Types, x: Value, y: Operand) -> Value:
    """Return the remainder with the sign of `x`."""
    if types[0].dtype == "int":
        raise Untranslatable("it divides integers and rounds towards zero")
    whole = b.op("real", b.op("int", b.op("div", x, y)))
    return b.op("sub", x, b.op("mul", whole, y))


def _exclusive(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("ne", converted(b, x, "bool"), converted(b, y, "bool"))


def _fill(b: Builder, types: Types, x: Value, value: Operand, *rest: object) -> Value:
    """Return another value in the shape of a tensor."""
    if isinstance(value, Value):
        return b.spread(converted(b, value, types[0].dtype), types[0].shape)
    return filled(b, types, value)


NAMES: dict[Handler, str] = {
    _of_real(_relu6): "relu6",
    _of_real(_bounded): "hardtanh",
    _of_real(_hard_sigmoid): "hardsigmoid",
    _of_real(_hard_swish): "hardswish",
    _of_real(_leaky_relu): "leaky_relu",
    _of_real(_elu): "elu",
    _of_real(_celu): "celu",
    _of_real(_selu): "selu",
    _of_real(_log_sigmoid): "log_sigmoid",
    _of_real(_softplus): "softplus",
    _of_real(_logit): "logit",
    _of_real(_logarithm(2.0)): "log2",
    _of_real(_logarithm(10.0)): "log10",
    _of_real(_log_of_sum): "log1p",
    _of_real(_exp_less_one): "expm1",
    _of_real(_exp_of_two): "exp2",
    _of_real(_tangent): "tan",
    _of_real(_inverse_hyperbolic_sine): "asinh arcsinh",
    _of_real(_is_infinite): "isinf",
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
