"""Rotary positions: the function `rotate` of the library, recognized by its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array
from archspec.pytorch.lift.idioms.patterns import cuts
from archspec.pytorch.lift.notation.notation import RESULTS
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Setting, Value, live_values

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


FEATURES = (frozenset({"ge0", "where"}),)
"""What rotations have in their normal forms besides sums and products: halves and pairs are chosen by their places."""


def rotation(builder: SpecBuilder, result: Value, *args: object, axis: int = -1) -> Value | None:
    """Return a sum, or parts that are put together, as the rotation of a tensor by the angles of two tables: of its
    halves, or of adjacent components.
    """
    shape = result.shape
    if len(shape) == 5 and shape[-1] == 2:
        shape = (*shape[:3], shape[3] * 2)
    if len(shape) != 4 or not isinstance(shape[-1], int) or shape[-1] % 2 or result.dtype != "real":
        return None
    whole = builder.reshape(result, shape)
    root, _ = builder.layout(builder.unwritten(result))
    count = product(shape)
    for inside, leaves, _ in cuts(builder, root, FEATURES, (count, count // 2)):
        wholes = [leaf for leaf in leaves if product(leaf.shape) == count]
        tables = _positive([leaf for leaf in leaves if leaf not in wholes])
        if len(wholes) != 1 or len(tables) != 2:
            continue
        for x in _arrangements(builder, wholes[0], inside, shape):
            match = _match_tables(builder, x, tables, whole)
            if match is not None:
                return builder.reshape(match, result.shape)
    return None


def _positive(tables: Sequence[Value]) -> list[Value]:
    """Return different tables without those that are others with the opposite sign."""
    different = [*{table.array: table for table in tables}.values()]
    return [table for table in different if table.op != "neg" or table.operands[0] not in different]


def _arrangements(builder: SpecBuilder, leaf: Value, inside: Sequence[Value], shape: Sequence[Dim]) -> list[Value]:
    """Return a value, and views of it among others, in a shape, and with even components before the odd ones."""
    root, _ = builder.layout(builder.unwritten(leaf))
    views = [builder.unwritten(value) for value in (leaf, *inside)]
    match: dict[Array, Value] = {}
    for view in views:
        if builder.layout(view)[0] is root and product(view.shape) == product(shape):
            x = builder.reshape(view, shape)
            *lead, size = shape
            pairs = builder.permute(builder.reshape(x, (*lead, size // 2, 2)), (0, 1, 2, 4, 3))
            for each in (x, builder.reshape(pairs, shape)):
                match.setdefault(each.array, each)
    return [*match.values()]


def _match_tables(builder: SpecBuilder, x: Value, tables: Sequence[Value], result: Value) -> Value | None:
    """Return a result as the rotation of a value by two tables in some order, and in either direction."""
    for is_adjacent in (False, True):
        halves = [_half(builder, table, is_adjacent, x.shape[-1] // 2) for table in tables]
        columns = [half for half in halves if half is not None]
        if len(columns) < 2:
            continue
        for cosines, sines in (columns, columns[::-1]):
            for turned in (sines, builder.op("neg", sines)):
                rotated = _rotated(builder, x, [cosines, turned], result, is_adjacent)
                if rotated is not None:
                    return _with_names(rotated, [cosines, turned])
    return None


def partial_rotation(builder: SpecBuilder, made: Value, *parts: Value, axis: int) -> Value | None:
    """Return a rotation of the first components of what has more, which are put after it."""
    rotated, _ = builder.layout(parts[0])
    if rotated.op != "rotate" or parts[1].op != "slice":
        return None
    _, *tables = rotated.operands
    return _rotated(builder, parts[1].operands[0], tables, made, is_adjacent=bool(rotated.settings), is_partial=True)


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


def _with_names(rotated: Value, tables: Sequence[Value]) -> Value:
    """Return a rotation whose tables have names."""
    for table, name in zip(tables, ("cosines", "sines"), strict=True):
        table.names = table.names or [name]
    return rotated


def _half(builder: SpecBuilder, value: Value, is_adjacent: bool, size: Dim) -> Value | None:
    """Return a table with one column for each pair of components, from one that may repeat them."""
    value = _bare(value)
    sizes = [each for each in value.shape if each != 1]
    if len(sizes) != 2 or sizes[-1] == size:
        return builder.written(builder.reshape(builder.unwritten(value), sizes)) if len(sizes) == 2 else None
    inner = _bare(value.operands[0]) if value.operands else value
    if value.op in ("cos", "sin"):
        angles = _half(builder, inner, is_adjacent, size)
        return angles and builder.memoize(value.op, angles)
    if value.op == "concat" and not is_adjacent and [*map(_bare, value.operands)] == [inner, inner]:
        return _half(builder, inner, is_adjacent, size)
    if value.op in ("repeat", "rearrange", "expand") and is_adjacent:
        inner = inner.operands[0] if inner.op == "stack" else inner
        return _half(builder, inner, is_adjacent, size) if inner.shape[-1] == size else None
    return None


def _bare(value: Value) -> Value:
    """Return a value without axes of size 1 before it."""
    while value.op == "reshape" and value.operands[0].shape == tuple([size for size in value.shape if size != 1]):
        value = value.operands[0]
    return value
