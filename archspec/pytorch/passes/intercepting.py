"""Functions of PyTorch that compute something else while a module runs.

    # before: as exported                     # after
    a[1, :1] += a[1, :1] @ a[:1, :1] ...      linalg_solve_triangular(a, b)      use_triangular_solver
    if (mask == causal_mask).all(): ...       if is_causal: ...                  disable_mask_detection
    self.last = x                             the `last` from before the call    restore_attributes

Delta networks of `transformers` solve systems row by row when they are exported, but at once when users call them. The
layers `nn.TransformerEncoder` and `nn.TransformerDecoder` look at masks. Modules that keep an input or mask need the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from inspect import currentframe
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias, cast
from unittest.mock import patch

if TYPE_CHECKING:
    from traceback import StackSummary

    from torch import nn


# Computations that modules replace while they are exported, as some targets of exports have no operation for them.

_SOLVING = "solve_triangular"


@contextmanager
def use_triangular_solver() -> Generator[None]:
    """Have functions that solve triangular systems do so at once, not row by row: that takes far longer to export."""
    import torch

    original = torch.compiler.is_exporting

    def is_exporting() -> bool:
        return original() and not any(_SOLVING in frame.f_code.co_names for frame in _callers(currentframe()))

    torch.compiler.is_exporting = is_exporting
    try:
        yield
    finally:
        torch.compiler.is_exporting = original


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frame that calls one, and the frame before, for which it may call."""
    for _ in range(2):
        frame = frame.f_back if frame is not None else None
        if frame is not None:
            yield frame


# Masks that PyTorch looks at to find out whether they are causal, which a program for any mask cannot do.


@contextmanager
def disable_mask_detection() -> Generator[None]:
    """Disable the causal-mask detection of `nn.TransformerEncoder` and `nn.TransformerDecoder`, which is only an
    optimization hint.
    """

    def given(mask: object, is_causal: bool | None = None, size: int | None = None) -> bool:
        return bool(is_causal)

    with patch("torch.nn.modules.transformer._detect_is_causal_mask", given, create=True):
        yield


# Stack traces of operations.


@contextmanager
def record_called_functions() -> Generator[None]:
    """Record where `forward` calls functions, and where these compute, in the stack trace of each operation."""
    from torch.fx.proxy import TracerBase

    name = "_filter_traceback_frames"
    original: Callable[[TracerBase, StackSummary], StackSummary] = getattr(TracerBase, name)

    def filtered(tracer: TracerBase, stack: StackSummary) -> StackSummary:
        with patch.object(tracer, "_record_forward_stack_traces_only", False):
            return original(tracer, stack)

    with patch.object(TracerBase, name, filtered):
        yield


# Modules that keep something of a call, such as a mask, and are then as they were before.


@contextmanager
def restore_attributes(module: nn.Module) -> Generator[None]:
    """Give the parts of a module the attributes again that they had before, and no others."""
    parts = [part for _, part in cast("Iterable[tuple[str, nn.Module]]", module.named_modules())]
    before = [(part, {name: (value, _items(value)) for name, value in vars(part).items()}) for part in parts]
    try:
        yield
    finally:
        for part, attributes in before:
            for name, (value, items) in attributes.items():
                _restore(value, items)
                vars(part)[name] = value
            for name in vars(part).keys() - attributes.keys():
                del vars(part)[name]


def _items(value: object) -> object:
    """Return the items of a list or dict."""
    if isinstance(value, list):
        return [*cast("list[object]", value)]
    return {**cast("dict[object, object]", value)} if isinstance(value, dict) else None


def _restore(value: object, items: object) -> None:
    """Give a list or dict its items again."""
    if isinstance(value, list):
        cast("list[object]", value)[:] = cast("list[object]", items)
    elif isinstance(value, dict):
        found = cast("dict[object, object]", value)
        found.clear()
        found.update(cast("dict[object, object]", items))


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
