"""The work that a body asks for: multiply-accumulates in matrix products, and elementwise operations."""

from __future__ import annotations

from archspec.work.bodies import NONE, Quantity, Work, call_work, operand_type, operation_work, work_of

__all__ = [
    "NONE",
    "Quantity",
    "Work",
    "call_work",
    "operand_type",
    "operation_work",
    "work_of",
]
