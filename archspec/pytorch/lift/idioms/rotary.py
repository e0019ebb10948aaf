"""Rotary positions: the function `rotate` of the library, recognized by its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.pytorch.lift.notation.notation import RESULTS
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Operand, Setting, Value, live_values

if TYPE_CHECKING:
    from archspec.pytorch.lift.values.builder import SpecBuilder


# Tables of rotary positions for longer contexts: the functions of the library that make cosines and sines.

TABLES = {"llama3_frequencies": "llama3_scaling", "yarn_frequencies": "yarn_scaling"}
"""Functions that make tables of cosines and sines, by those that make the frequencies of these."""

NAMES = RESULTS["yarn_scaling"]


def rewrite_rotary_scaling(b: SpecBuilder, outputs: Sequence[Value]) -> None:
    """Replace the tables of rotations by the results of the functions that scale positions."""
    values = live_values(outputs)
    pairs = dict.fromkeys([(value.operands[1], value.operands[2]) for value in values if _is_rotation(value)])
    for tables in pairs:
        outer, b.frame = b.frame, tables[0].frame
        made = _scaled(b, *tables)
        b.frame = outer
        for turn, (table, name) in enumerate(zip(tables, NAMES, strict=True) if made is not None else ()):
            part = b.made("part", [made], table.array, {"index": turn}, "part")
            table.op, table.args, table.settings, table.kind = part.op, part.args, part.settings, part.kind
            table.names = table.names or [name]


def _is_rotation(value: Value) -> bool:
    return value.op == "rotate" and value.kind == "std"


def _scaled(b: SpecBuilder, cosines: Value, sines: Value) -> Value | None:
    """Return the function of the library that makes both tables; None if there is none."""
    table, strength = _strength(cosines)
    if table.op != "cos":
        return None
    angles = table.operands[0]
    frequencies = next((value for value in angles.operands if value.op in TABLES), None)
    positions = next((value for value in angles.operands if value is not frequencies), None)
    if frequencies is None or positions is None:
        return None
    seq, _ = angles.shape
    given = b.written(b.reshape(b.unwritten(positions), (seq,)))
    name = TABLES[frequencies.op]
    usual = frequencies.settings
    of_strength: dict[str, Setting] = {**usual, "strength": strength}
    for settings in (usual, of_strength):
        found = b.library.functions(name, settings, [given.array], [cosines.shape] * 2)
        if found == [cosines.array, sines.array]:
            return b.made(name, [given], cosines.array, settings, "std")
    return None


def _strength(table: Value) -> tuple[Value, float]:
    """Return a table before it was multiplied by a number, and the number."""
    inner, number = table.args if table.op == "mul" else (table, 1.0)
    return (inner, number) if isinstance(inner, Value) and isinstance(number, int | float) else (table, 1.0)


ORDERS = (0, 1, 2, 3), (0, 2, 1, 3)
"""The axes of what `rotate` takes: heads before tokens, or after these."""


def rotation(builder: SpecBuilder, made: Value, a: Operand, b: Operand) -> Value | None:
    """Return the sum of `a` and `b` as a rotation: x * cosines plus x with its halves, or pairs, exchanged * sines."""
    if not (isinstance(a, Value) and isinstance(b, Value) and len(a.shape) == 4):
        return None
    return _of_halves(builder, made, a, b) or _of_pairs(builder, made, a, b)


def partial_rotation(builder: SpecBuilder, made: Value, *parts: Value, axis: int) -> Value | None:
    """Return a rotation of the first components of what has more, which are put after it."""
    rotated, _ = builder.layout(parts[0])
    if rotated.op != "rotate" or parts[1].op != "slice":
        return None
    _, *tables = rotated.operands
    return _rotated(builder, parts[1].operands[0], tables, made, is_adjacent=bool(rotated.settings), is_partial=True)


def rotation_of_parts(builder: SpecBuilder, made: Value, *parts: Value, axis: int) -> Value | None:
    """Return the concatenation of `a * cosines - b * sines` and `b * cosines + a * sines` as a rotation: of what has
    `a` and `b` as its halves, or as its even and its odd components, which are moved to the halves.
    """
    products = parts[0].operands
    if len(products) != 2 or len(parts[0].shape) != 4:
        return None
    first, second = [product.operands for product in products]
    sides = [(x, y) for x in first for y in second if x.shape == y.shape == parts[0].shape]
    whole = _joined(builder, sides[0][0]) if sides else None
    if whole is None:
        return None
    found = [_table(builder, product, x) for product, x in zip(products, sides[0], strict=True)]
    tables = [table for table in found if table is not None]
    if len(tables) < len(found):
        return None
    rotated = _rotated(builder, whole, tables, made, is_adjacent=False)
    return rotated and _with_names(rotated, tables)


def _joined(builder: SpecBuilder, first: Value) -> Value | None:
    """Return what a value is the first half of, or what has it as its first half if it is the even components."""
    if first.op == "part":
        return first.operands[0].operands[0]
    if first.op != "slice":
        return None
    (x,) = first.operands
    if first.settings.get("step") != 2 or x.shape[-1] != 2 * first.shape[-1]:
        return x
    *lead, size = builder.unwritten(x).shape
    pairs = builder.reshape(builder.unwritten(x), (*lead, size // 2, 2))
    return builder.reshape(builder.permute(pairs, (0, 1, 2, 4, 3)), x.shape)


def _table(builder: SpecBuilder, product: Value, x: Value) -> Value | None:
    """Return the cosines or sines that a value is multiplied by, with an axis for tokens and one for pairs."""
    found = next((_bare(value) for value in product.operands if value is not x), None)
    if found is None:
        return None
    if found.op == "slice" and found.operands[0].op in ("cos", "sin"):
        whole = found.operands[0]
        found = _of_angles(builder, whole, whole.op) or found
    return found if len(found.shape) == 2 else None


def _rotated(
    builder: SpecBuilder,
    x: Value,
    tables: Sequence[Value],
    result: Value,
    is_adjacent: bool,
    is_partial: bool = False,
) -> Value | None:
    """Return a result as the rotation of a value, if it is that."""
    names = {"adjacent": is_adjacent, "partial": is_partial}
    settings: dict[str, bool] = {name: True for name, holds in names.items() if holds}
    for order in ORDERS:
        given, expected = [builder.permute(value, order) for value in (builder.unwritten(x), result)]
        if given.shape[2] == tables[0].shape[0]:
            args = [builder.written(given), *tables]
            found = builder.library.function("rotate", settings, [arg.array for arg in args], given.shape)
            if found is not None and _is_same(builder, builder.made("rotate", args, found), expected):
                return builder.permute(builder.made("rotate", args, expected.array, settings, "std"), order)
    return None


def _is_same(builder: SpecBuilder, value: Value, other: Value) -> bool:
    """Whether two values are equal at even and at odd places of their last axis."""
    return all(
        builder.op_array("slice", value, axis=-1, start=start, step=2)
        == builder.op_array("slice", other, axis=-1, start=start, step=2)
        for start in (0, 1)
    )


def _of_pairs(builder: SpecBuilder, made: Value, a: Value, b: Value) -> Value | None:
    """Return a rotation of adjacent components."""
    x = next((value for value in a.operands if value.shape == a.shape), None)
    turned = next((value for value in b.operands if value.op == "rearrange" and value.operands[0].op == "stack"), None)
    tables = [next((value for value in c.operands if value not in (x, turned)), None) for c in (a, b)]
    found = [_of_half(builder, table) if table is not None else None for table in tables]
    halves = [half for half in found if half is not None]
    if x is None or turned is None or len(halves) < len(tables):
        return None
    rotated = _rotated(builder, x, halves, made, is_adjacent=True)
    return rotated and _with_names(rotated, halves)


def _with_names(rotated: Value, tables: Sequence[Value]) -> Value:
    """Return a rotation whose tables have names."""
    for table, name in zip(tables, ("cosines", "sines"), strict=True):
        table.names = table.names or [name]
    return rotated


def _of_half(builder: SpecBuilder, value: Value) -> Value | None:
    """Return a table with one column for two adjacent ones that are equal: what is repeated, or a function of it."""
    value = _bare(value)
    if value.op in ("cos", "sin"):
        angles = _of_half(builder, value.operands[0])
        return builder.memoize(value.op, angles) if angles is not None else None
    sizes = [size for size in value.shape if size != 1]
    if value.op != "repeat" or len(sizes) != 2:
        return None
    shape = sizes[0], sizes[1] // 2
    inner = value.operands[0]
    return builder.written(builder.reshape(inner, shape)) if [s for s in inner.shape if s != 1] == [*shape] else None


def _of_halves(builder: SpecBuilder, made: Value, a: Value, b: Value) -> Value | None:
    """Return a rotation of halves."""
    x = next((value for value in a.operands if value.shape == a.shape), None)
    cosines = next((_of_angles(builder, value, "cos") for value in a.operands if value is not x), None)
    sines = next((_of_angles(builder, value, "sin") for value in b.operands if value.shape != b.shape), None)
    if x is None or cosines is None or sines is None:
        return None
    return _rotated(builder, x, [cosines, sines], made, is_adjacent=False)


def _of_angles(builder: SpecBuilder, value: Value, name: str) -> Value | None:
    """Return the sines or cosines of the angles of one half, from those of both."""
    value = _bare(value)
    if value.op != name:
        return None
    joined = _bare(value.operands[0])
    halves = [_bare(part) for part in joined.operands]
    if joined.op != "concat" or len(halves) != 2 or halves[0] is not halves[1] or len(halves[0].shape) != 2:
        return None
    return builder.memoize(name, halves[0])


def _bare(value: Value) -> Value:
    """Return a value without axes of size 1 before it."""
    while value.op == "reshape" and value.operands[0].shape == tuple([size for size in value.shape if size != 1]):
        value = value.operands[0]
    return value
