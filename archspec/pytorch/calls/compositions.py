"""Functions of one real in PyTorch that are compositions of operations of the language.

Each is given `op`, which applies an operation by its name, or `softplus` of the library: to elements of normal forms,
or to values that are lifted. Other operands are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from archspec.pytorch.calls.values import refuse

T = TypeVar("T")

LINEAR = 20.0
"""Above a threshold of at least this, `softplus` is the identity in float32."""


def _bounded(op: Callable[..., T], x: T, min_val: float = -1.0, max_val: float = 1.0) -> T:
    return op("min", op("max", x, float(min_val)), float(max_val))


def _relu6(op: Callable[..., T], x: T) -> T:
    return _bounded(op, x, 0.0, 6.0)


def _hard_sigmoid(op: Callable[..., T], x: T) -> T:
    return op("div", _relu6(op, op("add", x, 3.0)), 6.0)


def _hard_swish(op: Callable[..., T], x: T) -> T:
    return op("mul", x, _hard_sigmoid(op, x))


def _leaky_relu(op: Callable[..., T], x: T, negative_slope: float = 0.01) -> T:
    return op("where", op("gt", x, 0.0), x, op("mul", x, float(negative_slope)))


def _elu(op: Callable[..., T], x: T, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> T:
    below = op("sub", op("exp", _times(op, x, input_scale)), 1.0)
    return op("where", op("gt", x, 0.0), _times(op, x, scale), _times(op, below, alpha * scale))


def _celu(op: Callable[..., T], x: T, alpha: float = 1.0) -> T:
    return _elu(op, x, alpha, 1.0, 1 / alpha)


def _selu(op: Callable[..., T], x: T) -> T:
    return _elu(op, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _times(op: Callable[..., T], x: T, by: float) -> T:
    return x if by == 1 else op("mul", x, float(by))


def soft_plus(op: Callable[..., T], x: T) -> T:
    """Return log(1 + exp(x)), computed without overflow."""
    below = op("log", op("add", op("exp", op("neg", op("abs", x))), 1.0))
    return op("add", op("max", x, 0.0), below)


def _softplus(op: Callable[..., T], x: T, beta: float = 1.0, threshold: float = LINEAR) -> T:
    """Return log(1 + exp(x)); PyTorch has x above the threshold, which may be the same in float32."""
    scaled = _times(op, x, beta)
    found = _times(op, op("softplus", scaled), 1 / beta)
    return found if threshold >= LINEAR else op("where", op("gt", scaled, float(threshold)), x, found)


def _log_sigmoid(op: Callable[..., T], x: T) -> T:
    return op("neg", op("softplus", op("neg", x)))


def _logit(op: Callable[..., T], x: T, eps: float | None = None) -> T:
    if eps is not None:
        refuse("logit")
    return op("log", op("div", x, op("sub", 1.0, x)))


def _log2(op: Callable[..., T], x: T) -> T:
    return op("mul", op("log", x), 1 / math.log(2.0))


def _log10(op: Callable[..., T], x: T) -> T:
    return op("mul", op("log", x), 1 / math.log(10.0))


def _log_of_sum(op: Callable[..., T], x: T) -> T:
    return op("log", op("add", x, 1.0))


def _exp_less_one(op: Callable[..., T], x: T) -> T:
    return op("sub", op("exp", x), 1.0)


def _exp_of_two(op: Callable[..., T], x: T) -> T:
    return op("exp", op("mul", x, math.log(2.0)))


def _tangent(op: Callable[..., T], x: T) -> T:
    return op("div", op("sin", x), op("cos", x))


def _inverse_hyperbolic_sine(op: Callable[..., T], x: T) -> T:
    """Return log(x + sqrt(x * x + 1)), which is odd, computed without cancellation."""
    size = op("abs", x)
    above = op("log", op("add", size, op("sqrt", op("add", op("mul", size, size), 1.0))))
    return op("where", op("gt", x, 0.0), above, op("neg", above))


COMPOSITIONS = {
    "relu6": _relu6,
    "hardtanh": _bounded,
    "hardsigmoid": _hard_sigmoid,
    "hardswish": _hard_swish,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "celu": _celu,
    "selu": _selu,
    "log_sigmoid": _log_sigmoid,
    "softplus": _softplus,
    "logit": _logit,
    "log2": _log2,
    "log10": _log10,
    "log1p": _log_of_sum,
    "expm1": _exp_less_one,
    "exp2": _exp_of_two,
    "tan": _tangent,
    "asinh": _inverse_hyperbolic_sine,
    "arcsinh": _inverse_hyperbolic_sine,
}
"""By the name of the function in PyTorch."""
