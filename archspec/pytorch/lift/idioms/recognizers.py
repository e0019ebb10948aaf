"""Idioms of a few operations, recognized when the last one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from archspec.core.algebra import Dim
from archspec.ir.ops import OPS
from archspec.pytorch.lift.idioms.attention import recognize_attention
from archspec.pytorch.lift.idioms.experts import gated_experts, merge_expert_bias, product_of_experts
from archspec.pytorch.lift.idioms.indexing import (
    along_axis,
    at_places,
    one_place,
    rows_of_each,
    rows_of_table,
    token_at,
    whole_tensor,
)
from archspec.pytorch.lift.idioms.patterns import recognize_function
from archspec.pytorch.lift.idioms.rotary import partial_rotation, rotation
from archspec.pytorch.lift.values.builder import Recognizer, SpecBuilder
from archspec.pytorch.values.values import Operand, Value


def _other_side(b: SpecBuilder, made: Value, test: Operand, x: Operand, y: Operand) -> Value | None:
    """Return `where(not test, x, y)` as `where(test, y, x)`."""
    if not isinstance(test, Value):
        return None
    view = b.unwritten(test)
    root, _ = b.layout(view)
    if root.op != "not":
        return None
    return b.op("where", b.laid_out(b.unwritten(root.operands[0]), view, root), y, x)


def _condition(b: SpecBuilder, made: Value, x: Operand, number: Operand) -> Value | None:
    """Return where a tensor is not 0 as the test that it was made of, if it is 0 where that is false."""
    if not isinstance(x, Value) or isinstance(number, Value) or number != 0:
        return None
    root, _ = b.layout(b.unwritten(x))
    test = root.args[0] if root.op in ("where", "int", "real") else None
    if isinstance(test, Value) and test.dtype == "bool" and test.shape == root.shape:
        return b.laid_out(b.unwritten(test), b.unwritten(x), root)
    return None


def _first_token(b: SpecBuilder, made: Value, x: Value, axis: int, index: Dim) -> Value | None:
    is_first = len(x.shape) == 3 and axis == 1 and index == 0
    return b.function("first", [x], made.shape, x.dtype) if is_first else None


def _joined_parts(b: SpecBuilder, made: Value, *parts: Value, axis: int) -> Value | None:
    """Return slices of a concatenation, joined again, as its parts are joined, if the slices end where parts do."""
    flat = [piece for part in parts for piece in _parts_of_slice(part, axis % len(made.shape))]
    return b.op("concat", *flat, axis=axis) if flat != [*parts] else None


def _parts_of_slice(x: Value, axis: int) -> list[Value]:
    """Return the parts of a concatenation that a slice of it consists of; otherwise the value itself."""
    whole = x.operands[0] if x.op == "slice" else x
    place = whole.settings.get("axis")
    if x.op != "slice" or whole.op != "concat" or not isinstance(place, int) or place % len(whole.shape) != axis:
        return [x]
    if x.integer("axis") % len(x.shape) != axis or x.settings.get("step", 1) != 1:
        return [x]
    ends = [*accumulate([part.shape[axis] for part in whole.operands], initial=0)]
    first, last = x.settings.get("start", 0), x.settings.get("stop", whole.shape[axis])
    return whole.operands[ends.index(first) : ends.index(last)] if first in ends and last in ends else [x]  # pyright: ignore


_OF_OPERATIONS: Mapping[str, Sequence[Recognizer]] = {
    "add": (rotation, merge_expert_bias),
    "attention": (recognize_attention,),
    "concat": (partial_rotation, rotation),
    "index": (rows_of_table, one_place, whole_tensor, token_at, rows_of_each, along_axis, at_places),
    "matmul": (product_of_experts,),
    "ne": (_condition,),
    "pick": (_first_token,),
    "slice_scatter": (_joined_parts,),
    "stack": (rotation,),
    "sum": (gated_experts,),
    "where": (_other_side,),
}

_ELEMENTWISE = [name for name, op in OPS.items() if op.group == "Elementwise"]

RECOGNIZERS: Mapping[str, Sequence[Recognizer]] = {
    **_OF_OPERATIONS,
    **{name: (*_OF_OPERATIONS.get(name, ()), recognize_function) for name in _ELEMENTWISE},
}
"""By operation. They take the builder, its result, its arguments and its settings."""
