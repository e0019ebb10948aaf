"""Arguments of calls as arrays, and arrays of the types of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeGuard, TypeVar, cast

from archspec.core.algebra import Dim
from archspec.core.record import is_tuple
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms.elementwise import Each, constant, multiply, to_integer
from archspec.ir.normal.nodes import Element
from archspec.ir.ops.record import Scalar

if TYPE_CHECKING:
    from torch.fx import Node

T = TypeVar("T")


class UntranslatableError(Exception):
    """A module has no normal form; the message is the reason."""


Operand: TypeAlias = Array | Scalar
"""An argument of arithmetic: a tensor, or a number, boolean or size."""

Axes: TypeAlias = int | Sequence[int] | None
"""The axes that an operation works along; None, and in most operations an empty list, stands for all."""

Sizes: TypeAlias = Dim | Sequence[Dim]
"""What windows have along each spatial axis, such as their size or step; one number stands for all axes."""

Handler: TypeAlias = Callable[..., "Array | list[Array] | list[Array | None]"]
"""None stands for a result that is not computed, because only training uses it."""


def operation_name(node: Node) -> str:
    """Return the name of the operation of a node in an exported program, without its namespace; empty for others."""
    return getattr(getattr(node.target, "_schema", None), "name", "").rpartition("::")[2]


def array_of(n: Arrays, value: Operand) -> Array:
    """Return an argument as an array."""
    return value if isinstance(value, Array) else n.array((), constant(n.elements, value))


def compute_results(found: Array | Sequence[Array | None]) -> list[Array]:
    """Return the results of an operation that are computed."""
    return [array for array in as_list(found) if array is not None]


def elementwise_handler(function: Each) -> Callable[..., Array]:
    """Return the handler of an elementwise operation; `alpha` scales its second operand."""

    def call(n: Arrays, types: Sequence[Type], *values: Operand, alpha: Scalar = 1) -> Array:
        given = [array_of(n, value) for value in values]
        if alpha != 1:
            given[1] = n.each(given[1].shape, multiply, given[1], array_of(n, alpha))
        return cast_to_type(
            n, n.each(types[0].shape, function, *[as_number(n, array, types[0]) for array in given]), types[0]
        )

    return call


def as_number(n: Arrays, array: Array, result: Type) -> Array:
    """Return the operand of an operation with this result: booleans among numbers are 0 and 1."""
    if n.dtype(array) == "bool" and result.dtype != "bool":
        return n.array(array.shape, to_integer(n.elements, array.element))
    return array


def int_if_whole(value: Scalar) -> Scalar:
    """Return a number, as an integer if it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def cast_to_type(n: Arrays, array: Array, type: Type) -> Array:
    """Return an array converted to the type of a result."""
    e = n.elements
    if n.dtype(array) == type.dtype:
        return array
    if type.dtype == "real":
        return n.array(array.shape, e.real(array.element))
    if type.dtype == "int":
        return n.array(array.shape, to_integer(e, array.element))
    return n.array(array.shape, e.negation(e.is_zero(array.element)))


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list or tuple, but no record, which is a tuple of its fields."""
    return isinstance(value, list) or (is_tuple(value) and not hasattr(value, "_fields"))


def as_list(value: T | Sequence[T]) -> list[T]:
    """Return a list or tuple as a list, and anything else as a list of one."""
    return [*cast("Sequence[T]", value)] if is_list(value) else [cast("T", value)]


def unary_function(name: str) -> Each:
    """Return a function of one real that has no other form."""

    def of(e: Elements, part: Element) -> Element:
        return e.apply(name, (e.real(part),), "real")

    return of


def refuse(name: str) -> NoReturn:
    """Raise Untranslatable for the arguments of an operation."""
    raise UntranslatableError(f"the operation `aten.{name}` has no normal form with these arguments")
