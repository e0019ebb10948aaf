"""The functions that prove PyTorch files, which need PyTorch."""

from __future__ import annotations

from types import ModuleType


def import_prover() -> ModuleType:
    """Return the module of these functions."""
    from archspec.pytorch.prove import prove  # which imports all operations of PyTorch that it knows

    return prove
