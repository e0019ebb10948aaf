"""The operations of PyTorch that have normal forms."""

from __future__ import annotations

from archspec.equivalence.calls import elementwise, layers, shape
from archspec.equivalence.calls.values import Handler

CALLS: dict[str, Handler] = {
    name: handler
    for names in (elementwise.NAMES, shape.NAMES, layers.NAMES)
    for handler, called in names.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""
