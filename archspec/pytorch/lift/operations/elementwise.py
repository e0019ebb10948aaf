"""Elementwise operations of PyTorch as values."""

from __future__ import annotations

from archspec.ir.ops import OPS
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.values import UntranslatableError
from archspec.pytorch.lift.idioms.experts import merge_expert_bias
from archspec.pytorch.lift.idioms.rotary import rotation
from archspec.pytorch.lift.operations.handlers import Handler, Results, Types, convert, number_of
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Operand, Value

LOGIC = {"add": "or", "mul": "and", "min": "and", "max": "or"}
"""What functions of numbers are for booleans."""


def _arithmetic(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Operand, y: Operand, alpha: Scalar = 1) -> Value:
        if types[0].dtype == "bool" and name in LOGIC:
            return b.op(LOGIC[name], x, y)
        if alpha != 1:
            y = _product(b, y, alpha)
        known = (rotation(b, x, y) or merge_expert_bias(b, x, y)) if name == "add" else None
        if known is not None:
            return known
        return convert(b, b.op(name, number_of(b, x), number_of(b, y)), types[0].dtype)

    return call


def _product(b: Builder, x: Operand, by: Scalar) -> Operand:
    if isinstance(x, Value):
        return b.op("mul", number_of(b, x), by)
    multiply = OPS["mul"].scalar
    assert multiply is not None
    return multiply(x, by)


def _unary(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Value:
        return convert(b, b.op(name, number_of(b, x)), types[0].dtype)

    return call


def _compare(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Operand, y: Operand) -> Value:
        kinds = {item.dtype if isinstance(item, Value) else type(item).__name__ for item in (x, y)}
        return b.op(name, x, y) if kinds == {"bool"} else b.op(name, number_of(b, x), number_of(b, y))

    return call


def _logic(name: str) -> Handler:
    def call(b: Builder, types: Types, *args: Operand) -> Value:
        return b.op(name, *[convert(b, arg, "bool") for arg in args])

    return call


def _function(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Value:
        return b.activation(name, b.written(x))

    return call


def _relu(b: Builder, types: Types, x: Value) -> Results:
    return b.op("max", x, 0) if x.dtype == "int" else _function("relu")(b, types, x)


def _same(b: Builder, types: Types, x: Value, *rest: object, **keywords: object) -> Value:
    return convert(b, x, types[0].dtype)


def _div(b: Builder, types: Types, x: Operand, y: Operand, rounding_mode: str | None = None) -> Results:
    if rounding_mode not in (None, "floor"):
        raise UntranslatableError("it uses division that truncates toward zero")
    return _arithmetic("div" if rounding_mode is None else "floordiv")(b, types, x, y)


def _rsub(b: Builder, types: Types, x: Operand, y: Operand, alpha: Scalar = 1) -> Results:
    return _arithmetic("sub")(b, types, y, x, alpha)


def _root(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, b.op("sqrt", x))


def _reciprocal(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, x)


def _square(b: Builder, types: Types, x: Value) -> Results:
    return _arithmetic("pow")(b, types, x, 2)


def _gelu(b: Builder, types: Types, x: Value, approximate: str = "none") -> Results:
    return _function("gelu_tanh" if approximate == "tanh" else "gelu")(b, types, x)


def _ceil(b: Builder, types: Types, x: Value) -> Value:
    return convert(b, b.op("neg", b.op("floor", b.op("neg", x))), types[0].dtype)


def _sign(b: Builder, types: Types, x: Value) -> Value:
    above, below = [b.op("int", b.op(name, x, 0 if x.dtype == "int" else 0.0)) for name in ("gt", "lt")]
    return convert(b, b.op("sub", above, below), types[0].dtype)


def _where(b: Builder, types: Types, test: Value, x: Operand, y: Operand) -> Value:
    view = b.unwritten(test)
    root, _ = b.layout(view)
    if root.op == "not":
        test, x, y = b.laid_out(b.unwritten(root.operands[0]), view, root), y, x
    return convert(b, b.op("where", test, x, y), types[0].dtype)


def _masked_fill(b: Builder, types: Types, x: Value, mask: Value, value: Operand) -> Value:
    return _where(b, types, mask, value, x)


def _clamp(b: Builder, types: Types, x: Value, min: Operand | None = None, max: Operand | None = None) -> Value:
    for name, bound in (("max", min), ("min", max)):
        if bound is not None:
            x = b.op(name, x, bound)
    return convert(b, x, types[0].dtype)


def _at_most(b: Builder, types: Types, x: Value, max: Operand) -> Value:
    return _clamp(b, types, x, max=max)


NAMES: dict[Handler, str] = {
    **{_unary(name): name for name in ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh")},
    _unary("sigmoid"): "sigmoid special_expit",
    _unary("erf"): "erf special_erf",
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
            "min": "minimum",
            "max": "maximum",
        }.items()
    },
    **{_compare(name): name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    _logic("and"): "logical_and bitwise_and __and__",
    _logic("or"): "logical_or bitwise_or __or__",
    _logic("not"): "logical_not bitwise_not",
    **{_function(name): name for name in ("silu", "mish")},
    _relu: "relu",
    _gelu: "gelu",
    _ceil: "ceil",
    _sign: "sign sgn",
    _same: "contiguous clone alias detach lift_fresh_copy lift_fresh to _to_copy type_as float positive alias_copy "
    "dropout feature_dropout",
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
