"""Elementwise operations of PyTorch, and functions that are made of them."""

from __future__ import annotations

import math
from collections.abc import Callable

from archspec.ir.normal.elements import Elements
from archspec.ir.normal.nodes import Element
from archspec.ir.ops import OPS
from archspec.ir.ops.record import Scalar
from archspec.pytorch.calls.rows import Results, Row, Types, constant, convert, filled, number_of
from archspec.pytorch.values.arguments import UntranslatableError, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Value

LOGIC = {"add": "or", "mul": "and", "min": "and", "max": "or"}
"""What functions of numbers are for booleans."""


def _arithmetic(name: str) -> Row:
    def call(b: Builder, types: Types, x: Operand, y: Operand, alpha: Scalar = 1) -> Value:
        if types[0].dtype == "bool" and name in LOGIC:
            return b.op(LOGIC[name], x, y if alpha else False)
        if alpha != 1:
            y = _product(b, y, alpha)
        return convert(b, b.op(name, number_of(b, x), number_of(b, y)), types[0].dtype)

    return call


def _product(b: Builder, x: Operand, by: Scalar) -> Operand:
    if isinstance(x, Value):
        return b.op("mul", number_of(b, x), by)
    multiply = OPS["mul"].scalar
    assert multiply is not None
    return multiply(x, by)


def _unary(name: str) -> Row:
    def call(b: Builder, types: Types, x: Value) -> Value:
        return b.op(name, convert(b, x, "real") if types[0].dtype == "real" else number_of(b, x))

    return call


def _unknown(name: str, dtype: str = "real") -> Row:
    """Return the row of a function of reals that the language does not have, and that has no other form."""

    def call(b: Builder, types: Types, *args: Operand) -> Value:
        def of(e: Elements, *parts: Element) -> Element:
            return e.apply(name, [e.real(part) for part in parts], dtype)

        return b.form(name, b.arrays.each(types[0].shape, of, *map(b.array, args)))

    return call


def _compare(name: str) -> Row:
    def call(b: Builder, types: Types, x: Operand, y: Operand) -> Value:
        kinds = {item.dtype if isinstance(item, Value) else type(item).__name__ for item in (x, y)}
        is_equality = kinds == {"bool"} and name in ("eq", "ne")
        return b.op(name, x, y) if is_equality else b.op(name, number_of(b, x), number_of(b, y))

    return call


def _logic(name: str) -> Row:
    def call(b: Builder, types: Types, *args: Operand) -> Value:
        return b.op(name, *[convert(b, arg, "bool") for arg in args])

    return call


def _bitwise(row: Row) -> Row:
    def call(b: Builder, types: Types, *args: Operand) -> Results:
        if types[0].dtype != "bool":
            raise UntranslatableError("it has bitwise operations on integers")
        return row(b, types, *args)

    return call


def _function(name: str) -> Row:
    """Return the row of a function of the standard library of one real."""

    def call(b: Builder, types: Types, x: Value) -> Value:
        return b.activation(name, b.written(x))

    return call


def _relu(b: Builder, types: Types, x: Value) -> Results:
    return b.op("max", x, 0) if x.dtype == "int" else _function("relu")(b, types, x)


def _gelu(b: Builder, types: Types, x: Value, approximate: str = "none") -> Results:
    return _function("gelu_tanh" if approximate == "tanh" else "gelu")(b, types, x)


def _same(b: Builder, types: Types, x: Value, *rest: object, **keywords: object) -> Value:
    return convert(b, x, types[0].dtype)


def _detach(b: Builder, types: Types, x: Value) -> Value:
    return b.op("detach", x) if x.dtype == "real" and _has_gradient(x) else x


def _has_gradient(x: Value) -> bool:
    """Whether a value is computed from reals of inputs or from tensors of the module."""
    left, seen = [x], set[Value]()
    while left:
        value = left.pop()
        if value.dtype == "real" and (value.is_module or value.op in ("input", "tensor")):
            return True
        left += [operand for operand in value.operands if operand not in seen]
        seen.update(value.operands)
    return False


def _dropout(b: Builder, types: Types, x: Value, rate: float, train: bool) -> Value:
    if train and rate:
        raise UntranslatableError("dropout is active: the module is in training mode")
    return x


def _random(b: Builder, types: Types, *rest: object, **keywords: object) -> Value:
    raise UntranslatableError("it draws random numbers, as dropout does in training")


def _div(b: Builder, types: Types, x: Operand, y: Operand, rounding_mode: str | None = None) -> Results:
    if rounding_mode == "trunc":
        return _truncated_quotient(b, types, number_of(b, x), number_of(b, y))
    return _arithmetic("div" if rounding_mode is None else "floordiv")(b, types, x, y)


def _truncated_quotient(b: Builder, types: Types, x: Operand, y: Operand) -> Value:
    """Return a quotient, rounded towards zero."""
    if types[0].dtype == "real":
        return b.op("real", b.op("int", b.op("div", x, y)))
    down = b.op("floordiv", x, y)
    is_below = b.op("and", b.op("ne", b.op("mul", down, y), x), b.op("lt", down, 0))
    return b.op("add", down, b.op("int", is_below))


def _remainder(b: Builder, types: Types, x: Operand, y: Operand) -> Value:
    """Return the remainder with the sign of `x`."""
    return b.op("sub", x, b.op("mul", _truncated_quotient(b, types, x, y), y))


def _rsub(b: Builder, types: Types, x: Operand, y: Operand, alpha: Scalar = 1) -> Results:
    return _arithmetic("sub")(b, types, y, x, alpha)


def _root(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, b.op("sqrt", convert(b, x, "real")))


def _reciprocal(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, convert(b, x, "real"))


def _square(b: Builder, types: Types, x: Value) -> Results:
    return _arithmetic("pow")(b, types, x, 2)


def _floor(b: Builder, types: Types, x: Value) -> Value:
    return x if x.dtype == "int" else convert(b, b.op("floor", x), "real")


def _ceil(b: Builder, types: Types, x: Value) -> Value:
    return x if x.dtype == "int" else convert(b, b.op("neg", b.op("floor", b.op("neg", x))), "real")


def _truncated(b: Builder, types: Types, x: Value) -> Value:
    return x if x.dtype == "int" else b.op("real", b.op("int", x))


def _round(b: Builder, types: Types, x: Value, decimals: int = 0) -> Results:
    if decimals:
        refuse("round")
    return x if x.dtype == "int" else _unknown("round")(b, types, x)


def _sign(b: Builder, types: Types, x: Value) -> Value:
    above, below = [b.op("int", b.op(name, x, 0 if x.dtype == "int" else 0.0)) for name in ("gt", "lt")]
    return convert(b, b.op("sub", above, below), types[0].dtype)


def _is_not_a_number(b: Builder, types: Types, x: Value) -> Results:
    """Return whether elements are not numbers, which integers never are."""
    return _unknown("isnan", "bool")(b, types, x) if x.dtype == "real" else filled(b, types, False)


def _is_infinite(b: Builder, types: Types, x: Value) -> Value:
    return b.op("eq", b.op("abs", x), math.inf) if x.dtype == "real" else filled(b, types, False)


def _is_finite(b: Builder, types: Types, x: Value) -> Value:
    return b.op("not", b.op("or", _is_not_a_number(b, types, x), _is_infinite(b, types, x)))


def where(b: Builder, types: Types, test: Value, x: Operand, y: Operand) -> Value:
    """Return one of two operands in each place."""
    dtype = types[0].dtype
    first, second = [
        constant(side, dtype) if isinstance(side, bool) or (dtype == "bool" and not isinstance(side, Value))
        else convert(b, side, dtype)
        for side in (x, y)
    ]  # fmt: skip
    return convert(b, b.op("where", convert(b, test, "bool"), first, second), dtype)


def _masked_fill(b: Builder, types: Types, x: Value, mask: Value, value: Operand) -> Value:
    return where(b, types, mask, value, x)


def _clamp(b: Builder, types: Types, x: Value, min: Operand | None = None, max: Operand | None = None) -> Value:
    if isinstance(min, Value) or isinstance(max, Value):
        x = convert(b, x, types[0].dtype)
    for name, bound in (("max", min), ("min", max)):
        if bound is not None:
            x = b.op(name, x, convert(b, bound, types[0].dtype))
    return convert(b, x, types[0].dtype)


def _at_most(b: Builder, types: Types, x: Value, max: Operand) -> Value:
    return _clamp(b, types, x, max=max)


def _fill(b: Builder, types: Types, x: Value, value: Operand, *rest: object) -> Value:
    """Return another value in the shape of a tensor."""
    if isinstance(value, Value):
        return b.spread(convert(b, value, types[0].dtype), types[0].shape)
    return filled(b, types, value)


def _interpolated(b: Builder, types: Types, x: Value, y: Value, weight: Operand) -> Value:
    return b.op("add", x, b.op("mul", b.op("sub", y, x), weight))


def _added(name: str) -> Row:
    """Return the row of `x + value * (y * z)`, or of the quotient."""

    def call(b: Builder, types: Types, x: Value, y: Operand, z: Operand, *, value: Scalar = 1) -> Value:
        return b.op("add", x, b.op("mul", b.op(name, y, z), value))

    return call


def _gated(b: Builder, types: Types, x: Value, dim: int = -1) -> Value:
    half = types[0].shape[dim]
    value, gate = b.ops("split", x, sizes=(half, half), axis=dim)
    return b.op("mul", value, b.op("sigmoid", gate))


def _prelu(b: Builder, types: Types, x: Value, weight: Value) -> Value:
    size = weight.shape[0] if weight.shape else 1
    scale = b.reshape(weight, (size, *[1] * (len(x.shape) - 2)) if size != 1 else ())
    return b.op("where", b.op("gt", x, 0.0), x, b.op("mul", x, scale))


def _threshold(b: Builder, types: Types, x: Value, threshold: float, value: float) -> Value:
    least, otherwise = [constant(number, x.dtype) for number in (threshold, value)]
    return b.op("where", b.op("gt", x, least), x, otherwise)


# Functions of one real. -----------------------------------------------------------------------------------------------

LINEAR = 20.0
"""Above a threshold of at least this, `softplus` is the identity in float32."""


def _of_real(function: Callable[..., Value]) -> Row:
    """Return the row of a function of the builder, a real, and numbers."""

    def call(b: Builder, types: Types, x: Value, *numbers: float | None, **named: float | None) -> Value:
        return function(b, convert(b, x, "real"), *numbers, **named)

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
    return b.op("where", b.op("gt", x, 0.0), x, b.op("mul", x, float(negative_slope)))


def _elu(b: Builder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    below = b.op("sub", b.op("exp", _times(b, x, input_scale)), 1.0)
    return b.op("where", b.op("gt", x, 0.0), _times(b, x, scale), _times(b, below, alpha * scale))


def _celu(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    return _elu(b, x, alpha, 1.0, 1 / alpha)


def _selu(b: Builder, x: Value) -> Value:
    return _elu(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _times(b: Builder, x: Value, by: float) -> Value:
    return x if by == 1 else b.op("mul", x, float(by))


def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = LINEAR) -> Value:
    """Return log(1 + exp(x)); PyTorch has x above the threshold, which may be the same in float32."""
    scaled = _times(b, x, beta)
    made = _times(b, b.activation("softplus", b.written(scaled)), 1 / beta)
    return made if threshold >= LINEAR else b.op("where", b.op("gt", scaled, float(threshold)), x, made)


def _log_sigmoid(b: Builder, x: Value) -> Value:
    return b.op("neg", b.activation("softplus", b.written(b.op("neg", x))))


def _logit(b: Builder, x: Value, eps: float | None = None) -> Value:
    if eps is not None:
        refuse("logit")
    return b.op("log", b.op("div", x, b.op("sub", 1.0, x)))


def _log2(b: Builder, x: Value) -> Value:
    return b.op("mul", b.op("log", x), 1 / math.log(2.0))


def _log10(b: Builder, x: Value) -> Value:
    return b.op("mul", b.op("log", x), 1 / math.log(10.0))


def _log_of_sum(b: Builder, x: Value) -> Value:
    return b.op("log", b.op("add", x, 1.0))


def _exp_less_one(b: Builder, x: Value) -> Value:
    return b.op("sub", b.op("exp", x), 1.0)


def _exp_of_two(b: Builder, x: Value) -> Value:
    return b.op("exp", b.op("mul", x, math.log(2.0)))


def _tangent(b: Builder, x: Value) -> Value:
    return b.op("div", b.op("sin", x), b.op("cos", x))


def _inverse_hyperbolic_sine(b: Builder, x: Value) -> Value:
    """Return log(x + sqrt(x * x + 1)), which is odd, computed without cancellation."""
    size = b.op("abs", x)
    above = b.op("log", b.op("add", size, b.op("sqrt", b.op("add", b.op("mul", size, size), 1.0))))
    return b.op("where", b.op("gt", x, 0.0), above, b.op("neg", above))


_EXCLUSIVE = _logic("ne")
_OPPOSITE = _logic("not")
_BOTH, _EITHER = _logic("and"), _logic("or")

NAMES: dict[Row, str] = {
    # One operation of the language.
    **{_unary(name): name for name in ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh")},
    _unary("sigmoid"): "sigmoid special_expit",
    _unary("erf"): "erf special_erf",
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
    _BOTH: "logical_and",
    _EITHER: "logical_or",
    _EXCLUSIVE: "logical_xor",
    _OPPOSITE: "logical_not",
    _bitwise(_BOTH): "bitwise_and __and__",
    _bitwise(_EITHER): "bitwise_or __or__",
    _bitwise(_EXCLUSIVE): "bitwise_xor __xor__",
    _bitwise(_OPPOSITE): "bitwise_not",
    # One function of the standard library.
    **{_function(name): name for name in ("silu", "mish")},
    # None: functions that only proofs know.
    **{_unknown(name): name for name in ("atan", "asin", "acos", "atan2")},
    # Several operations.
    _relu: "relu",
    _gelu: "gelu",
    _detach: "detach",
    _same: "clone contiguous alias to _to_copy lift_fresh lift_fresh_copy type_as positive alias_copy",
    _dropout: "dropout feature_dropout alpha_dropout feature_alpha_dropout",
    _random: "native_dropout bernoulli rand rand_like randn randn_like randint randint_like randperm normal uniform "
    "exponential multinomial rrelu rrelu_with_noise",
    _div: "div divide true_divide",
    _remainder: "fmod",
    _rsub: "rsub",
    _root: "rsqrt",
    _reciprocal: "reciprocal",
    _square: "square",
    _floor: "floor",
    _ceil: "ceil",
    _truncated: "trunc fix",
    _round: "round",
    _sign: "sign sgn",
    _is_not_a_number: "isnan",
    _is_infinite: "isinf",
    _is_finite: "isfinite",
    where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clip clamp_min",
    _at_most: "clamp_max",
    _fill: "fill copy",
    _interpolated: "lerp",
    _added("mul"): "addcmul",
    _added("div"): "addcdiv",
    _gated: "glu",
    _prelu: "prelu",
    _threshold: "threshold",
    **{
        _of_real(function): called
        for function, called in {
            _bounded: "hardtanh",
            _relu6: "relu6",
            _hard_sigmoid: "hardsigmoid",
            _hard_swish: "hardswish",
            _leaky_relu: "leaky_relu",
            _elu: "elu",
            _celu: "celu",
            _selu: "selu",
            _softplus: "softplus",
            _log_sigmoid: "log_sigmoid",
            _logit: "logit",
            _log2: "log2",
            _log10: "log10",
            _log_of_sum: "log1p",
            _exp_less_one: "expm1",
            _exp_of_two: "exp2",
            _tangent: "tan",
            _inverse_hyperbolic_sine: "asinh arcsinh",
        }.items()
    },
}
"""The names of the operations that each row is for."""
