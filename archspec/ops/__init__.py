"""The primitive operations, each one record; all else is written in the language over them.

A backend keeps a table of its own, keyed by these names. `docs/operations.md` shows the records as one table.
"""

from __future__ import annotations

from archspec.ops import create, elementwise, linear, reduce, shape
from archspec.ops.record import REQUIRED, Attribute, Input, Op, OpError

__all__ = ["OPERATORS", "OPS", "REQUIRED", "Attribute", "Input", "Op", "OpError"]

OPS: dict[str, Op] = {op.name: op for op in (*elementwise.OPS, *reduce.OPS, *linear.OPS, *shape.OPS, *create.OPS)}
"""Every operation by name, in the order of the table."""

OPERATORS: dict[str, str] = {
    "neg": "neg",
    **{op.symbol: op.name for op in OPS.values() if op.symbol and op.name != "neg"},
}
"""The operation behind each operator; the unary minus is under "neg"."""
