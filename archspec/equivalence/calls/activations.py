"""Activations of PyTorch, and functions that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from archspec.equivalence.calls.elementwise import function
from archspec.equivalence.calls.values import Handler, array_of, refuse, typed
from archspec.ir import Type
from archspec.normal.arrays import Array, Arrays
from archspec.normal.elements import Elements
from archspec.normal.nodes import Element
from archspec.ops.forms import elementwise as forms
from archspec.ops.forms.shape import cut


def _of_parts(function: Callable[..., Element]) -> Handler:
    """Return the handler of a function of reals; further arguments are numbers."""

    def call(n: Arrays, types: Sequence[Type], x: Array, *numbers: float | None, **named: float | None) -> Array:
        def of(e: Elements, part: Element) -> Element:
            return function(e, e.real(part), *numbers, **named)

        return n.each(types[0].shape, of, x)

    return call


def _bounded(e: Elements, x: Element, low: float, high: float) -> Element:
    return e.extreme("min", e.extreme("max", x, e.number(low)), e.number(high))


def _relu6(e: Elements, x: Element) -> Element:
    return _bounded(e, x, 0.0, 6.0)


def _hard_tanh(e: Elements, x: Element, min_val: float = -1.0, max_val: float = 1.0) -> Element:
    return _bounded(e, x, float(min_val), float(max_val))


def _hard_sigmoid(e: Elements, x: Element) -> Element:
    return e.combination([(1 / 6, _relu6(e, e.combination([(1.0, x)], 3.0)))])


def _hard_swish(e: Elements, x: Element) -> Element:
    return e.product([(x, 1.0), (_hard_sigmoid(e, x), 1.0)])


def _leaky_relu(e: Elements, x: Element, negative_slope: float = 0.01) -> Element:
    return e.where(e.is_positive(x), x, e.combination([(negative_slope, x)]))


def _elu(e: Elements, x: Element, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Element:
    below = e.apply("exp", (e.combination([(input_scale, x)]),), "real")
    return e.where(
        e.is_positive(x), e.combination([(scale, x)]), e.combination([(alpha * scale, below)], -alpha * scale)
    )


def _celu(e: Elements, x: Element, alpha: float = 1.0) -> Element:
    return _elu(e, x, alpha, 1.0, 1 / alpha)


def _selu(e: Elements, x: Element) -> Element:
    return _elu(e, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _log_sigmoid(e: Elements, x: Element) -> Element:
    return e.combination([(-1.0, _soft_plus(e, e.combination([(-1.0, x)])))])


def _soft_plus(e: Elements, x: Element) -> Element:
    """Return log(1 + exp(x)), computed without overflow."""
    size = e.apply("abs", (x,), "real")
    exponential = e.apply("exp", (e.combination([(-1.0, size)]),), "real")
    logarithm = e.apply("log", (e.combination([(1.0, exponential)], 1.0),), "real")
    return e.combination([(1.0, e.extreme("max", x, e.number(0.0))), (1.0, logarithm)])


def _logit(e: Elements, x: Element, eps: float | None = None) -> Element:
    if eps is not None:
        refuse("logit")
    odds = e.product([(x, 1.0), (e.combination([(-1.0, x)], 1.0), -1.0)])
    return e.apply("log", (odds,), "real")


def _mish(e: Elements, x: Element) -> Element:
    return e.product([(x, 1.0), (e.apply("tanh", (_soft_plus(e, x),), "real"), 1.0)])


def _logarithm(base: float) -> Callable[[Elements, Element], Element]:
    def of(e: Elements, x: Element) -> Element:
        return e.combination([(1 / math.log(base), e.apply("log", (x,), "real"))])

    return of


def _log_of_sum(e: Elements, x: Element) -> Element:
    return e.apply("log", (e.combination([(1.0, x)], 1.0),), "real")


def _exp_less_one(e: Elements, x: Element) -> Element:
    return e.combination([(1.0, e.apply("exp", (x,), "real"))], -1.0)


def _exp_of_two(e: Elements, x: Element) -> Element:
    return e.apply("exp", (e.combination([(math.log(2.0), x)]),), "real")


def _tangent(e: Elements, x: Element) -> Element:
    return e.product([(e.apply("sin", (x,), "real"), 1.0), (e.apply("cos", (x,), "real"), -1.0)])


def _inverse_hyperbolic_sine(e: Elements, x: Element) -> Element:
    """Return log(x + sqrt(x * x + 1)), which is odd, computed without cancellation."""
    size = e.apply("abs", (x,), "real")
    root = forms.square_root(e, e.combination([(1.0, e.product([(size, 2.0)]))], 1.0))
    above = e.apply("log", (e.combination([(1.0, size), (1.0, root)]),), "real")
    return e.where(e.is_positive(x), above, e.combination([(-1.0, above)]))


def _gated(n: Arrays, types: Sequence[Type], x: Array, dim: int = -1) -> Array:
    half = types[0].shape[dim]
    value, gate = cut(n, x, dim, 0, half, 1), cut(n, x, dim, half, half + half, 1)
    return n.each(types[0].shape, forms.multiply, value, function("sigmoid")(n, types, gate))


def _prelu(n: Arrays, types: Sequence[Type], x: Array, weight: Array) -> Array:
    size = weight.shape[0] if weight.shape else 1
    scale = n.reshape(weight, (size, *[1] * (len(x.shape) - 2)) if size != 1 else ())

    def of(e: Elements, part: Element, by: Element) -> Element:
        return e.where(e.is_positive(part), part, forms.multiply(e, part, by))

    return n.each(x.shape, of, x, scale)


def _threshold(n: Arrays, types: Sequence[Type], x: Array, threshold: float, value: float) -> Array:
    def of(e: Elements, part: Element) -> Element:
        least, otherwise = [forms.constant(e, number, n.dtype(x)) for number in (threshold, value)]
        return e.where(forms.greater(e, part, least), part, otherwise)

    return n.each(x.shape, of, x)


def _relu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.larger, x, typed(n, array_of(n, 0), types[0]))


def _silu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.multiply, x, function("sigmoid")(n, types, x))


def _gelu(n: Arrays, types: Sequence[Type], x: Array, approximate: str = "none") -> Array:
    def of(e: Elements, part: Element) -> Element:
        if approximate == "tanh":
            cubic = e.product([(part, 3.0)])
            inner = e.combination([(1.0, part), (0.044715, cubic)])
            turned = e.apply("tanh", (e.combination([(math.sqrt(2 / math.pi), inner)]),), "real")
        else:
            turned = e.apply("erf", (e.combination([(1 / math.sqrt(2), part)]),), "real")
        return e.product([(e.number(0.5), 1.0), (part, 1.0), (e.combination([(1.0, turned)], 1.0), 1.0)])

    return n.each(x.shape, of, x)


def _softplus(n: Arrays, types: Sequence[Type], x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Return log(1 + exp(x)); PyTorch has x above the threshold, which is the same in float32."""
    if threshold < 20.0:
        refuse("softplus")

    def of(e: Elements, part: Element) -> Element:
        return e.combination([(1 / beta, _soft_plus(e, e.combination([(beta, part)])))])

    return n.each(x.shape, of, x)


NAMES: dict[Handler, str] = {
    _of_parts(_relu6): "relu6",
    _of_parts(_hard_tanh): "hardtanh",
    _of_parts(_hard_sigmoid): "hardsigmoid",
    _of_parts(_hard_swish): "hardswish",
    _of_parts(_leaky_relu): "leaky_relu",
    _of_parts(_elu): "elu",
    _of_parts(_selu): "selu",
    _of_parts(_celu): "celu",
    _of_parts(_logit): "logit",
    _gated: "glu",
    _of_parts(_mish): "mish",
    _of_parts(_log_sigmoid): "log_sigmoid",
    _of_parts(_log_of_sum): "log1p",
    _of_parts(_exp_less_one): "expm1",
    _of_parts(_exp_of_two): "exp2",
    _of_parts(_tangent): "tan",
    _of_parts(_inverse_hyperbolic_sine): "asinh arcsinh",
    _of_parts(_logarithm(2.0)): "log2",
    _of_parts(_logarithm(10.0)): "log10",
    _prelu: "prelu",
    _threshold: "threshold",
    _relu: "relu",
    _silu: "silu",
    _gelu: "gelu",
    _softplus: "softplus",
}
"""The names of the operations that each function is for."""
