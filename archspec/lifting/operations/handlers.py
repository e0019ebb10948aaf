"""What the translations of operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
