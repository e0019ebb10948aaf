"""Checks that shape rules share: hyperparameters, element types, and sizes.

Sizes that must match are compared as expressions. A size that only needs to be large enough (the axis of a slice, the
image of a convolution) is an error only if it is too small for all values of its symbols. `collect_undecided_sizes`
returns the sizes that are too small for some values, for formulas.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeGuard

from archspec.core.algebra import MAX_SIZE, Dim, Polynomial, bounds, has_lower_bound
from archspec.ir.module import Type

Shape: TypeAlias = tuple[Dim, ...]

MAX_DIMENSIONS = 64
"""Maximum number of axes of a tensor."""

_CAST_HELP = "convert it with `int(x)` or `real(x)`, or select elements with `where(mask, a, b)`"


class OpError(Exception):
    """An operation cannot be applied: a message, the invalid input or hyperparameter, and a suggested fix."""

    def __init__(self, message: str, argument: str | None = None, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.help = help


# Formatting -----------------------------------------------------------------------------------------------------------


def format_shape(shape: Iterable[Dim]) -> str:
    """Format a shape in the syntax of the language."""
    return f"[{', '.join(map(str, shape))}]"


def format_type(type: Type) -> str:
    """Format a type for messages."""
    return f"{type.dtype} {format_shape(type.shape)}"


def describe(value: object) -> str:
    """Describe a static value in messages."""
    if value is None:
        return "`none`"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) <= MAX_SIZE else "an integer that does not fit in 64 bits"
    if isinstance(value, float):
        return f"the real {value}"
    if isinstance(value, str):
        return f'the string "{value}"' if len(value) <= 40 else "a string"
    if isinstance(value, Polynomial):
        return f"the dimension {value}"
    return "a list" if is_list(value) else "a definition"


def explain_size_mismatch(a: Dim, b: Dim) -> str:
    """Explain why two sizes are not equal."""
    return f"{a} != {b}" if isinstance(a, int) and isinstance(b, int) else f"{a} is not known to equal {b}"


# Hyperparameters ------------------------------------------------------------------------------------------------------


def is_list(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether a static value is a list: a plain tuple rather than a record."""
    return value.__class__ is tuple


def check_integer(value: object, argument: str, minimum: int = -MAX_SIZE) -> int:
    """Check for a compile-time integer of at least `minimum`."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_SIZE:
        raise OpError(f"expects an integer as `{argument}`, found {describe(value)}", argument)
    if value < minimum:
        raise OpError(f"expects `{argument}` to be at least {minimum}, found {value}", argument)
    return value


def check_axis(value: object, type: Type, argument: str = "axis") -> int:
    """Return the index from 0 of an axis that may be counted from the end."""
    axis, rank = check_integer(value, argument), len(type.shape)
    if not -rank <= axis < rank:
        axes = f"use an axis from 0 to {rank - 1}, or from -{rank} to -1 to count from the end"
        help = "use a tensor with at least one axis" if rank == 0 else axes
        raise OpError(f"cannot use axis {axis}: it is out of range for {format_type(type)}", argument, help)
    return axis % rank


def check_axes(value: object, type: Type) -> frozenset[int]:
    """Return the axes that an integer or a list of integers specifies."""
    if not is_list(value):
        return frozenset([check_axis(value, type)])
    axes = [check_axis(axis, type) for axis in value]
    if not axes or len({*axes}) < len(axes):
        raise OpError("expects one axis or a list of different axes", "axis")
    return frozenset(axes)


def check_boolean(value: object, argument: str) -> bool:
    """Check for a boolean."""
    if not isinstance(value, bool):
        raise OpError(f"expects a boolean as `{argument}`, found {describe(value)}", argument)
    return value


def check_dimension(value: object, argument: str) -> Dim:
    """Check for an integer or a symbolic dimension."""
    return value if isinstance(value, Polynomial) else check_integer(value, argument)


def check_amount(value: object, argument: str, minimum: int) -> Dim:
    """Check for an integer of at least `minimum`, or a dimension that is never below it."""
    return (
        value
        if isinstance(value, Polynomial) and has_lower_bound(value, minimum)
        else check_integer(value, argument, minimum)
    )


def per_axis_values(value: object, count: int, argument: str, minimum: int) -> list[Dim]:
    """Return one integer or dimension per spatial axis, from a single value or a list."""
    items = value if is_list(value) else (value,) * count
    if len(items) != count:
        message = f"expects an integer or a list of {count} as `{argument}`, found a list of {len(items)}"
        raise OpError(message, argument)
    return [check_amount(item, argument, minimum) for item in items]


def check_size(value: object, argument: str) -> Dim:
    """Check for a size: at least 1, or symbolic."""
    size = check_dimension(value, argument)
    if is_certainly_below(size, 1):
        help = "write each size: none is inferred" if size == -1 else None
        raise OpError(f"expects sizes of at least 1 as `{argument}`, found {size}", argument, help)
    return size


def check_shape(shape: object) -> Shape:
    """Check for a list of sizes."""
    if not is_list(shape):
        raise OpError(f"expects a list of sizes as `shape`, found {describe(shape)}", "shape")
    if len(shape) > MAX_DIMENSIONS:
        raise OpError(f"expects at most {MAX_DIMENSIONS} sizes as `shape`, found {len(shape)}", "shape")
    return tuple([check_size(size, "shape") for size in shape])


def is_certainly_below(value: Dim, minimum: int) -> bool:
    """Whether `value < minimum` for all values of the symbols."""
    if isinstance(value, int):
        return value < minimum
    low, high = bounds(value)
    if high is not None and high < minimum:
        return True
    pending = _undecided.get()
    if pending is not None and (low is None or low < minimum):
        pending.append((value, minimum))
    return False


_undecided: ContextVar[list[tuple[Dim, int]] | None] = ContextVar("undecided", default=None)


@contextmanager
def collect_undecided_sizes() -> Generator[list[tuple[Dim, int]]]:
    """Collect the symbolic sizes that pass a check inside but may be too small, each with its minimum."""
    pending: list[tuple[Dim, int]] = []
    token = _undecided.set(pending)
    try:
        yield pending
    finally:
        _undecided.reset(token)


def check_non_negative(value: object, argument: str) -> float:
    """Check for a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
        raise OpError(f"expects a number of at least 0 as `{argument}`, found {describe(value)}", argument)
    return value


# Element types --------------------------------------------------------------------------------------------------------


def check_elements(elements: str, argument: str, type: Type) -> None:
    """Check that an input accepts a tensor's elements: "int", "bool" or "number" (an int or real)."""
    if elements == "number":
        if type.dtype == "bool":
            raise OpError(f"expects numbers, found {format_type(type)}", argument, _CAST_HELP)
    elif type.dtype != elements:
        help = "compare it with a number, as in `x != 0`" if elements == "bool" else "convert it with `int(x)`"
        raise OpError(f"expects {elements} elements as `{argument}`, found {format_type(type)}", argument, help)


def check_unmixed(operands: Sequence[tuple[str, Type]]) -> None:
    """Check that named operands are all boolean or all numbers."""
    for argument, type in operands[1:]:
        if (type.dtype == "bool") != (operands[0][1].dtype == "bool"):
            raise OpError("cannot mix booleans and numbers", argument, _CAST_HELP)


def promote_types(dtypes: Collection[str]) -> str:
    """Return the common element type of several types that do not mix booleans and numbers."""
    return "real" if "real" in dtypes else "int" if "int" in dtypes else "bool"


def element_type(value: object) -> str:
    """Return the element type of a number, boolean or symbolic dimension, or of a list of them."""
    if is_list(value):
        return promote_types([element_type(item) for item in value])
    return "bool" if isinstance(value, bool) else "real" if isinstance(value, float) else "int"


# Shapes ---------------------------------------------------------------------------------------------------------------


def broadcast_shapes(left: Shape, right: Shape, argument: str) -> Shape:
    """Broadcast two shapes, aligned at the last axis, with sizes equal or 1; `argument` names the right one."""
    if left == right or not right:
        return left
    rank = max(len(left), len(right))
    result: list[Dim] = []
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    for axis, (a, b) in enumerate(pairs, -rank):
        if a != b and a != 1 and b != 1:
            aligned = "; shapes are aligned at the last axis" if len(left) != len(right) else ""
            help = f"make the sizes of axis {axis} equal, or one of them 1{aligned}"
            raise OpError(
                f"cannot broadcast {format_shape(left)} with {format_shape(right)}: {explain_size_mismatch(a, b)}",
                argument,
                help,
            )
        result.append(b if a == 1 else a)
    return tuple(result)


def check_rank(type: Type, minimum: int, argument: str) -> Shape:
    """Return the shape of a tensor after checking that it has at least `minimum` axes."""
    if len(type.shape) < minimum:
        axes = f"{minimum} axes" if minimum > 1 else "one axis"
        raise OpError(f"expects a tensor with at least {axes} as `{argument}`, found {format_type(type)}", argument)
    return type.shape


def replace_axis_size(shape: Shape, axis: int, *sizes: Dim) -> Shape:
    """Return a shape with `sizes` in place of one axis."""
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


def check_exact_shape(shape: Shape, type: Type, argument: str) -> None:
    """Check that a tensor has the shape `shape`."""
    if type.shape != shape:
        pairs = zip(type.shape, shape, strict=False)
        reason = next((explain_size_mismatch(a, b) for a, b in pairs if a != b), "the number of axes differs")
        raise OpError(
            f"expects shape {format_shape(shape)} for `{argument}`, found {format_shape(type.shape)}: {reason}",
            argument,
        )


def check_same_size(size: Dim, expected: Dim, argument: str, expectation: str) -> None:
    """Check that a size of the input `argument` equals `expected`; `expectation` describes the sizes."""
    if size != expected:
        raise OpError(f"expects {expectation}: {explain_size_mismatch(size, expected)}", argument)
