"""Vectors of images and sounds that take the places of marked tokens: rows gathered by the number of marks before."""

from __future__ import annotations

from archspec.core.algebra import Dim
from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS


def placed_rows(body: Body) -> list[Dim]:
    """Return the numbers of rows that a body, or one inside it, puts into marked positions; each number once."""
    numbers: dict[Dim, None] = {}
    _visit(body, numbers, set())
    return list(numbers)


def _visit(body: Body, numbers: dict[Dim, None], visited: set[Body]) -> None:
    if body in visited:
        return
    visited.add(body)
    weights = {slot for _, slot in body.weights}
    counts: set[int] = set()
    for call in body.calls:
        if call.body is not None:
            _visit(call.body, numbers, visited)
            continue
        rows = _rows_by_count(call, counts)
        if rows is not None and rows not in weights:
            numbers[body.types[rows].shape[0]] = None
        is_count = any(operand in counts for _, operand in call.inputs if isinstance(operand, int))
        if (call.type == "cumsum" or is_count) and call.outputs[0] is not None and call.outputs[0].dtype == "int":
            counts.add(call.first)


def _rows_by_count(call: Call, counts: set[int]) -> int | None:
    """Return the slot of the rows from which a call selects by an index that counts marks."""
    inputs = OPS[call.type].inputs
    operands = {entry.name: operand for entry, (_, operand) in zip(inputs, call.inputs, strict=False)}
    for entry in inputs:
        rows = operands.get(entry.indexes.split()[0]) if entry.indexes else None
        if isinstance(rows, int) and operands.get(entry.name) in counts and call.attributes.get("axis", 0) == 0:
            return rows
    return None
