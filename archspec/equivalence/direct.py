"""What modules compute only while they are not exported, as some targets of exports have no operation for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SOLVING = "solve_triangular"


@contextmanager
def solving() -> Iterator[None]:
    """Have functions that solve triangular systems do so at once, not row by row: that takes far longer to export."""
    import torch

    original = torch.compiler.is_exporting

    def is_exporting() -> bool:
        return original() and not any(_SOLVING in frame.f_code.co_names for frame in _callers(sys._getframe(1)))

    torch.compiler.is_exporting = is_exporting
    try:
        yield
    finally:
        torch.compiler.is_exporting = original


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the frame that asks, and the one before, for which a function may ask."""
    yield frame
    if frame.f_back is not None:
        yield frame.f_back
