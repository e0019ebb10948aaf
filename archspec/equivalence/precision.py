"""Modules that round to float32 on their own, run without that."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from archspec.equivalence.intercepting import Function, intercepting


@contextmanager
def in_float64() -> Generator[None]:
    """Compute in float64 what code asks for in float32, or in the default type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with intercepting(_exactly):
            yield
    finally:
        torch.set_default_dtype(before)


def _exactly(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    import torch

    if func is torch.Tensor.float and isinstance(args[0], torch.Tensor):
        return args[0].double()
    return func(*[_exact(item) for item in args], **{name: _exact(item) for name, item in named.items()})


def _exact(item: object) -> object:
    import torch

    return torch.float64 if item is torch.float32 else item
