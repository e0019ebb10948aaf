"""The primitive operations, one record each; all other functions are written in the language.

`docs/operations.md` is generated from the records.
"""

from __future__ import annotations

from archspec.ir.ops import create, elementwise, linear, reduce, shape
from archspec.ir.ops.check import OpError as OpError
from archspec.ir.ops.check import element_type as element_type
from archspec.ir.ops.record import REQUIRED as REQUIRED
from archspec.ir.ops.record import Attribute as Attribute
from archspec.ir.ops.record import Input as Input
from archspec.ir.ops.record import Interval as Interval
from archspec.ir.ops.record import Op as Op
from archspec.ir.ops.record import Operands as Operands
from archspec.ir.ops.record import Settings as Settings
from archspec.ir.ops.record import TorchForm as TorchForm

OPS: dict[str, Op] = {
    op.name: op for op in (*elementwise.OPS, *reduce.OPS, *linear.OPS, *reduce.POOL_OPS, *shape.OPS, *create.OPS)
}
"""Every operation by name, in the order of the table in `docs/operations.md`."""

OPERATORS: dict[str, str] = {
    "neg": "neg",
    **{op.symbol: op.name for op in OPS.values() if op.symbol and op.name != "neg"},
}
"""The operation of each operator; "neg" is the unary minus."""
