"""Modules whose parameters have no values, so that they may have any size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, cast

from archspec.pytorch.patches.intercepting import Function, intercept_mode

if TYPE_CHECKING:
    from torch import nn


MAX_RESERVED = 2**28
"""Memory for more elements may not be there, even if nothing is written to it."""


def build_on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module whose tensors have no values; if making it looks at some of them, one with unfilled parameters.

    Rates of stochastic depth are often made with `torch.linspace(...)`, and looked at.
    """
    import torch

    try:
        with torch.device("meta"):
            return build()
    except Exception:  # of any class, as it comes from the architecture
        return build_uninitialized(build)


def build_uninitialized(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with uninitialized parameters, whose memory the operating system has not committed.

    The elements of very large ones share their memory. Its buffers have their values.
    """
    import torch

    with _without_values():
        module = build()
    made: dict[int, nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():  # pyright: ignore[reportPrivateUsage]
            if parameter is not None and parameter.is_meta:
                if id(parameter) not in made:
                    is_large = parameter.numel() > MAX_RESERVED
                    empty = torch.empty((1,) if is_large else parameter.shape, dtype=parameter.dtype)
                    made[id(parameter)] = torch.nn.Parameter(empty.expand(parameter.shape), parameter.requires_grad)
                part._parameters[name] = made[id(parameter)]  # pyright: ignore[reportPrivateUsage]
    return module


@contextmanager
def _without_values() -> Generator[None]:
    """Move each parameter to the device `meta` as soon as a module gets it."""
    import torch

    register = torch.nn.Module.register_parameter

    def registered(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and not param.is_meta:
            param = torch.nn.Parameter(param.to("meta"), param.requires_grad)
        register(self, name, param)

    torch.nn.Module.register_parameter = registered
    try:
        with intercept_mode(_reserved):
            yield
    finally:
        torch.nn.Module.register_parameter = register


def _reserved(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    """Make very large tensors that have no values on the device `meta`, as there may be no memory for them."""
    import torch

    if func is torch.empty and named.get("device") is None and _count(args) > MAX_RESERVED:
        named = {**named, "device": "meta"}
    return func(*args, **named)


def _count(sizes: Sequence[object]) -> int:
    """Return the number of elements of a tensor; the sizes may be passed as one tuple."""
    return prod(cast("Sequence[int]", sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes))
