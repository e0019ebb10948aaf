"""The core of attention, operation by operation: dropout(softmax(query key^T * scale + biases, masked)) value.

`attention.py` follows scores through any operations and bodies. A core is exact: it has no other operations, and all
of them are in one body.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from archspec.core.record import Record
from archspec.ir.module import Body, Call, Constant, Operand, Type
from archspec.ir.ops import OPS

_SCORES = ("score", "scale", "divisor", "cast", "mask", "bias")
"""Roles of operations after which scores may change further."""


class CoreStep(Record):
    """An operation of a core, on the result of another one, which is its operand number `position`.

    The roles are "transpose" (of keys), "score" (the product of queries and keys), "scale" and "divisor" (numbers),
    "cast", "mask" (-inf where a mask is false), "bias" (the sum with a tensor), "limit" (the least finite number
    instead of -inf), "weights" (softmax), "drop" (dropout) and "mix" (the product with values). `other` is the type of
    a mask or bias.
    """

    call: Call
    role: str
    position: int = 0
    other: Type | None = None


def read_steps(body: Body) -> dict[Operand, CoreStep]:
    """Return the operations in a body that belong to a core or begin like one, by the slot of their result."""
    steps: dict[Operand, CoreStep] = {}
    origins: dict[Operand, Call] = {}
    for call in body.calls:
        if call.body is not None:
            continue
        origins[call.first] = call
        operands = [operand for _, operand in call.inputs]
        types = [body.types[operand] if isinstance(operand, int) else None for operand in operands]
        if OPS[call.type].attention == "product":
            before, keys = steps.get(operands[0]), origins.get(operands[1])
            if any(type is None or len(type.shape) != 4 for type in types):
                continue
            if before is not None and before.role in ("weights", "drop"):
                steps[call.first] = CoreStep(call, "mix")
            elif keys is not None and _is_transpose(keys):
                steps |= {operands[1]: CoreStep(keys, "transpose"), call.first: CoreStep(call, "score")}
            continue
        for position, operand in enumerate(operands):
            if operand in steps and call.first not in steps and call.outputs == (types[position],):
                other = next((i for i in range(len(operands)) if i != position), position)
                role = _find_role(call, position, operands[other], steps[operand].role, origins)
                if role:
                    steps[call.first] = CoreStep(call, role, position, types[other])
    return steps


def _is_transpose(call: Call) -> bool:
    """Whether a call exchanges the last two of four axes."""
    settings = OPS[call.type].settings(call.attributes)
    return call.type == "transpose" and {settings["a"], settings["b"]} in ({-2, -1}, {2, 3}, {-2, 3}, {2, -1})


def _find_role(call: Call, position: int, other: Operand, before: str, origins: Mapping[Operand, Call]) -> str:
    """Return the role of an operation on the operand at `position`, which has the role `before`; "" for none."""
    op = OPS[call.type]
    if op.casts and not op.widens:
        return before  # a real is one already
    if before == "weights":
        return "drop" if op.trains else ""
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
        case "max", int() if other in origins and OPS[origins[other].type].alone:
            return "limit"
        case "mul", Constant() if before == "score":
            return "scale"
        case "div", Constant() if before == "score" and position == 0:
            return "divisor"
        case _:
            return ""
