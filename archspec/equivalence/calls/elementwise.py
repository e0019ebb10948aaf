"""Elementwise operations of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from archspec.equivalence.calls.values import Handler, Untranslatable, array_of, as_number, each, refuse, typed
from archspec.ir import Type
from archspec.normal.arrays import Array, Arrays
from archspec.normal.elements import Elements
from archspec.normal.table import Element
from archspec.ops.forms import elementwise as forms


def _function(name: str) -> Callable[..., Array]:
    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        def of(e: Elements, part: Element) -> Element:
            return e.apply(name, (e.real(part),), "real")

        return n.each(types[0].shape, of, x)

    return call


def _compare(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], a: Any, b: Any) -> Array:
        a, b = array_of(n, a), array_of(n, b)
        if {n.dtype(a), n.dtype(b)} != {"bool"}:
            a, b = as_number(n, a, Type((), "int")), as_number(n, b, Type((), "int"))
        return n.each(types[0].shape, function, a, b)

    return call


def _logic(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *values: Any) -> Array:
        given = [array_of(n, value) for value in values]
        if any(n.dtype(array) != "bool" for array in given):
            raise Untranslatable("it has bitwise operations on integers")
        return n.each(types[0].shape, function, *given)

    return call


def _same(n: Arrays, types: Sequence[Type], x: Array, *rest: Any, **keywords: Any) -> Array:
    return typed(n, x, types[0])


def _dropout(n: Arrays, types: Sequence[Type], x: Array, rate: float, train: bool) -> Array:
    if train and rate:
        raise Untranslatable("it drops elements in evaluation too")
    return x


def _where(n: Arrays, types: Sequence[Type], condition: Array, a: Any, b: Any) -> Array:
    return typed(n, n.each(types[0].shape, forms.choose, condition, array_of(n, a), array_of(n, b)), types[0])


def _masked_fill(n: Arrays, types: Sequence[Type], x: Array, mask: Array, value: Any) -> Array:
    return _where(n, types, mask, value, x)


def _clamp(n: Arrays, types: Sequence[Type], x: Array, min: Any = None, max: Any = None) -> Array:
    for bound, function in ((min, forms.larger), (max, forms.smaller)):
        if bound is not None:
            x = n.each(types[0].shape, function, x, array_of(n, bound))
    return typed(n, x, types[0])


def _pow_scalar(n: Arrays, types: Sequence[Type], base: Any, exponent: Any) -> Array:
    return typed(n, n.each(types[0].shape, forms.power, array_of(n, base), array_of(n, exponent)), types[0])


def _rsub(n: Arrays, types: Sequence[Type], a: Any, b: Any, alpha: Any = 1) -> Array:
    return each(forms.subtract)(n, types, b, a, alpha=alpha)


def _div(n: Arrays, types: Sequence[Type], a: Any, b: Any, rounding_mode: str | None = None) -> Array:
    if rounding_mode not in (None, "floor"):
        refuse("div")
    return each(forms.divide if rounding_mode is None else forms.floor_divide)(n, types, a, b)


def _power(exponent: float) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        return _pow_scalar(n, types, x, exponent)

    return call


def _relu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.larger, x, typed(n, array_of(n, 0), types[0]))


def _silu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.multiply, x, _function("sigmoid")(n, types, x))


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
    if beta != 1.0 or threshold < 20.0:
        refuse("softplus")

    def of(e: Elements, part: Element) -> Element:
        size = e.apply("abs", (part,), "real")
        exponential = e.apply("exp", (e.combination([(-1.0, size)]),), "real")
        logarithm = e.apply("log", (e.combination([(1.0, exponential)], 1.0),), "real")
        return e.combination([(1.0, e.extreme("max", part, e.number(0.0))), (1.0, logarithm)])

    return n.each(x.shape, of, x)


NAMES: dict[Handler, str] = {
    _same: "clone contiguous alias detach to _to_copy lift_fresh lift_fresh_copy type_as",
    _dropout: "dropout",
    _where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clamp_min",
    _pow_scalar: "pow",
    _rsub: "rsub",
    _div: "div",
    _relu: "relu",
    _silu: "silu",
    _gelu: "gelu",
    _softplus: "softplus",
    each(forms.add): "add",
    each(forms.subtract): "sub",
    each(forms.multiply): "mul",
    each(forms.negate): "neg",
    each(forms.absolute): "abs",
    each(forms.floor): "floor",
    each(forms.floor_divide): "floor_divide",
    each(forms.remainder): "remainder",
    each(forms.smaller): "minimum",
    each(forms.larger): "maximum",
    each(forms.square_root): "sqrt",
    _power(-0.5): "rsqrt",
    _power(-1.0): "reciprocal",
    _power(2.0): "square",
    _compare(forms.equal): "eq",
    _compare(forms.unequal): "ne",
    _compare(forms.less): "lt",
    _compare(forms.less_or_equal): "le",
    _compare(forms.greater): "gt",
    _compare(forms.greater_or_equal): "ge",
    _logic(forms.both): "logical_and bitwise_and __and__",
    _logic(forms.either): "logical_or bitwise_or __or__",
    _logic(forms.opposite): "logical_not bitwise_not",
    **{_function(name): name for name in ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf")},
}
"""The names of the operations that each function is for."""
