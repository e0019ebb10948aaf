"""The numbers in tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from torch import Tensor

    from archspec.pytorch.lift.values.values import Setting


MAX_LISTED = 64
"""Constants with more elements are not written as lists."""


class _Tensor(Protocol):
    """Methods of tensors that PyTorch gives no types of results."""

    def tolist(self) -> list[float]: ...
    def unique(self) -> Tensor: ...


def elements(tensor: Tensor) -> list[float]:
    """Return the elements of a tensor, row by row."""
    return cast("_Tensor", tensor.flatten()).tolist()


def distinct(tensor: Tensor) -> list[float]:
    """Return the different elements of a tensor in order."""
    return elements(cast("_Tensor", tensor).unique())


def rows(tensor: Tensor) -> list[Setting]:
    """Return a tensor as a list, of lists if it has several axes."""
    return [*elements(tensor)] if tensor.dim() == 1 else [rows(part) for part in tensor.unbind()]
