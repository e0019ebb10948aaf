"""Functions of PyTorch that compute something else while a module runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeAlias

Function: TypeAlias = Callable[..., object]
"""A function of PyTorch, or a method of its tensors."""

Handler: TypeAlias = Callable[[Function, Sequence[object], Mapping[str, object]], object]
"""What is called in the place of functions: with the function, and its positional and named arguments."""


def intercept_mode(handler: Handler) -> AbstractContextManager[object]:
    """Return the mode in which all functions of PyTorch are calls of a handler, but those that it calls itself."""
    return _mode()(handler)


@cache
def _mode() -> Callable[[Handler], AbstractContextManager[object]]:
    from torch.overrides import TorchFunctionMode

    class Intercepting(TorchFunctionMode):
        def __init__(self, handler: Handler) -> None:
            super().__init__()
            self._handler = handler

        def __torch_function__(
            self,
            func: Function,
            types: Sequence[type],
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            return self._handler(func, args, kwargs or {})

    return Intercepting
