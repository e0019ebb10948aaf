"""What the translations of operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from archspec.equivalence.calls.values import Untranslatable
from archspec.ir import Type
from archspec.lifting.builder import Builder
from archspec.lifting.values import Value

Handler: TypeAlias = Callable[..., Any]
Types: TypeAlias = Sequence[Type]


def converted(b: Builder, x: Any, dtype: str) -> Any:
    """Return a value converted to an element type."""
    if not isinstance(x, Value) or x.dtype == dtype:
        return x
    return b.op("ne", x, 0 if x.dtype == "int" else 0.0) if dtype == "bool" else b.op(dtype, x)


def number_of(b: Builder, x: Any) -> Any:
    """Return an operand of arithmetic: booleans are 0 and 1."""
    return (
        converted(b, x, "int") if isinstance(x, Value) and x.dtype == "bool" else int(x) if isinstance(x, bool) else x
    )


def sliced(b: Builder, x: Value, axis: int, first: Any, last: Any) -> Value:
    """Return the elements along an axis from one index to another."""
    return b.op("slice", x, axis=axis, start=first, stop=last)


def whole(size: Any) -> int:
    """Return the size of an axis that is resized."""
    if not isinstance(size, int):
        raise Untranslatable("it resizes an axis whose size is a dimension")
    return size
