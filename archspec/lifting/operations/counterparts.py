"""The operations of PyTorch that have counterparts in the language."""

from __future__ import annotations

from archspec.lifting.operations import arrangements, functions, loops, recurrent, statistics, windows
from archspec.lifting.operations.handlers import Handler
from archspec.lifting.operations.registry import OPERATIONS

COUNTERPARTS: dict[str, Handler] = {
    **OPERATIONS,
    **{
        name: handler
        for group in (functions, arrangements, windows, recurrent, loops, statistics)
        for handler, called in group.NAMES.items()
        for name in called.split()
    },
}
"""By name, without the namespace and the overload."""
