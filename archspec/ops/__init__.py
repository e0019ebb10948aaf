"""The primitive operations, each one record; everything else is written in the language over them.

`docs/operations.md` is generated from the records.
"""

from __future__ import annotations

from archspec.ops import create, elementwise, linear, reduce, shape
from archspec.ops.check import OpError, element_type
from archspec.ops.record import REQUIRED, Attribute, Input, Interval, Op, Operands, Torch

__all__ = [
    "OPERATORS",
    "OPS",
    "REQUIRED",
    "Attribute",
    "Input",
    "Interval",
    "Op",
    "OpError",
    "Operands",
    "Torch",
    "element_type",
]

OPS: dict[str, Op] = {op.name: op for op in (*elementwise.OPS, *reduce.OPS, *linear.OPS, *shape.OPS, *create.OPS)}
"""Every operation by name, in the order of the table."""

OPERATORS: dict[str, str] = {
    "neg": "neg",
    **{op.symbol: op.name for op in OPS.values() if op.symbol and op.name != "neg"},
}
"""The operation behind each operator; the unary minus is under "neg"."""
