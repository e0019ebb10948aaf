"""Modules that round to float32 on their own, run without that.

    # before                     # after
    rms_norm(x, [8])             rms_norm(x, [8], None, 1.1920928955078125e-07)  with_epsilon_of, keep_epsilon
    x.to(torch.float32).cos()    x.to(torch.float64).cos()                       in_float64

`nn.RMSNorm` without an `eps` needs the first; nearly all of transformers, whose rotary angles, norms and softmax are in
float32, the second.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, cast

from archspec.pytorch.passes.intercepting import Function, intercept_mode
from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


# The number that RMS norms add where a module has none: it depends on the precision of the module.


def keep_epsilon(module: nn.Module, dtype: torch.dtype | None = None) -> None:
    """Give RMS norms without an `eps` that of float32, or of `dtype`, in a module that was made in float64 in place of
    it.
    """
    import torch

    for part in module.modules():
        if isinstance(part, torch.nn.RMSNorm) and part.eps is None:
            part.eps = torch.finfo(dtype or torch.float32).eps


def with_epsilon_of(module: nn.Module) -> AbstractContextManager[object]:
    """Return the mode in which RMS norms without an `eps` have that of the element type of their input, as in PyTorch;
    for float64 that of the module, which may have been converted to it.
    """
    import torch

    dtype = real_type(module)

    def call(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
        if getattr(func, "__name__", "") != "rms_norm" or [*args[3:], named.get("eps")][0] is not None:
            return func(*args, **named)
        x = args[0] if args else named["input"]
        assert isinstance(x, torch.Tensor)
        of_type = dtype if x.dtype is torch.float64 else x.dtype
        return func(*args[:3], **{**named, "eps": torch.finfo(of_type).eps})

    return intercept_mode(call)


def real_type(module: nn.Module) -> torch.dtype:
    """Return the element type of the reals of a module."""
    import torch

    tensors = chain(module.parameters(), module.buffers())
    return next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)


@contextmanager
def in_float64() -> Generator[None]:
    """Compute in float64 what code asks for in float32, or in the default type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with intercept_mode(_exactly):
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


def keeps_rounded(module: nn.Module) -> bool:
    """Whether a module has numbers that it computed before it is called, and rounded, such as a table of positions."""
    given = {id(tensor) for tensor in module.state_dict(keep_vars=True).values()}
    parts = cast("Iterable[tuple[str, nn.Module]]", module.named_modules())
    kept = (tensor for _, part in parts for tensor in _tensors_in([*vars(part).values()]))
    return any((tensor.is_floating_point() or tensor.is_complex()) and id(tensor) not in given for tensor in kept)


def _tensors_in(value: object) -> Iterator[Tensor]:
    """Yield the tensors in lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    items = cast("dict[object, object]", value).values() if isinstance(value, dict) else as_list(value)
    for item in items if isinstance(value, list | tuple | dict) else ():
        yield from _tensors_in(item)
