"""The check that the ranks of tensor parallelism compute what the entire model does, up to sums over the ranks.

The computations of the model and of a rank have the same operations; an axis is divided where its size differs. Column-
and row-parallel layers, heads and attention products follow from that. A divided axis may end only in a product, which
is then summed over the ranks, or in a lookup in a table that is divided by rows. A norm or softmax along it, or an
operation that cannot be divided, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim
from archspec.core.diagnostics import ArchError, Span, make_error
from archspec.ir.module import Body, Call, Type
from archspec.ir.ops import OPS
from archspec.ir.ops.check import check_axes
from archspec.ir.ops.record import Op

_GROWING_HELP = "let a hyperparameter decide the size of a head, such as `size = hidden // heads`"


def plan_error(reason: str, span: Span | None = None, help: str | None = None) -> ArchError:
    """Return the error to raise for a model that cannot be divided."""
    return make_error("bad-plan", f"tensor parallelism is unknown for this model: {reason}", span, help=help)


def divided_axes(
    shape: Sequence[Dim], rank_shape: Sequence[Dim], ranks: int, name: str, span: Span | None = None
) -> set[int]:
    """Return the axes of a shape that a rank divides. Raises ArchError (`bad-plan`) for an axis of another size."""
    if len(shape) != len(rank_shape):
        raise plan_error(f"{name} has other axes on a rank", span)
    axes = {index for index, (size, rows) in enumerate(zip(shape, rank_shape, strict=True)) if size != rows}
    for index in axes:
        size, rows = shape[index], rank_shape[index]
        if not isinstance(size, int) or not isinstance(rows, int) or rows != -(-size // ranks):
            raise plan_error(f"{name} has the size {size}, and {rows} on a rank", span, _GROWING_HELP)
    return axes


def check_division(model_body: Body, rank_body: Body, ranks: int) -> None:
    """Check that a rank computes its part of what the model does. Raises ArchError (`bad-plan`)."""
    _Division(ranks).check(model_body, rank_body)


class _Division:
    """A walk over the bodies of a model and of a rank; equal pairs are checked once."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._checked: set[tuple[int, int]] = set()

    def check(self, model_body: Body, rank_body: Body) -> None:
        """Check the operations of a body and of those that it calls."""
        if model_body is rank_body or (id(model_body), id(rank_body)) in self._checked:
            return
        self._checked.add((id(model_body), id(rank_body)))
        if len(model_body.calls) != len(rank_body.calls):
            raise plan_error("a rank has other operations", model_body.span)
        for call, rank_call in zip(model_body.calls, rank_body.calls, strict=True):
            if call.type != rank_call.type or (call.body is None) != (rank_call.body is None):
                raise plan_error(f"a rank computes `{rank_call.type}` in place of `{call.type}`", call.span)
            if call.body is not None and rank_call.body is not None:
                self.check(call.body, rank_call.body)
            else:
                self._check_operation(call, model_body, rank_call, rank_body)

    def _check_operation(self, call: Call, model_body: Body, rank_call: Call, rank_body: Body) -> None:
        op = OPS[call.type]
        operands = [
            (model_body.types[slot], self._axes(model_body.types[slot], rank_body.types[rank_slot], call))
            for (_, slot), (_, rank_slot) in zip(call.inputs, rank_call.inputs, strict=True)
            if isinstance(slot, int) and isinstance(rank_slot, int)
        ]
        results = [
            (type, self._axes(type, rank_type, call))
            for type, rank_type in zip(call.outputs, rank_call.outputs, strict=True)
            if type is not None and rank_type is not None
        ]
        is_input_divided, is_result_divided = any(axes for _, axes in operands), any(axes for _, axes in results)
        if op.macs is not None or op.alone:
            return
        is_lookup = any(input.indexes for input in op.inputs)
        ends_axis = is_input_divided and (not is_result_divided or self._is_along(op, call, *operands[0]))
        if ends_axis and not is_lookup:
            raise plan_error(f"`{op.symbol or op.name}` needs all of an axis that is divided", call.span)
        if op.rearranges and len(results) == 1 and self._merges_whole_axis(operands, results[0][0]):
            raise plan_error("heads that share keys and values would be on several ranks", call.span)

    def _axes(self, type: Type, rank_type: Type, call: Call) -> set[int]:
        return divided_axes(type.shape, rank_type.shape, self._ranks, f"`{call.type}`", call.span)

    def _is_along(self, op: Op, call: Call, type: Type, divided: set[int]) -> bool:
        """Whether an operation combines elements along a divided axis of its first input."""
        if op.group not in ("Along an axis", "Weights and positions"):
            return False
        names = {attribute.name for attribute in op.attributes}
        if "axis" in names:
            return bool(divided & {*check_axes(op.settings(call.attributes)["axis"], type)})
        return len(type.shape) - 1 in divided or bool(divided and names & {"groups", "kernel"})

    def _merges_whole_axis(self, operands: Sequence[tuple[Type, set[int]]], result: Type) -> bool:
        """Whether an operation merges an axis that is whole with a later one that is divided."""
        for type, divided in operands:
            for axis in divided if len(result.shape) < len(type.shape) else ():
                before, size = type.shape[axis - 1] if axis else 1, type.shape[axis]
                if isinstance(before, int) and before > 1 and axis - 1 not in divided and before * size in result.shape:
                    return True
        return False
