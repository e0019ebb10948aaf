"""Tables of rotary positions for longer contexts: the functions of the library that make cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.pytorch.lift.notation.notation import RESULTS
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Setting, Value, live_values

TABLES = {"llama3_frequencies": "llama3_scaling", "yarn_frequencies": "yarn_scaling"}
"""Functions that make tables of cosines and sines, by those that make the frequencies of these."""

NAMES = RESULTS["yarn_scaling"]


def rewrite_rotary_scaling(b: Builder, outputs: Sequence[Value]) -> None:
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


def _scaled(b: Builder, cosines: Value, sines: Value) -> Value | None:
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
        found = b.library.functions(name, settings, [given.array], cosines.shape, 2)
        if found == [cosines.array, sines.array]:
            return b.made(name, [given], cosines.array, settings, "std")
    return None


def _strength(table: Value) -> tuple[Value, float]:
    """Return a table before it was multiplied by a number, and the number."""
    inner, number = table.args if table.op == "mul" else (table, 1.0)
    return (inner, number) if isinstance(inner, Value) and isinstance(number, int | float) else (table, 1.0)
