"""The operations of PyTorch that have normal forms."""

from __future__ import annotations

from archspec.pytorch.calls import (
    activations,
    contractions,
    elementwise,
    images,
    layers,
    normalization,
    placing,
    recurrent,
    reductions,
    shape,
)
from archspec.pytorch.calls.values import Handler

CALLS: dict[str, Handler] = {
    name: handler
    for group in (
        elementwise,
        activations,
        shape,
        placing,
        layers,
        recurrent,
        reductions,
        normalization,
        contractions,
        images,
    )
    for handler, called in group.NAMES.items()
    for name in called.split()
}
"""By name, without the namespace and the overload."""
