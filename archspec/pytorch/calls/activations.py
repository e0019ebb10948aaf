"""Activations of PyTorch, and functions that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.forms import elementwise_form
from archspec.ir.normal.forms.shape import cut
from archspec.ir.normal.nodes import Element
from archspec.ir.ops import OPS
from archspec.pytorch.calls.compositions import COMPOSITIONS, soft_plus
from archspec.pytorch.calls.elementwise import function
from archspec.pytorch.calls.values import Handler, array_of, cast_to_type


def _composed(function: Callable[..., Element]) -> Handler:
    """Return the handler of a composition of operations on one real; further arguments are numbers."""

    def call(n: Arrays, types: Sequence[Type], x: Array, *numbers: float | None, **named: float | None) -> Array:
        def of(e: Elements, part: Element) -> Element:
            return function(partial(_operation, e), e.real(part), *numbers, **named)

        return n.each(types[0].shape, of, x)

    return call


def _operation(e: Elements, name: str, *operands: Element | float) -> Element:
    """Return the element of the result of an elementwise operation on reals, or of `softplus`."""
    parts = [e.number(part) if isinstance(part, float) else part for part in operands]
    if name == "softplus":
        return soft_plus(partial(_operation, e), *parts)
    op = OPS[name]
    form = elementwise_form(op)
    return form(e, *parts) if form is not None else e.apply(name, parts, "real", op.commutative)


def _mish(op: Callable[..., Element], x: Element) -> Element:
    return op("mul", x, op("tanh", soft_plus(op, x)))


def _gated(n: Arrays, types: Sequence[Type], x: Array, dim: int = -1) -> Array:
    half = types[0].shape[dim]
    value, gate = cut(n, x, dim, 0, half), cut(n, x, dim, half, None)
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


def relu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    """Return the larger of each element and 0."""
    return n.each(x.shape, forms.larger, x, cast_to_type(n, array_of(n, 0), types[0]))


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


NAMES: dict[Handler, str] = {
    **{_composed(function): name for name, function in COMPOSITIONS.items()},
    _composed(_mish): "mish",
    _gated: "glu",
    _prelu: "prelu",
    _threshold: "threshold",
    relu: "relu",
    _silu: "silu",
    _gelu: "gelu",
}
"""The names of the operations that each function is for."""
