"""Computations that modules replace while they are exported, as some targets of exports have no operation for them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from inspect import currentframe
from types import FrameType

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
