"""The core of attention, operation by operation: dropout(softmax(query key^T * scale + biases, masked)) value.

`attention.py` follows scores through any operations and bodies. A core is exact: it has no other operations, and all
of them are in one body.
"""

from __future__ import annotations

from math import inf

from archspec.core.record import Record
from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.ops import OPS
from archspec.ir.structure.terms import is_lower_triangle

_SCORES = ("score", "scale", "divisor", "cast", "mask", "bias")
"""Roles of operations after which scores may change further."""


class CoreStep(Record):
    """An operation of a core, on the result of another one, which is its operand number `position`.

    The roles are "transpose" (of keys), "score" (the product of queries and keys), "scale" and "divisor" (numbers),
    "cast", "mask" (-inf where a mask is false), "bias" (the sum with a tensor), "limit" (the least finite number
    instead of -inf), "weights" (softmax), "drop" (dropout) and "mix" (the product with values). `rank` is the number of
    axes of a mask or bias; `is_causal` is whether a mask hides later keys and no others, for any sizes.
    """

    call: Call
    role: str
    position: int = 0
    rank: int = 0
    is_causal: bool = False


def read_steps(body: Body) -> dict[Operand, CoreStep]:
    """Return the operations in a body that belong to a core or begin like one, by the slot of their result."""
    steps: dict[Operand, CoreStep] = {}
    origins: dict[Operand, Call] = {}
    for call in body.calls:
        origins[call.first] = call
        if call.body is not None:
            continue
        operands = [operand for _, operand in call.inputs]
        shapes = [body.types[operand].shape if isinstance(operand, int) else () for operand in operands]
        if OPS[call.type].attention == "product":
            before, keys = steps.get(operands[0]), origins.get(operands[1])
            if [len(shape) for shape in shapes] != [4, 4]:
                continue
            if before is not None and before.role in ("weights", "drop"):
                steps[call.first] = CoreStep(call, "mix")
            elif keys is not None and _is_transpose(keys):
                steps |= {operands[1]: CoreStep(keys, "transpose"), call.first: CoreStep(call, "score")}
            continue
        for position, before in [(i, steps[operand]) for i, operand in enumerate(operands) if operand in steps]:
            other = next((i for i in range(len(operands)) if i != position), position)
            origin, shape = origins.get(operands[other]), shapes[other]
            role = _find_role(call, position, operands[other], origin, before.role)
            if role and call.outputs == before.call.outputs and call.first not in steps:
                is_causal = shape == shapes[position][-2:] and origin is not None and _is_causal_mask(origin)
                steps[call.first] = CoreStep(call, role, position, len(shape), role == "mask" and is_causal)
    return steps


def _is_transpose(call: Call) -> bool:
    """Whether a call exchanges the last two of four axes."""
    if call.body is not None or call.type != "transpose":
        return False
    settings = OPS[call.type].settings(call.attributes)
    return {settings["a"], settings["b"]} in ({-2, -1}, {2, 3}, {-2, 3}, {2, -1})


def _is_causal_mask(call: Call) -> bool:
    return call.kind == "fn" and call.body is not None and is_lower_triangle(call.body)


def _find_role(call: Call, position: int, other: Operand, origin: Call | None, before: str) -> str:
    """Return the role of an operation on the operand at `position`, which has the role `before`; "" for none.

    `origin` is the call that computes the `other` operand.
    """
    op = OPS[call.type]
    if op.casts and not op.widens:
        return before  # a real is one already
    if before == "weights":
        return "drop" if op.trains and op.attributes else ""
    if op.attention == "weights" and before in (*_SCORES, "limit"):
        return "weights" if op.settings(call.attributes)["axis"] in (-1, 3) else ""
    if before not in _SCORES:
        return ""
    if op.widens:
        return "cast"
    if op.attention == "mask":
        return "mask" if position == 1 and call.inputs[2][1] == Constant(-inf) else ""
    match call.type, other:
        case "add", int():
            return "bias"
        case "max", int() if origin is not None and origin.body is None and OPS[origin.type].alone:
            return "limit"
        case "mul", Constant() if before == "score":
            return "scale"
        case "div", Constant() if before == "score" and position == 0:
            return "divisor"
        case _:
            return ""
