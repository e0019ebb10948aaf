"""Normal forms of operations: what each computes, as elements of `archspec.ir.normal`.

A form of an elementwise operation takes the elements of its inputs; any other takes its inputs as arrays, and its
hyperparameters by name. An operation without a form is equal only to itself.

Records name their forms, so that only what compares normal forms imports them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from archspec.ir.normal.forms import along, elementwise, shape, weights
from archspec.ir.ops.record import Op

if TYPE_CHECKING:
    from archspec.ir.normal.arrays import Array

_MODULES = {"along": along, "elementwise": elementwise, "shape": shape, "weights": weights}


def normal_form(op: Op) -> Callable[..., Array | list[Array]] | None:
    """Return the normal form of an operation of arrays, if it has one."""
    module, _, name = op.normal.partition(".")
    return getattr(_MODULES[module], name) if name else None


def elementwise_form(op: Op) -> elementwise.Each | None:
    """Return the normal form of an elementwise operation, if it has one."""
    module, _, name = op.normal.partition(".")
    return getattr(_MODULES[module], name) if name else None
