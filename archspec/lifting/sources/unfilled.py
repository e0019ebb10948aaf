"""Modules whose parameters have no values, so that they may have any size."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def unfilled(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module whose parameters are memory that nothing has been written to, which takes no room.

    Its buffers have their values.
    """
    import torch

    with _without_values():
        module = build()
    made: dict[int, nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():  # pyright: ignore[reportPrivateUsage]
            if parameter is not None and parameter.is_meta:
                if id(parameter) not in made:
                    empty = torch.empty(parameter.shape, dtype=parameter.dtype)
                    made[id(parameter)] = torch.nn.Parameter(empty, parameter.requires_grad)
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
        yield
    finally:
        torch.nn.Module.register_parameter = register
