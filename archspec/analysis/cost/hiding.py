"""Operations after a mask that leave hidden keys hidden: scores of -inf before a softmax, weights of 0 after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf

from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.ops import OPS, Op
from archspec.ir.ops.check import is_list

_ANY = (2.0, -3.0)
"""Numbers that stand for those of a tensor, whose signs are not known."""


def keeps_hidden(call: Call, body: Body, followed: Sequence[bool], *, softmaxed: bool = False) -> bool:
    """Whether keys that a mask has hidden are hidden in the result too, at the same places of the last axis.

    `followed` are the operands that are scores, or weights if `softmaxed`.
    """
    op, hidden = OPS[call.type], 0.0 if softmaxed else -inf
    if op.group == "Shape":
        return followed[0] and _keeps_places(call, body)
    if op.trains:
        return followed[0]
    values = [
        (hidden,) if own else _values(operand, body) for (_, operand), own in zip(call.inputs, followed, strict=True)
    ]
    if op.attention == "mask":
        return all(value == hidden for side in values[1:] for value in side)
    return all(_result(op, each) == hidden for each in product(*values))


def _values(operand: Operand, body: Body) -> tuple[float, ...]:
    """Return numbers that stand for an operand; the least finite number hides keys as -inf does."""
    if isinstance(operand, Constant):
        return (operand.value,) if isinstance(operand.value, int | float) else _ANY
    is_lowest = any(OPS[call.type].alone and call.first == operand for call in body.calls if call.type in OPS)
    return (-inf,) if is_lowest else _ANY


def _result(op: Op, values: Sequence[float]) -> object:
    """Return what an elementwise operation makes of numbers; None if that is undefined."""
    try:
        return op.scalar(*values) if op.scalar is not None else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def _keeps_places(call: Call, body: Body) -> bool:
    """Whether an operation keeps the last two axes, those of queries and keys, or only adds or drops last keys."""
    operand, result = call.inputs[0][1], call.outputs[0]
    assert isinstance(operand, int) and result is not None
    shape = body.types[operand].shape
    settings = OPS[call.type].settings(call.attributes)
    rank = max(len(shape), len(result.shape))
    moved = _moved_axes(settings)
    if moved is None:  # a new shape
        return shape[-2:] == result.shape[-2:]
    if "order" in settings:
        return [axis % rank for axis in moved[-2:]] == [rank - 2, rank - 1]
    axes = {axis % rank for axis in moved}
    is_joined = OPS[call.type].rearranges and len(call.inputs) > 1 and len(shape) == len(result.shape)
    is_cut = settings.get("start", 1) in (0, None) and settings["step"] == 1
    is_end = is_joined or is_cut
    return axes.isdisjoint({rank - 2, rank - 1}) or (is_end and axes == {rank - 1})


def _moved_axes(settings: dict[str, object]) -> list[int] | None:
    """Return the axes that an operation of shapes names; None if it names none."""
    named = [settings[name] for name in ("order", "a", "b", "axis") if name in settings]
    items = [item for value in named for item in (value if is_list(value) else [value])]
    return [item for item in items if isinstance(item, int)] if named else None
