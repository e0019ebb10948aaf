"""Elementwise operations. Shapes are broadcast: aligned at the last axis, with sizes equal or 1."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from archspec.core.algebra import MAX_SIZE, Dim, Polynomial, check_size_limits, dim_max, dim_min
from archspec.ir.module import Type
from archspec.ir.ops.check import OpError, Shape, broadcast_shapes, describe, format_type
from archspec.ir.ops.record import (
    Attribute,
    Input,
    Interval,
    Op,
    Operands,
    Scalar,
    Settings,
    TorchForm,
    identity_interval,
)

Function: TypeAlias = Callable[..., Scalar]
Elements: TypeAlias = Literal["number", "bool", ""]
CodeForm: TypeAlias = str | Callable[[Operands], str]


# Shapes ---------------------------------------------------------------------------------------------------------------


def _unary_shape(x: Type) -> Shape:
    return x.shape


def _broadcast_shape(a: Type, b: Type) -> Shape:
    return broadcast_shapes(a.shape, b.shape, "b")


def _dropout_shape(x: Type, rate: object) -> Shape:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise OpError(f"expects a number from 0 to below 1 as `rate`, found {describe(rate)}", "rate")
    return _real_shape(x)


def _real_shape(x: Type) -> Shape:
    if x.dtype != "real":
        raise OpError(f"expects real elements as `x`, found {format_type(x)}", "x", "convert it with `real(x)`")
    return x.shape


def _lowest_shape(x: Type) -> Shape:
    if x.dtype != "real":
        raise OpError(f"expects a real tensor as `x`, found {x.dtype}", "x", "convert it with `real(x)`")
    return ()


def _where_shape(condition: Type, a: Type, b: Type) -> Shape:
    return broadcast_shapes(broadcast_shapes(condition.shape, a.shape, "a"), b.shape, "b")


# Plain numbers --------------------------------------------------------------------------------------------------------


def _on_sizes(function: Function) -> Function:
    """Wrap `function` for integers, dimensions and constant reals; results are checked against the size limits."""
    on_numbers = _on_numbers(function)

    def compute(*values: Scalar) -> Scalar:
        if float in map(type, values):
            if any(isinstance(value, Polynomial) for value in values):
                raise TypeError("cannot combine a real and a symbolic dimension")
            return on_numbers(*values)
        return _check_limits(function(*values))

    return compute


def _on_numbers(function: Function) -> Function:
    """Wrap `function` for numbers; a symbolic dimension has no value at compile time."""

    def compute(*values: Scalar) -> Scalar:
        numbers: list[int | float] = []
        for value in values:
            if isinstance(value, Polynomial):
                raise TypeError(f"expects a compile-time constant, found the dimension {value}")
            numbers.append(value)
        try:
            result = function(*values)
        except OverflowError:
            raise OverflowError(_TOO_LARGE) from None
        if type(result) is float and math.isinf(result) and not any(map(math.isinf, numbers)):
            raise FloatingPointError(_TOO_LARGE)
        return _check_limits(result)

    return compute


_TOO_LARGE = "this number is too large to compute"


def _check_limits(value: Scalar) -> Scalar:
    """Return `value` after checking that it is a number within the size limits."""
    if isinstance(value, int):
        if not -MAX_SIZE <= value <= MAX_SIZE:
            raise OverflowError("this number does not fit in 64 bits")
    elif isinstance(value, Polynomial):
        check_size_limits(value)
    elif type(value) is float and math.isnan(value):
        raise FloatingPointError("this value is not a number (NaN)")
    return value


def _negative(x: Scalar) -> Scalar:
    return -x


def _absolute(x: float) -> float:
    return abs(x)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _to_integer(function: Callable[[float], int]) -> Function:
    """Wrap an integer-valued `function`; dimensions are returned unchanged."""

    def compute(x: Scalar) -> Scalar:
        return x if isinstance(x, Polynomial) else function(x)

    return _on_sizes(compute)


def _true_divide(a: float, b: float) -> float:
    return a / b


def _quotient(a: Dim, b: Dim) -> Dim:
    return a // b


def _power(base: Scalar, exponent: Scalar) -> Scalar:
    if isinstance(exponent, Polynomial):
        raise TypeError(f"expects a compile-time constant as exponent, found the dimension {exponent}")
    if isinstance(base, Polynomial):
        if not isinstance(exponent, int) or not 0 <= exponent <= _MAX_POWER:
            raise TypeError(f"can only raise a symbolic dimension to an integer power from 0 to {_MAX_POWER}")
        return base**exponent
    if base == 0 and exponent < 0:
        raise ValueError("zero cannot be raised to a negative power")
    if base == -math.inf and exponent % 1:
        raise ValueError("cannot take a root of a negative number")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > 130 and abs(base) > 1:
        raise OverflowError("this power does not fit in 64 bits")
    result = base**exponent
    if result.__class__ is complex:
        raise ValueError("cannot take a root of a negative number")
    return result


_MAX_POWER = 8


# Intervals ------------------------------------------------------------------------------------------------------------


def _interval_from_bounds(
    compute: Callable[[int, int], int],
) -> Callable[[Sequence[Interval], Type, Settings], Interval]:
    """Return the interval of an operation that is monotonic or linear in each operand, from its bounds."""

    def interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval:
        a, b = inputs
        results = [compute(x, y) for x in a for y in b]
        return min(results), max(results)

    return interval


# PyTorch --------------------------------------------------------------------------------------------------------------


def _where_code(o: Operands) -> str:
    value = "torch.full((), a, **new)" if o.is_number("a") and o.is_number("b") else "a"
    return f"torch.where(condition, {value}, b)"


def _dropout_code(o: Operands) -> str:
    return "x" if o.literal("rate") == 0 else "F.dropout(x, rate, training)"


# Records --------------------------------------------------------------------------------------------------------------


def _unary(
    name: str,
    doc: str,
    elements: Elements,
    dtype: str,
    scalar: Function | None,
    python: str,
    torch: CodeForm | None,
    symbol: str | None = None,
) -> Op:
    return Op(
        name,
        "Elementwise",
        doc,
        (Input("x", elements),),
        (),
        "type and shape of x" if dtype == "x" else f"{dtype}, shape of x",
        _unary_shape,
        (dtype,),
        symbol,
        scalar=scalar,
        work=1,
        python=python,
        torch=TorchForm(torch) if torch is not None else None,
    )


def _cast(name: str, doc: str, dtype: str, scalar: Function, python: str, torch: CodeForm | None) -> Op:
    return _unary(name, doc, "", dtype, scalar, python, torch)._replace(casts=True, work=0)


def _real(name: str, doc: str, scalar: Function, python: str = "", least: int | None = None) -> Op:
    """Return the record of a function of reals with the same name in `math` and `torch`."""
    op = _unary(name, doc, "number", "real", _on_numbers(scalar), python or f"math.{name}(x)", f"torch.{name}(x)")
    return op._replace(least=least)


def _binary(
    name: str, doc: str, elements: Elements, dtype: str, scalar: Function | None, torch: CodeForm, symbol: str | None
) -> Op:
    return Op(
        name,
        "Elementwise",
        doc,
        (Input("a", elements), Input("b", elements)),
        (),
        "real if either is, else int; common shape" if dtype == "a b" else f"{dtype}, common shape",
        _broadcast_shape,
        (dtype,),
        symbol,
        scalar=scalar,
        work=1,
        python=f"a {symbol} b" if symbol else f"{name}(a, b)",
        torch=TorchForm(torch),
    )


def _arithmetic(name: str, doc: str, scalar: Function, symbol: str | None = None, torch: CodeForm | None = None) -> Op:
    return _binary(name, doc, "number", "a b", _on_sizes(scalar), torch or f"a {symbol} b", symbol)


def _extreme(
    name: str, doc: str, size_function: Function, number_function: Callable[..., int], function: str, limit: str
) -> Op:
    def scalar(a: Scalar, b: Scalar) -> Scalar:
        return (size_function if isinstance(a, Polynomial) or isinstance(b, Polynomial) else number_function)(a, b)

    def code(o: Operands) -> str:
        if o.is_number("b"):
            return f"a.clamp({limit}=b)"
        return f"b.clamp({limit}=a)" if o.is_number("a") else f"torch.{function}(a, b)"

    return _commutative(_arithmetic(name, doc, scalar, torch=code), number_function)


def _commutative(op: Op, exact: Callable[[int, int], int]) -> Op:
    """Return a commutative and associative operation; `exact` computes the bounds of its interval."""
    return op._replace(commutative=True, associative=True, interval=_interval_from_bounds(exact))


def _comparison(name: str, symbol: str, doc: str, scalar: Function) -> Op:
    return _binary(name, doc, "number", "bool", _on_numbers(scalar), f"a {symbol} b", symbol)


def _equality(name: str, symbol: str, doc: str, scalar: Function) -> Op:
    def code(o: Operands) -> str:
        for operand, constant in (("a", "b"), ("b", "a")):
            if isinstance(o.literal(constant), bool):
                return f"{operand}.{name}({constant})"
        return f"a {symbol} b"

    return _binary(name, doc, "", "bool", _on_numbers(scalar), code, symbol)._replace(commutative=True)


def _logic(name: str, doc: str, torch: str) -> Op:
    op = _binary(name, doc, "bool", "bool", None, torch, name)
    return op._replace(commutative=True, associative=True)


OPS = (
    _unary("neg", "-x.", "number", "x", _on_sizes(_negative), "-x", "-x", "-")._replace(normal="elementwise.negate"),
    _unary("abs", "x where x >= 0, else -x.", "number", "x", _on_numbers(_absolute), "abs(x)", "torch.abs(x)")._replace(
        normal="elementwise.absolute"
    ),
    _real("exp", "e to the power x.", math.exp),
    _real("log", "The natural logarithm of x.", math.log, least=1),
    _real("sqrt", "The square root of x.", math.sqrt, least=0)._replace(normal="elementwise.square_root"),
    _real("sin", "The sine of x, in radians.", math.sin),
    _real("cos", "The cosine of x, in radians.", math.cos),
    _real("tanh", "The hyperbolic tangent, (exp(x) - exp(-x)) / (exp(x) + exp(-x)).", math.tanh),
    _real("sigmoid", "1 / (1 + exp(-x)).", _sigmoid, "1 / (1 + math.exp(-x))"),
    _real("erf", "The error function: the integral of 2 / sqrt(pi) * exp(-t * t), t from 0 to x.", math.erf),
    _unary(
        "floor",
        "The largest integer that is not above x.",
        "number",
        "int",
        _to_integer(math.floor),
        "math.floor(x)",
        "torch.floor(x).long()",
    )._replace(normal="elementwise.floor"),
    _cast("real", "x as a real; true is 1, false 0.", "real", _on_numbers(float), "float(x)", None)._replace(
        normal="elementwise.to_real"
    ),
    _cast(
        "float32",
        "x as a real, in float32 if the model is in half precision. What is computed from it and from numbers alone "
        "stays in float32 until it meets a tensor in the type of the model, or enters or leaves a layer or block.",
        "real",
        _on_numbers(float),
        "float(x)",
        None,
    )._replace(widens=True, normal="elementwise.to_real"),
    _cast(
        "int", "x as an int, truncated towards zero; true is 1, false 0.", "int", _to_integer(int), "int(x)", "x.long()"
    )._replace(interval=identity_interval, normal="elementwise.to_integer"),
    _unary("not", "True where x is false.", "bool", "bool", None, "not x", "~x", "not")._replace(
        normal="elementwise.opposite"
    ),
    _commutative(_arithmetic("add", "a + b.", operator.add, "+"), operator.add)._replace(normal="elementwise.add"),
    _arithmetic("sub", "a - b.", operator.sub, "-")._replace(
        interval=_interval_from_bounds(operator.sub), normal="elementwise.subtract"
    ),
    _commutative(_arithmetic("mul", "a times b.", operator.mul, "*"), operator.mul)._replace(
        normal="elementwise.multiply"
    ),
    _binary(
        "div", "a divided by b; a real, also for two ints.", "number", "real", _on_numbers(_true_divide), "a / b", "/"
    )._replace(normal="elementwise.divide"),
    _arithmetic("floordiv", "a divided by b, rounded down.", _quotient, "//")._replace(
        normal="elementwise.floor_divide"
    ),
    _arithmetic("mod", "a - b * (a // b): the remainder, with the sign of b.", operator.mod, "%")._replace(
        normal="elementwise.remainder"
    ),
    _arithmetic("pow", "a to the power b; an int to a negative int is undefined.", _power, "**")._replace(
        normal="elementwise.power"
    ),
    _extreme("min", "The smaller of a and b.", dim_min, min, "minimum", "max")._replace(normal="elementwise.smaller"),
    _extreme("max", "The larger of a and b.", dim_max, max, "maximum", "min")._replace(normal="elementwise.larger"),
    _equality("eq", "==", "True where a equals b; both numbers or both bool.", operator.eq)._replace(
        normal="elementwise.equal"
    ),
    _equality("ne", "!=", "True where a differs from b; both numbers or both bool.", operator.ne)._replace(
        normal="elementwise.unequal"
    ),
    _comparison("lt", "<", "True where a < b.", operator.lt)._replace(normal="elementwise.less"),
    _comparison("le", "<=", "True where a <= b.", operator.le)._replace(normal="elementwise.less_or_equal"),
    _comparison("gt", ">", "True where a > b.", operator.gt)._replace(normal="elementwise.greater"),
    _comparison("ge", ">=", "True where a >= b.", operator.ge)._replace(normal="elementwise.greater_or_equal"),
    _logic("and", "True where both are true.", "a & b")._replace(normal="elementwise.both"),
    _logic("or", "True where at least one is true.", "a | b")._replace(normal="elementwise.either"),
    Op(
        "where",
        "Elementwise",
        "a where condition is true, b elsewhere; both numbers or both bool.",
        (Input("condition", "bool"), Input("a"), Input("b")),
        (),
        "bool if both are, real if either is, else int; common shape of the three",
        _where_shape,
        ("a b",),
        attention="mask",
        work=1,
        torch=TorchForm(_where_code, fills=("condition",)),
        normal="elementwise.choose",
    ),
    Op(
        "dropout",
        "Elementwise",
        "x in evaluation. In training, each element is 0 with probability rate, and x / (1 - rate) otherwise.",
        (Input("x", "number"),),
        (Attribute("rate"),),
        "real, shape of x",
        _dropout_shape,
        ("real",),
        trains=True,
        torch=TorchForm(_dropout_code, fills=("x",), memory="whole"),
    ),
    Op(
        "detach",
        "Elementwise",
        "x. In training, no gradient flows back through it.",
        (Input("x", "number"),),
        (),
        "real, shape of x",
        _real_shape,
        ("real",),
        trains=True,
        torch=TorchForm("x.detach()"),
    ),
    Op(
        "lowest",
        "Elementwise",
        "The least finite number of the type of x. As an operand next to a real tensor, `lowest` alone is that of its "
        "type: `where(mask, x, lowest)`.",
        (Input("x", "number"),),
        (),
        "real []",
        _lowest_shape,
        ("real",),
        alone=True,
        torch=TorchForm("x.new_full((), torch.finfo(x.dtype).min)"),
        normal="shape.lowest",
    ),
)
