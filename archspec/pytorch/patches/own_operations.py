"""Operations that this package defines in PyTorch: they have shapes, and so are exported, but cannot be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import SymInt

NAMESPACE = "archspec"


def define_operation(schema: str, shapes: Callable[..., object] | None) -> Callable[..., Any]:
    """Define an operation; `shapes` returns results of the right shapes. Without it, only nodes can have it."""
    torch = _torch()
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _LIBRARIES.append(library)
    library.define(schema)
    name = schema.partition("(")[0]
    if shapes is not None:
        torch.library.register_fake(f"{NAMESPACE}::{name}", shapes, lib=library)
    return getattr(torch.ops.archspec, name).default


def new_size() -> SymInt:
    """Return a size that is not known, in a function that returns results of the right shapes."""
    return _torch().library.get_ctx().new_dynamic_size(min=0)


def _torch() -> Any:
    """Return PyTorch, whose module `library` has no types."""
    from importlib import import_module

    return import_module("torch")


_LIBRARIES: list[object] = []
"""Definitions of operations, which last as long as these."""
