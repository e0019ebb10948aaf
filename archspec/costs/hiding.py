"""Operations after a mask that leave hidden keys hidden: scores of -inf before a softmax, weights of 0 after it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from archspec.ir import Body, Call, Constant, Operand
from archspec.ops import OPS
from archspec.ops.check import is_list

_SCORES = {"add", "sub", "mul", "div", "min", "real", "float32", "dropout"}
"""Elementwise operations of scores and finite numbers with results of -inf where a score is -inf."""

_WEIGHTS = {"mul", "div", "real", "float32", "dropout", "neg", "abs", "sqrt", "sin", "tanh", "erf"}
"""Elementwise operations of weights and finite numbers with results of 0 where a weight is 0."""


def keeps_hidden(call: Call, body: Body, followed: Sequence[bool], *, softmaxed: bool = False) -> bool:
    """Whether keys that a mask has hidden are hidden in the result too, at the same places of the last axis.

    `followed` are the operands that are scores, or weights if `softmaxed`.
    """
    if OPS[call.type].group == "Shape":
        return followed[0] and _keeps_places(call, body)
    others = [operand for (_, operand), own in zip(call.inputs, followed, strict=True) if not own]
    if call.type == "where":
        return all(_is_hidden(operand, body, softmaxed) for operand in others[1:])
    if call.type == "max" and not softmaxed:
        return all(_is_hidden(operand, body, softmaxed) for operand in others)
    if call.type in ("add", "sub") and softmaxed:
        return not others
    return call.type in (_WEIGHTS if softmaxed else _SCORES)


def _is_hidden(operand: Operand, body: Body, softmaxed: bool) -> bool:
    """Whether an operand is the score or the weight of a hidden key."""
    if isinstance(operand, Constant):
        return operand.value in ((0,) if softmaxed else (-inf,))
    return not softmaxed and any(call.type == "lowest" and call.first == operand for call in body.calls)


def _keeps_places(call: Call, body: Body) -> bool:
    """Whether an operation keeps the last two axes, those of queries and keys, or only adds or drops last keys."""
    operand, result = call.inputs[0][1], call.outputs[0]
    if not isinstance(operand, int) or result is None:
        return False
    shape = body.types[operand].shape
    settings = OPS[call.type].settings(call.attributes)
    rank = max(len(shape), len(result.shape))
    moved = _moved(settings)
    if moved is None:  # a new shape
        return shape[-2:] == result.shape[-2:]
    if "order" in settings:
        return [axis % rank for axis in moved[-2:]] == [rank - 2, rank - 1]
    axes = {axis % rank for axis in moved}
    is_end = call.type == "concat" or (
        call.type == "slice" and settings["start"] in (0, None) and settings["step"] == 1
    )
    return axes.isdisjoint({rank - 2, rank - 1}) or (is_end and axes == {rank - 1})


def _moved(settings: dict[str, object]) -> list[int] | None:
    """Return the axes that an operation of shapes names; None if it names none."""
    named = [settings[name] for name in ("order", "a", "b", "axis") if name in settings]
    items = [item for value in named for item in (value if is_list(value) else [value])]
    return [item for item in items if isinstance(item, int)] if named else None
