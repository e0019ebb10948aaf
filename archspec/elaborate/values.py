"""Values known when a spec is compiled, and their arithmetic.

A static value is an int, float, bool, str, None (absent), a tuple (a list), a symbolic dimension, a definition, or an
operation. Two markers stand for what is not known: DYNAMIC (a tensor's business, while only ownership is worked out)
and POISON (something already reported, which nothing should be said about again).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mod, mul, ne, sub
from typing import Any, NamedTuple

from archspec.algebra import LARGEST, Polynomial, checked
from archspec.ir import Module, Type
from archspec.ops import Op

LONGEST_SHOWN = 80
MOST_SHOWN = 12


class Marker:
    """A value that is not known; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DYNAMIC = Marker("DYNAMIC")
POISON = Marker("POISON")


class Unknown(float):
    """A real number that depends on hyperparameters left open; UNKNOWN is the one there is."""

    __slots__ = ()

    def __neg__(self) -> Unknown:
        return self

    def __str__(self) -> str:
        return "(unknown)"


UNKNOWN = Unknown("nan")
OPEN = (Polynomial, Unknown)
"""The classes of numbers that are not known when a spec is compiled."""


class Tensor(NamedTuple):
    """A tensor in a body: its slot and type."""

    slot: int
    type: Type


class Several:
    """The outputs of something that has several; None for one that is absent."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Tensor | None, ...]) -> None:
        self.values = values


class Owned(NamedTuple):
    """A layer or block that a definition owns, named to be applied (again)."""

    address: str
    module: Module


class StaticError(Exception):
    """Arithmetic that has no answer; `code` is the diagnostic's."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def describe(value: Any) -> str:
    """A value as a message names it: `the integer 12`, `the string "x"`, `none`."""
    kind = kind_of(value)
    match kind:
        case "none":
            return "`none`"
        case "integer" | "real" | "boolean" | "string":
            return f"the {kind} {show(value)}"
        case "list":
            return f"the list {show(value)}"
        case "dimension":
            return f"the dimension {value}"
        case _:
            return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" + (
                f" `{show(value)}`" if not isinstance(value, Tensor | Several) else ""
            )


def kind_of(value: Any) -> str:
    """The kind of a static value or tensor, as messages name it."""
    match value:
        case None:
            return "none"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "real"
        case str():
            return "string"
        case Tensor():
            return "tensor"
        case Several():
            return "group of outputs"
        case Owned():
            return value.module.kind
        case Op():
            return "function"
        case tuple():
            return "list"
        case Polynomial():
            return "dimension"
        case Marker():
            return "value"
        case _:
            return "function" if value.kind == "fn" else str(value.kind)


def show(value: Any) -> str:
    """A static value as the language writes it."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value if len(value) <= LONGEST_SHOWN else value[: LONGEST_SHOWN - 3] + "..."}"'
        case Op():
            return value.name
        case Owned():
            return value.module.type
        case Several() | Tensor():
            return "..."
        case tuple():
            items = _items(value)
            shown = [show(item) for item in items[:MOST_SHOWN]]
            return f"[{', '.join([*shown, *(['...'] if len(items) > MOST_SHOWN else [])])}]"
        case int() | float() | Polynomial() | Marker():
            return str(value)
        case _:
            return value.name


def plain(value: Any) -> Any:
    """A hyperparameter as JSON can hold it: definitions and operations by name."""
    match value:
        case tuple() if not isinstance(value, Op):
            return [plain(v) for v in _items(value)]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return show(value)


def _items(value: Any) -> tuple[Any, ...]:
    return value


def key_of(value: Any) -> Any:
    """What tells static values apart as dictionary keys (True is not 1, 1 is not 1.0)."""
    kind = value.__class__
    if kind is int or kind is str:
        return value
    if kind is tuple:
        return (tuple, *[key_of(v) for v in value])
    if kind is float or kind is bool:
        return (kind, value)
    return value


def accepts(default: Any, value: Any) -> bool:
    """Whether a hyperparameter whose default is `default` may be `value`."""
    if value is None or default is None or isinstance(value, Marker):
        return True
    wanted, got = kind_of(default), kind_of(value)
    if wanted == got:
        return True
    return {wanted, got} == {"layer", "block"} or (
        wanted in ("real", "integer", "dimension") and got in ("integer", "dimension")
    )


def is_number(value: Any) -> bool:
    return value.__class__ in (int, float) or isinstance(value, OPEN)


def bounded(value: Any) -> Any:
    """`value`, unless it is an integer too large to be a size, or not a number at all."""
    if value.__class__ is int and not -LARGEST <= value <= LARGEST:
        raise StaticError("budget", "this number does not fit in 64 bits")
    if value.__class__ is float and math.isnan(value):
        raise StaticError("arithmetic", "this value is not a number (NaN)")
    return checked(value) if isinstance(value, Polynomial) else value


def negative(value: Any) -> Any:
    if not is_number(value):
        raise StaticError("wrong-kind", f"`-` expects a number, found {describe(value)}")
    return -value


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """The value of a binary operator on two static values. Raises StaticError."""
    if left.__class__ is int and right.__class__ is int and (right > 0 or operator in _TOTAL):
        compute = _TOTAL.get(operator) or _INTEGER.get(operator)
        if compute is not None:
            return bounded(compute(left, right))
    if operator in ("==", "!="):
        return _equal(left, right) == (operator == "==")
    if not (is_number(left) and is_number(right)):
        wrong = right if is_number(left) else left
        raise StaticError("wrong-kind", f"`{operator}` expects numbers, found {describe(wrong)}")
    if operator in _COMPARE:
        if isinstance(left, Polynomial) or isinstance(right, Polynomial):
            message = f"`{left} {operator} {right}` is not a compile-time constant"
            raise StaticError("wrong-kind", message)
        return _COMPARE[operator](left, right)
    inexact = Polynomial | float
    if isinstance(left, inexact) and isinstance(right, inexact) and left.__class__ != right.__class__:
        message = f"`{operator}` cannot combine a real and a symbolic dimension"
        raise StaticError("wrong-kind", message)
    if operator in ("/", "//", "%") and right == 0:
        raise StaticError("arithmetic", f"division by zero in `{operator}`")
    try:
        value = bounded(_COMPUTE[operator](left, right))
        if value.__class__ is float and math.isinf(value) and not (_is_infinite(left) or _is_infinite(right)):
            raise StaticError("arithmetic", "this number is too large to compute")
        return value
    except OverflowError as problem:
        symbolic = isinstance(left, Polynomial) or isinstance(right, Polynomial)
        raise StaticError("budget", str(problem) if symbolic else "this number is too large to compute") from None
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise StaticError("arithmetic", f"`{operator}` is undefined for these operands: {problem}") from None


def _is_infinite(value: Any) -> bool:
    return value.__class__ is float and math.isinf(value)


def _quotient(left: Any, right: Any) -> float:
    if isinstance(left, Polynomial) or isinstance(right, Polynomial):
        raise StaticError("wrong-kind", "`/` cannot divide symbolic dimensions", "use `//` for integer division")
    return left / right


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, Polynomial):
        raise StaticError("wrong-kind", "the exponent of `**` must be a compile-time constant")
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent > 0 and base.bit_length() * exponent > 130:
            raise StaticError("budget", "this power does not fit in 64 bits")
        if exponent < 0 and base == 0:
            raise StaticError("arithmetic", "zero cannot be raised to a negative power")
    if isinstance(base, Polynomial) and not (isinstance(exponent, int) and 0 <= exponent <= 8):
        raise StaticError("wrong-kind", "a symbolic dimension can only be raised to an integer power from 0 to 8")
    result = base**exponent
    if isinstance(result, complex):
        raise StaticError("arithmetic", "cannot take a root of a negative number")
    return result


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if is_number(left) and is_number(right):
        if left == right:
            return True
        if isinstance(left, Polynomial) or isinstance(right, Polynomial):
            raise StaticError("wrong-kind", f"`{left} == {right}` is not a compile-time constant")
        return False
    if kind_of(left) != kind_of(right) and {kind_of(left), kind_of(right)} != {"layer", "block"}:
        raise StaticError("wrong-kind", f"cannot compare {describe(left)} with {describe(right)}")
    return left == right


def _floor_divided(left: Any, right: Any) -> Any:
    return left // right


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_INTEGER: dict[str, Callable[[Any, Any], Any]] = {"//": _floor_divided, "%": mod}
_TOTAL: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "==": eq, "!=": ne, **_COMPARE}
"""What has an answer for any two integers."""
_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": _quotient,
    **_INTEGER,
    "**": _power,
}
