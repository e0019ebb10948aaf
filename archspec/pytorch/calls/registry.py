"""The table of PyTorch's calls."""

from __future__ import annotations

from archspec.pytorch.calls import (
    elementwise,
    images,
    layers,
    norms,
    placement,
    products,
    recurrent,
    reductions,
    shape,
    windows,
)
from archspec.pytorch.calls.rows import Row

CALLS: dict[str, Row] = {
    name: row
    for group in (
        elementwise,
        shape,
        placement,
        layers,
        products,
        norms,
        reductions,
        windows,
        images,
        recurrent,
    )
    for row, called in group.NAMES.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""
