"""Elementwise operations of PyTorch as values."""

from __future__ import annotations

from typing import Any

from archspec.equivalence.calls.values import Untranslatable
from archspec.lifting.builder import Builder
from archspec.lifting.operations.handlers import Handler, Types, converted, number_of
from archspec.lifting.rotary import rotation
from archspec.lifting.values import Value

LOGIC = {"add": "or", "mul": "and", "min": "and", "max": "or"}
"""What functions of numbers are for booleans."""


def _arithmetic(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Any, y: Any, alpha: Any = 1) -> Any:
        if types[0].dtype == "bool" and name in LOGIC:
            return b.op(LOGIC[name], x, y)
        if alpha != 1:
            y = b.op("mul", number_of(b, y), alpha) if isinstance(y, Value) else y * alpha
        rotated = rotation(b, x, y) if name == "add" else None
        if rotated is not None:
            return rotated
        return converted(b, b.op(name, number_of(b, x), number_of(b, y)), types[0].dtype)

    return call


def _unary(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Any:
        return converted(b, b.op(name, number_of(b, x)), types[0].dtype)

    return call


def _compare(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Any, y: Any) -> Value:
        kinds = {item.dtype if isinstance(item, Value) else type(item).__name__ for item in (x, y)}
        return b.op(name, x, y) if kinds == {"bool"} else b.op(name, number_of(b, x), number_of(b, y))

    return call


def _logic(name: str) -> Handler:
    def call(b: Builder, types: Types, *args: Any) -> Value:
        if types[0].dtype != "bool":
            raise Untranslatable("it has bitwise operations on integers")
        return b.op(name, *[converted(b, arg, "bool") for arg in args])

    return call


def _function(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Value:
        return b.activation(name, b.written(x))

    return call


def _same(b: Builder, types: Types, x: Value, *rest: Any, **keywords: Any) -> Any:
    return converted(b, x, types[0].dtype)


def _dropout(b: Builder, types: Types, x: Value, rate: float, train: bool) -> Value:
    if train and rate:
        raise Untranslatable("it drops elements in evaluation too")
    return x


def _div(b: Builder, types: Types, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode not in (None, "floor"):
        raise Untranslatable("it divides and rounds towards zero")
    return _arithmetic("div" if rounding_mode is None else "floordiv")(b, types, x, y)


def _rsub(b: Builder, types: Types, x: Any, y: Any, alpha: Any = 1) -> Any:
    return _arithmetic("sub")(b, types, y, x, alpha)


def _root(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, b.op("sqrt", x))


def _reciprocal(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, x)


def _square(b: Builder, types: Types, x: Value) -> Any:
    return _arithmetic("pow")(b, types, x, 2)


def _gelu(b: Builder, types: Types, x: Value, approximate: str = "none") -> Value:
    return _function("gelu_tanh" if approximate == "tanh" else "gelu")(b, types, x)


def _ceil(b: Builder, types: Types, x: Value) -> Any:
    return converted(b, b.op("neg", b.op("floor", b.op("neg", x))), types[0].dtype)


def _sign(b: Builder, types: Types, x: Value) -> Any:
    above, below = [b.op("int", b.op(name, x, 0 if x.dtype == "int" else 0.0)) for name in ("gt", "lt")]
    return converted(b, b.op("sub", above, below), types[0].dtype)


def _softplus(b: Builder, types: Types, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    if beta != 1:
        raise Untranslatable("it has a softplus with a factor")
    return b.op("log", b.op("add", 1.0, b.op("exp", x)))


def _where(b: Builder, types: Types, test: Value, x: Any, y: Any) -> Any:
    return converted(b, b.op("where", test, x, y), types[0].dtype)


def _masked_fill(b: Builder, types: Types, x: Value, mask: Value, value: Any) -> Any:
    return _where(b, types, mask, value, x)


def _clamp(b: Builder, types: Types, x: Value, min: Any = None, max: Any = None) -> Any:
    for name, bound in (("max", min), ("min", max)):
        if bound is not None:
            x = b.op(name, x, bound)
    return converted(b, x, types[0].dtype)


def _at_most(b: Builder, types: Types, x: Value, max: Any) -> Any:
    return _clamp(b, types, x, max=max)


NAMES: dict[Handler, str] = {
    **{_unary(name): name for name in ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf")},
    _unary("floor"): "floor",
    **{
        _arithmetic(name): called
        for name, called in {
            "add": "add",
            "sub": "sub subtract",
            "mul": "mul multiply",
            "pow": "pow",
            "floordiv": "floor_divide",
            "mod": "remainder",
            "min": "minimum min",
            "max": "maximum max",
        }.items()
    },
    **{_compare(name): name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    _logic("and"): "logical_and bitwise_and __and__",
    _logic("or"): "logical_or bitwise_or __or__",
    _logic("not"): "logical_not bitwise_not",
    **{_function(name): name for name in ("relu", "silu", "mish")},
    _gelu: "gelu",
    _ceil: "ceil",
    _sign: "sign sgn",
    _softplus: "softplus",
    _same: "contiguous clone alias detach lift_fresh_copy lift_fresh to _to_copy type_as float",
    _dropout: "dropout feature_dropout",
    _div: "div divide true_divide",
    _rsub: "rsub",
    _root: "rsqrt",
    _reciprocal: "reciprocal",
    _square: "square",
    _where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clip clamp_min",
    _at_most: "clamp_max",
}
"""The names of the operations that each function is for."""
