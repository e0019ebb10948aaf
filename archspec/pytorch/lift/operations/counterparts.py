"""The operations of PyTorch that have counterparts in the language."""

from __future__ import annotations

from archspec.pytorch.lift.operations import (
    arrangements,
    elementwise,
    functions,
    layers,
    recurrent,
    shape,
    statistics,
    windows,
)
from archspec.pytorch.lift.operations.handlers import Handler

COUNTERPARTS: dict[str, Handler] = {
    name: handler
    for group in (elementwise, shape, layers, functions, arrangements, windows, recurrent, statistics)
    for handler, called in group.NAMES.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""
