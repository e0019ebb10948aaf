"""Rotary positions: the function `rotate` of the library, recognized by its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.lifting.values import Operand, Value

if TYPE_CHECKING:
    from archspec.lifting.builder import Builder


def rotation(builder: Builder, a: Operand, b: Operand) -> Value | None:
    """Return the sum of `a` and `b` as a rotation: x * cosines plus x with its halves exchanged * sines."""
    if not (isinstance(a, Value) and isinstance(b, Value) and a.op == b.op == "mul" and len(a.shape) == 4):
        return None
    x = next((value for value in a.operands if value.shape == a.shape), None)
    cosines = next((_of_angles(builder, value, "cos") for value in a.operands if value is not x), None)
    sines = next((_of_angles(builder, value, "sin") for value in b.operands if value.shape != b.shape), None)
    if x is None or cosines is None or sines is None:
        return None
    halves = next((value for value in b.operands if value.op == "concat"), None)
    if halves is None or not _is_turned(halves, x):
        return None
    return builder.made("rotate", [x, cosines, sines], builder.op_array("add", a, b), {}, "std")


def _is_turned(joined: Value, x: Value) -> bool:
    """Whether a value is the second half of another, negated, and then the first half."""
    parts = joined.operands
    if len(parts) != 2 or parts[0].op != "neg":
        return False
    second, first, half = parts[0].operands[0], parts[1], x.shape[-1] // 2
    return (
        first.op == second.op == "slice"
        and first.operands == second.operands == [x]
        and first.shape == second.shape
        and first.shape[-1] == half
        and second.settings.get("start") == half
        and not first.settings.get("start")
    )


def _of_angles(builder: Builder, value: Value, name: str) -> Value | None:
    """Return the sines or cosines of the angles of one half, from those of both."""
    value = _bare(value)
    if value.op != name:
        return None
    joined = _bare(value.operands[0])
    halves = [_bare(part) for part in joined.operands]
    if joined.op != "concat" or len(halves) != 2 or halves[0] is not halves[1] or len(halves[0].shape) != 2:
        return None
    return builder.once(name, halves[0])


def _bare(value: Value) -> Value:
    """Return a value without axes of size 1 before it."""
    while value.op == "reshape" and value.operands[0].shape == tuple([size for size in value.shape if size != 1]):
        value = value.operands[0]
    return value
