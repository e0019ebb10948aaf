"""The table of PyTorch's calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.pytorch.calls import (
    elementwise,
    images,
    layers,
    norms,
    placement,
    products,
    recurrent,
    reductions,
    shape,
    windows,
)
from archspec.pytorch.calls.complex import ComplexResult, ComplexValue, call_complex, has_complex
from archspec.pytorch.calls.rows import Results, Row, Types, convert
from archspec.pytorch.values.arguments import UntranslatableError, as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

CALLS: dict[str, Row] = {
    name: row
    for group in (
        elementwise,
        shape,
        placement,
        layers,
        products,
        norms,
        reductions,
        windows,
        images,
        recurrent,
    )
    for row, called in group.NAMES.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""


def call(
    b: Builder, name: str, types: Types, args: Sequence[object], keywords: Mapping[str, object]
) -> Results | ComplexResult | list[ComplexValue]:
    """Return the results of a call, which PyTorch gives these types. Raises Untranslatable if it has no normal form."""
    row = CALLS.get(name)
    is_complex = has_complex(args) or any(type.dtype == "complex" for type in types)
    if row is None and not is_complex:
        raise UntranslatableError(f"the operation `aten.{name}` has no normal form")
    try:
        if is_complex:
            return call_complex(name, row, b, types, *args, **keywords)
        assert row is not None
        if len(types) == 1 and 0 in types[0].shape:
            return b.empty(types[0].shape, types[0].dtype)
        results = row(b, types, *args, **keywords)
    except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError):  # the row lacks these arguments
        refuse(name)
    if isinstance(results, Value):
        results = convert(b, results, types[0].dtype)
    for value, type in zip(as_list(results), types, strict=True):
        if value is not None and (value.shape, value.dtype) != (type.shape, type.dtype):
            ours = f"{value.dtype} {list(value.shape)}"
            raise UntranslatableError(f"`aten.{name}` gives {type.dtype} {list(type.shape)}, its normal form {ours}")
    return results
