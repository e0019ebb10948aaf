"""Operations on single elements. Shapes stretch to each other: aligned at the last axis, sizes equal or 1."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from archspec.dims import LARGEST, Symbolic, dim_max, dim_min
from archspec.ir import Type
from archspec.ops.check import alike, broadcast, numeric, wants
from archspec.ops.record import Input, Op

GROUP = "Elementwise"


# Types ----------------------------------------------------------------------------------------------------------------


def _same(x: Type) -> Type:
    return Type(x.shape, numeric(("x", x)))


def _to_real(x: Type) -> Type:
    numeric(("x", x))
    return Type(x.shape)


def _to_int(x: Type) -> Type:
    numeric(("x", x))
    return Type(x.shape, "int")


def _cast_real(x: Type) -> Type:
    return Type(x.shape)


def _cast_int(x: Type) -> Type:
    return Type(x.shape, "int")


def _negation(x: Type) -> Type:
    wants("bool", "x", x)
    return x


def _arithmetic(a: Type, b: Type) -> Type:
    return Type(broadcast(a.shape, b.shape, "b"), numeric(("a", a), ("b", b)))


def _ratio(a: Type, b: Type) -> Type:
    return Type(_arithmetic(a, b).shape)


def _comparison(a: Type, b: Type) -> Type:
    return Type(_arithmetic(a, b).shape, "bool")


def _equality(a: Type, b: Type) -> Type:
    alike(("a", a), ("b", b))
    return Type(broadcast(a.shape, b.shape, "b"), "bool")


def _logic(a: Type, b: Type) -> Type:
    wants("bool", "a", a)
    wants("bool", "b", b)
    return Type(broadcast(a.shape, b.shape, "b"), "bool")


def _where(condition: Type, a: Type, b: Type) -> Type:
    wants("bool", "condition", condition)
    shape = broadcast(broadcast(condition.shape, a.shape, "a"), b.shape, "b")
    return Type(shape, alike(("a", a), ("b", b)))


# Plain numbers --------------------------------------------------------------------------------------------------------


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        raise OverflowError("this number does not fit in 64 bits")
    return value


def _within(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` on numbers and dimensions, its integers held to 64 bits; reals are for known numbers alone."""
    known = _known(function)
    return lambda *values: known(*values) if float in map(type, values) else _bounded(function(*values))


def _known(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` on numbers alone: a symbolic dimension has no value yet."""

    def compute(*values: Any) -> Any:
        for value in values:
            if isinstance(value, Symbolic):
                raise TypeError(f"the dimension {value} is not a compile-time constant")
        return _bounded(function(*values))

    return compute


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _floor(x: Any) -> Any:
    return x if isinstance(x, Symbolic) else math.floor(x)


def _divided(a: Any, b: Any) -> Any:
    return a / b


def _quotient(a: Any, b: Any) -> Any:
    return a // b


def _truncated(x: Any) -> Any:
    return x if isinstance(x, Symbolic) else int(x)


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, Symbolic):
        raise TypeError("the exponent must be a compile-time constant")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > 130 and abs(base) > 1:
        raise OverflowError("this number does not fit in 64 bits")
    result = base**exponent
    if result.__class__ is complex:
        raise ValueError("cannot take a root of a negative number")
    return result


def _least(a: Any, b: Any) -> Any:
    return dim_min(a, b) if isinstance(a, Symbolic) or isinstance(b, Symbolic) else min(a, b)


def _most(a: Any, b: Any) -> Any:
    return dim_max(a, b) if isinstance(a, Symbolic) or isinstance(b, Symbolic) else max(a, b)


# Records --------------------------------------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """What operations have in common: the rule, what they take and what they give, in words."""

    types: Callable[..., Type]
    taken: str
    given: str


_SAME = _Kind(_same, "number [...]", "type and shape of x")
_REAL = _Kind(_to_real, "number [...]", "real, shape of x")
_INT = _Kind(_to_int, "number [...]", "int, shape of x")
_AS_REAL = _Kind(_cast_real, "[...]", "real, shape of x")
_AS_INT = _Kind(_cast_int, "[...]", "int, shape of x")
_NOT = _Kind(_negation, "bool [...]", "bool, shape of x")

_ARITHMETIC = _Kind(_arithmetic, "number [...]", "real if either is, else int; common shape")
_RATIO = _Kind(_ratio, "number [...]", "real, common shape")
_COMPARISON = _Kind(_comparison, "number [...]", "bool, common shape")
_EQUALITY = _Kind(_equality, "[...]", "bool, common shape")
_LOGIC = _Kind(_logic, "bool [...]", "bool, common shape")


def _unary(name: str, kind: _Kind, doc: str, scalar: Callable[..., Any] | None = None, symbol: str | None = None) -> Op:
    inputs = (Input("x", kind.taken),)
    work = 0 if kind in (_AS_REAL, _AS_INT) else 1  # a conversion computes nothing
    return Op(name, GROUP, doc, inputs, (), kind.given, kind.types, symbol=symbol, scalar=scalar, work=work)


def _binary(name: str, symbol: str | None, kind: _Kind, doc: str, scalar: Callable[..., Any] | None = None) -> Op:
    inputs = (Input("a", kind.taken), Input("b", kind.taken))
    return Op(name, GROUP, doc, inputs, (), kind.given, kind.types, symbol=symbol, scalar=scalar, work=1)


OPS = (
    _unary("neg", _SAME, "-x.", _within(operator.neg), "-"),
    _unary("abs", _SAME, "x where x >= 0, else -x.", _known(abs)),
    _unary("exp", _REAL, "e to the power x.", _known(math.exp)),
    _unary("log", _REAL, "The natural logarithm of x.", _known(math.log)),
    _unary("sqrt", _REAL, "The square root of x.", _known(math.sqrt)),
    _unary("sin", _REAL, "The sine of x, in radians.", _known(math.sin)),
    _unary("cos", _REAL, "The cosine of x, in radians.", _known(math.cos)),
    _unary("tanh", _REAL, "The hyperbolic tangent, (exp(x) - exp(-x)) / (exp(x) + exp(-x)).", _known(math.tanh)),
    _unary("sigmoid", _REAL, "1 / (1 + exp(-x)).", _known(_sigmoid)),
    _unary(
        "erf", _REAL, "The error function: the integral of 2 / sqrt(pi) * exp(-t * t), t from 0 to x.", _known(math.erf)
    ),
    _unary("floor", _INT, "The greatest integer not above x.", _within(_floor)),
    _unary("real", _AS_REAL, "x as a real; true is 1, false 0.", _known(float)),
    _unary("int", _AS_INT, "x as an int, cut off towards zero; true is 1, false 0.", _within(_truncated)),
    _unary("not", _NOT, "True where x is false.", symbol="not"),
    _binary("add", "+", _ARITHMETIC, "a + b.", _within(operator.add)),
    _binary("sub", "-", _ARITHMETIC, "a - b.", _within(operator.sub)),
    _binary("mul", "*", _ARITHMETIC, "a times b.", _within(operator.mul)),
    _binary("div", "/", _RATIO, "a divided by b; of two ints, too, a real.", _known(_divided)),
    _binary("floordiv", "//", _ARITHMETIC, "a divided by b, rounded down.", _within(_quotient)),
    _binary("mod", "%", _ARITHMETIC, "a - b * (a // b): what is left over, with the sign of b.", _within(operator.mod)),
    _binary("pow", "**", _ARITHMETIC, "a to the power b; an int to a negative int is undefined.", _within(_power)),
    _binary("min", None, _ARITHMETIC, "The smaller of a and b.", _within(_least)),
    _binary("max", None, _ARITHMETIC, "The larger of a and b.", _within(_most)),
    _binary("eq", "==", _EQUALITY, "True where a equals b; both numbers or both bool.", _known(operator.eq)),
    _binary("ne", "!=", _EQUALITY, "True where a differs from b; both numbers or both bool.", _known(operator.ne)),
    _binary("lt", "<", _COMPARISON, "True where a < b.", _known(operator.lt)),
    _binary("le", "<=", _COMPARISON, "True where a <= b.", _known(operator.le)),
    _binary("gt", ">", _COMPARISON, "True where a > b.", _known(operator.gt)),
    _binary("ge", ">=", _COMPARISON, "True where a >= b.", _known(operator.ge)),
    _binary("and", "and", _LOGIC, "True where both are."),
    _binary("or", "or", _LOGIC, "True where one or both are."),
    Op(
        "where",
        GROUP,
        "a where condition is true, b elsewhere; both numbers or both bool.",
        (Input("condition", "bool [...]"), Input("a", "[...]"), Input("b", "[...]")),
        (),
        "bool if both are, real if either is, else int; common shape of the three",
        _where,
        work=1,
    ),
)
