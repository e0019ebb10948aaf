"""The operations of PyTorch that have a counterpart in the language."""

from __future__ import annotations

from archspec.lifting.operations import elementwise, layers, shape
from archspec.lifting.operations.handlers import Handler

OPERATIONS: dict[str, Handler] = {
    name: handler
    for names in (elementwise.NAMES, shape.NAMES, layers.NAMES)
    for handler, called in names.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""
