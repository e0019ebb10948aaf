"""Modules that round to float32 on their own, run without that."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.overrides import TorchFunctionMode


@contextmanager
def in_float64() -> Generator[None]:
    """Compute in float64 what code asks for in float32, or in the default type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _mode()():
            yield
    finally:
        torch.set_default_dtype(before)


@cache
def _mode() -> type[TorchFunctionMode]:
    import torch
    from torch.overrides import TorchFunctionMode

    class Exact(TorchFunctionMode):
        def __torch_function__(
            self,
            func: Callable[..., object],
            types: Sequence[type],
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            if func is torch.Tensor.float and isinstance(args[0], torch.Tensor):
                return args[0].double()
            named = {name: _exact(item) for name, item in (kwargs or {}).items()}
            return func(*[_exact(item) for item in args], **named)

    return Exact


def _exact(item: object) -> object:
    import torch

    return torch.float64 if item is torch.float32 else item
