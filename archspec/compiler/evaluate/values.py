"""Compile-time values and their arithmetic.

A static value is an int, float, bool, str, None (`none`), a tuple (a list), a symbolic dimension, a definition, a
definition with some hyperparameters bound, or an operation. Two markers represent unknown values: DYNAMIC (the value
depends on a tensor, in the first pass) and POISON (the value has a reported error; further errors are suppressed).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias, TypeGuard, cast

from archspec.compiler.resolve.unit import Definition
from archspec.core.algebra import Expression, Polynomial, atoms
from archspec.core.record import Record
from archspec.ir.module import Call, Module, Type
from archspec.ir.ops import OPERATORS, OPS, Op
from archspec.ir.table import PlainValue

_EQUALITY = ("==", "!=")
COMPARISONS = (*_EQUALITY, "<", "<=", ">", ">=")
MAX_SHOWN_LENGTH = 80
MAX_SHOWN_ITEMS = 12


class Marker:
    """An unknown value; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DYNAMIC = Marker("DYNAMIC")
POISON = Marker("POISON")


class Unknown(float):
    """A real number that depends on open hyperparameters; UNKNOWN is its only instance."""

    __slots__ = ()

    def __neg__(self) -> Unknown:
        return self

    def __str__(self) -> str:
        return "(unknown)"


UNKNOWN = Unknown("nan")
SYMBOLIC_TYPES = (Polynomial, Unknown)
"""The classes of numbers that are not compile-time constants."""


class Tensor(Record):
    """A tensor in a body: its slot and type."""

    slot: int
    type: Type


class MultipleOutputs:
    """The outputs of an application with several outputs; None for `none`."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Tensor | None, ...]) -> None:
        self.values = values


class ModuleReference(Record):
    """A layer or block of a definition, referred to by its address."""

    address: str
    module: Module


class Partial(Record):
    """A definition with the values of some of its hyperparameters, in the order of the definition."""

    definition: Definition
    values: tuple[tuple[str, Value], ...]

    @property
    def kind(self) -> str:
        """`fn`, `layer` or `block`."""
        return self.definition.kind


class Derived:
    """A number computed from the sizes of a model, with its origin (see `numbers`)."""

    form: Expression | None
    sizes: frozenset[str]


_NUMBER_TYPES = (*SYMBOLIC_TYPES, Derived)

_Static: TypeAlias = "bool | int | float | str | Polynomial | tuple[Value, ...] | Definition | Partial | Op"
Value: TypeAlias = "_Static | Tensor | MultipleOutputs | ModuleReference | Marker | None"
"""The value of an expression."""


class StaticError(Exception):
    """Undefined arithmetic; `code` is the code of the diagnostic."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def describe(value: Value) -> str:
    """Describe a value in a message: `the integer 12`, `the string "x"`, `none`."""
    kind = type_description(value)
    match kind:
        case "none":
            return "`none`"
        case "integer" | "real" | "boolean" | "string":
            return f"the {kind} {show(value)}"
        case "list":
            return f"the list {show(value)}"
        case "dimension":
            depends = isinstance(value, Polynomial) and any(atom.kind == "index" for atom in atoms(value))
            return f"the {'index' if depends else 'dimension'} {value}"
        case _:
            return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" + (
                f" `{show(value)}`" if not isinstance(value, Tensor | MultipleOutputs) else ""
            )


def type_description(value: Value) -> str:
    """Return the type of a static value or tensor, for messages."""
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
        case MultipleOutputs():
            return "group of outputs"
        case ModuleReference():
            return value.module.kind
        case Op():
            return "function"
        case Definition() | Partial():
            return "function" if value.kind == "fn" else str(value.kind)
        case tuple():
            return "list"
        case Polynomial():
            return "dimension"
        case Marker():
            return "value"


def show(value: Value) -> str:
    """Format a static value in the syntax of the language."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value if len(value) <= MAX_SHOWN_LENGTH else value[: MAX_SHOWN_LENGTH - 3] + "..."}"'
        case Op():
            return value.name
        case ModuleReference():
            return value.module.type
        case MultipleOutputs() | Tensor():
            return "..."
        case Partial():
            return f"{value.definition.name}({', '.join(f'{name} = {show(item)}' for name, item in value.values)})"
        case tuple():
            items = value
            shown = [show(item) for item in items[:MAX_SHOWN_ITEMS]]
            return f"[{', '.join([*shown, *(['...'] if len(items) > MAX_SHOWN_ITEMS else [])])}]"
        case int() | float() | Polynomial() | Marker():
            return str(value)
        case _:
            return value.name


def static_values(owner: Call | Module) -> dict[str, Value]:
    """Return the static arguments of an operation, or the hyperparameters of a module."""
    return cast("dict[str, Value]", owner.attributes if isinstance(owner, Call) else owner.hyperparameters)


def to_plain(value: Value) -> PlainValue:
    """Convert a hyperparameter for JSON; definitions and operations become names."""
    match value:
        case tuple() if is_list(value):
            return [to_plain(v) for v in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return show(value)


def value_key(value: Value) -> Hashable:
    """Return a dictionary key that distinguishes True, 1 and 1.0."""
    kind = value.__class__
    if kind is int or kind is str:
        return value
    if is_list(value):
        return (tuple, *[value_key(v) for v in value])
    if kind is float or kind is bool:
        return (kind, value)
    if isinstance(value, Partial):
        return (kind, value.definition, *[(name, value_key(item)) for name, item in value.values])
    if isinstance(value, Derived):
        return (kind, value, value.form, value.sizes)
    return value


def accepts(default: Value, value: Value) -> bool:
    """Whether `value` is allowed for a hyperparameter with this default."""
    if value is None or default is None or isinstance(value, Marker):
        return True
    expected, actual = type_description(default), type_description(value)
    if expected == actual:
        return True
    return {expected, actual} == {"layer", "block"} or (
        expected in ("real", "integer", "dimension") and actual in ("integer", "dimension")
    )


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer rather than a boolean."""
    return value.__class__ is int or (isinstance(value, Derived) and isinstance(value, int))


def is_list(value: object) -> TypeGuard[tuple[Value, ...]]:
    """Whether a value is a list: a plain tuple rather than a record."""
    return value.__class__ is tuple


def is_number(value: object) -> TypeGuard[int | float | Polynomial]:
    return value.__class__ in (int, float) or isinstance(value, _NUMBER_TYPES)


def negate(value: Value) -> Value:
    """Return `-value`. Raises StaticError."""
    if not is_number(value):
        raise StaticError("wrong-kind", f"`-` expects a number, found {describe(value)}")
    return compute_operation(OPS["neg"], (value,), "-")


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Apply a binary operator to two static values. Raises StaticError."""
    if left.__class__ is not int or right.__class__ is not int:
        if not (is_number(left) and is_number(right)):
            if operator in _EQUALITY:
                return _are_equal(left, right) == (operator == "==")
            wrong = right if is_number(left) else left
            raise StaticError("wrong-kind", f"`{operator}` expects numbers, found {describe(wrong)}")
        if isinstance(left, Polynomial) or isinstance(right, Polynomial):
            if operator in _EQUALITY and left == right:
                return operator == "=="
            if operator in COMPARISONS:
                raise StaticError("wrong-kind", f"`{left} {operator} {right}` is not a compile-time constant")
            if operator == "/":
                message = "`/` cannot divide symbolic dimensions"
                raise StaticError("wrong-kind", message, "use `//` for integer division")
    return compute_operation(OPS[OPERATORS[operator]], (left, right), operator)


def compute_operation(op: Op, values: Sequence[Value], name: str) -> Value:
    """Apply an operation to numbers; `name` is its name in the spec. Raises StaticError."""
    assert op.scalar is not None
    try:
        return op.scalar(*values)
    except OverflowError as error:
        raise StaticError("budget", str(error)) from None
    except FloatingPointError as error:
        raise StaticError("arithmetic", str(error)) from None
    except ZeroDivisionError:
        raise StaticError("arithmetic", f"division by zero in `{name}`") from None
    except TypeError as error:
        raise StaticError("wrong-kind", f"`{name}` {error}") from None
    except ValueError as error:
        raise StaticError("arithmetic", f"`{name}` is undefined for these operands: {error}") from None


def _are_equal(left: Value, right: Value) -> bool:
    """Whether two static values, at least one of which is not a number, are equal."""
    if left is None or right is None:
        return left is right
    if type_description(left) != type_description(right) and {type_description(left), type_description(right)} != {
        "layer",
        "block",
    }:
        raise StaticError("wrong-kind", f"cannot compare {describe(left)} with {describe(right)}")
    return left == right
