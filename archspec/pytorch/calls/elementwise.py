"""Elementwise operations of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.forms.shape import expand
from archspec.ir.normal.nodes import Element
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.values import (
    Handler,
    Operand,
    UntranslatableError,
    array_of,
    as_number,
    cast_to_type,
    elementwise_handler,
    refuse,
    unary_function,
)


def function(name: str) -> Callable[..., Array]:
    """Return the handler of a function of one real that has no other form."""

    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        return n.each(types[0].shape, unary_function(name), x)

    return call


def _pair(name: str) -> Handler:
    """Return the handler of a function of two reals that has no other form."""

    def call(n: Arrays, types: Sequence[Type], a: Operand, b: Operand) -> Array:
        def of(e: Elements, *parts: Element) -> Element:
            return e.apply(name, [e.real(part) for part in parts], "real")

        return n.each(types[0].shape, of, array_of(n, a), array_of(n, b))

    return call


def _compare(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], a: Operand, b: Operand) -> Array:
        a, b = array_of(n, a), array_of(n, b)
        if {n.dtype(a), n.dtype(b)} != {"bool"}:
            a, b = as_number(n, a, Type((), "int")), as_number(n, b, Type((), "int"))
        return n.each(types[0].shape, function, a, b)

    return call


def _logic(function: forms.Each) -> Callable[..., Array]:
    def call(n: Arrays, types: Sequence[Type], *values: Operand) -> Array:
        given = [array_of(n, value) for value in values]
        if any(n.dtype(array) != "bool" for array in given):
            raise UntranslatableError("it has bitwise operations on integers")
        return n.each(types[0].shape, function, *given)

    return call


def _arithmetic(function: forms.Each, logic: forms.Each) -> Handler:
    """Return the handler of a function of numbers, which is another one of booleans."""

    def call(n: Arrays, types: Sequence[Type], a: Operand, b: Operand, **keywords: Scalar) -> Array:
        if types[0].dtype == "bool":
            return _logic(logic)(n, types, a, b)
        return elementwise_handler(function)(n, types, a, b, **keywords)

    return call


def _same(n: Arrays, types: Sequence[Type], x: Array, *rest: object, **keywords: object) -> Array:
    return cast_to_type(n, x, types[0])


def _dropout(n: Arrays, types: Sequence[Type], x: Array, rate: float, train: bool) -> Array:
    if train and rate:
        raise UntranslatableError("dropout is active: the module is in training mode")
    return x


def _random(n: Arrays, types: Sequence[Type], *rest: object, **keywords: object) -> Array:
    raise UntranslatableError("it draws random numbers, as dropout does in training")


def _where(n: Arrays, types: Sequence[Type], condition: Array, a: Operand, b: Operand) -> Array:
    return cast_to_type(n, n.each(types[0].shape, forms.choose, condition, array_of(n, a), array_of(n, b)), types[0])


def _masked_fill(n: Arrays, types: Sequence[Type], x: Array, mask: Array, value: Operand) -> Array:
    return _where(n, types, mask, value, x)


def _clamp(n: Arrays, types: Sequence[Type], x: Array, min: Operand | None = None, max: Operand | None = None) -> Array:
    for bound, function in ((min, forms.larger), (max, forms.smaller)):
        if bound is not None:
            x = n.each(types[0].shape, function, x, array_of(n, bound))
    return cast_to_type(n, x, types[0])


def _clamp_max(n: Arrays, types: Sequence[Type], x: Array, max: Operand) -> Array:
    return _clamp(n, types, x, None, max)


def _pow_scalar(n: Arrays, types: Sequence[Type], base: Operand, exponent: Operand) -> Array:
    return cast_to_type(n, n.each(types[0].shape, forms.power, array_of(n, base), array_of(n, exponent)), types[0])


def _rsub(n: Arrays, types: Sequence[Type], a: Operand, b: Operand, alpha: Scalar = 1) -> Array:
    return elementwise_handler(forms.subtract)(n, types, b, a, alpha=alpha)


def _div(n: Arrays, types: Sequence[Type], a: Operand, b: Operand, rounding_mode: str | None = None) -> Array:
    if rounding_mode == "trunc" and types[0].dtype == "int":
        return elementwise_handler(_truncated_quotient)(n, types, a, b)
    if rounding_mode == "trunc":
        quotient = elementwise_handler(forms.divide)(n, types, a, b)
        return cast_to_type(n, n.each(types[0].shape, forms.to_integer, quotient), types[0])
    return elementwise_handler(forms.divide if rounding_mode is None else forms.floor_divide)(n, types, a, b)


def _truncated_quotient(e: Elements, a: Element, b: Element) -> Element:
    """Return a quotient of integers, rounded towards zero."""
    down = forms.floor_divide(e, a, b)
    inexact = forms.unequal(e, forms.multiply(e, down, b), a)
    up = e.conjunction([inexact, forms.less(e, down, e.integer(0))])
    return forms.add(e, down, forms.to_integer(e, up))


def _sign(e: Elements, x: Element) -> Element:
    """Return 1, 0 or -1, as the difference of whether a number is above and below 0."""
    zero = e.integer(0)
    above, below = forms.greater(e, x, zero), forms.less(e, x, zero)
    return forms.subtract(e, forms.to_integer(e, above), forms.to_integer(e, below))


def _rounded(function: forms.Each) -> Handler:
    """Return the handler of a rounding that is the identity for integers."""

    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        return x if types[0].dtype == "int" else cast_to_type(n, n.each(types[0].shape, function, x), types[0])

    return call


def _up(e: Elements, x: Element) -> Element:
    return forms.negate(e, forms.floor(e, forms.negate(e, x)))


def _remainder_of_truncated(e: Elements, x: Element, by: Element) -> Element:
    """Return the remainder with the sign of `x`."""
    whole = e.real(forms.to_integer(e, forms.divide(e, x, by))) if e.dtype(x) == "real" or e.dtype(by) == "real" else (
        _truncated_quotient(e, x, by))  # fmt: skip
    return forms.subtract(e, x, forms.multiply(e, whole, by))


def _interpolated(n: Arrays, types: Sequence[Type], a: Array, b: Array, weight: Operand) -> Array:
    shape = types[0].shape
    part = n.each(shape, forms.multiply, n.each(shape, forms.subtract, b, a), array_of(n, weight))
    return n.each(shape, forms.add, a, part)


def _added(function: forms.Each) -> Handler:
    """Return the handler of `x + value * function(a, b)`."""

    def call(n: Arrays, types: Sequence[Type], x: Array, a: Operand, b: Operand, *, value: Scalar = 1) -> Array:
        part = n.each(types[0].shape, function, array_of(n, a), array_of(n, b))
        return n.each(types[0].shape, forms.add, x, n.each(types[0].shape, forms.multiply, part, array_of(n, value)))

    return call


def _exclusive(e: Elements, a: Element, b: Element) -> Element:
    return e.negation(forms.equal(e, a, b))


def _is_not_a_number(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    """Return whether elements are not numbers: those of integers never are."""
    if n.dtype(x) != "real":
        return n.array(x.shape, n.elements.false)

    def of(e: Elements, part: Element) -> Element:
        return e.apply("isnan", (part,), "bool")

    return n.each(x.shape, of, x)


def _is_infinite(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    if n.dtype(x) != "real":
        return n.array(x.shape, n.elements.false)

    def of(e: Elements, part: Element) -> Element:
        return forms.equal(e, e.apply("abs", (part,), "real"), e.number(math.inf))

    return n.each(x.shape, of, x)


def _is_finite(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    either = n.each(x.shape, forms.either, _is_not_a_number(n, types, x), _is_infinite(n, types, x))
    return n.array(x.shape, n.elements.negation(either.element))


def _round(n: Arrays, types: Sequence[Type], x: Array, decimals: int = 0) -> Array:
    if decimals:
        refuse("round")
    return x if n.dtype(x) == "int" else function("round")(n, types, x)


def _fill(n: Arrays, types: Sequence[Type], x: Array, value: Operand) -> Array:
    """Return another value in the shape of a tensor."""
    return cast_to_type(n, expand(n, array_of(n, value), types[0].shape), types[0])


def _copy(n: Arrays, types: Sequence[Type], x: Array, source: Array, *rest: object) -> Array:
    return _fill(n, types, x, source)


def _power(exponent: float) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        return _pow_scalar(n, types, x, exponent)

    return call


NAMES: dict[Handler, str] = {
    _same: "clone contiguous alias detach to _to_copy lift_fresh lift_fresh_copy type_as positive alias_copy",
    _fill: "fill",
    _copy: "copy",
    elementwise_handler(_sign): "sign sgn",
    elementwise_handler(_remainder_of_truncated): "fmod",
    _rounded(_up): "ceil",
    _rounded(forms.to_integer): "trunc fix",
    _is_finite: "isfinite",
    _round: "round",
    _interpolated: "lerp",
    _added(forms.multiply): "addcmul",
    _added(forms.divide): "addcdiv",
    _is_not_a_number: "isnan",
    _is_infinite: "isinf",
    _dropout: "dropout feature_dropout alpha_dropout feature_alpha_dropout",
    _random: "native_dropout bernoulli rand rand_like randn randn_like randint randint_like randperm normal uniform "
    "exponential multinomial rrelu rrelu_with_noise",
    _where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clamp_min clip",
    _clamp_max: "clamp_max",
    _pow_scalar: "pow",
    _rsub: "rsub",
    _div: "div true_divide divide",
    _arithmetic(forms.add, forms.either): "add",
    elementwise_handler(forms.subtract): "sub",
    _arithmetic(forms.multiply, forms.both): "mul",
    elementwise_handler(forms.negate): "neg",
    elementwise_handler(forms.absolute): "abs",
    _rounded(forms.floor): "floor",
    elementwise_handler(forms.floor_divide): "floor_divide",
    elementwise_handler(forms.remainder): "remainder",
    _arithmetic(forms.smaller, forms.both): "minimum",
    _arithmetic(forms.larger, forms.either): "maximum",
    elementwise_handler(forms.square_root): "sqrt",
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
    _logic(_exclusive): "logical_xor bitwise_xor __xor__",
    _logic(forms.opposite): "logical_not bitwise_not",
    **{function(name): name for name in ("exp", "log", "sin", "cos", "tanh", "erf", "atan", "asin", "acos")},
    function("sigmoid"): "sigmoid special_expit",
    function("erf"): "special_erf",
    _pair("atan2"): "atan2",
}
"""The names of the operations that each function is for."""
