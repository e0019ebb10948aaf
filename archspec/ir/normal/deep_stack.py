"""Recursion through all layers of a model, which is deeper than Python permits by default."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

STACK = 512 * 2**20
"""Bytes of address space for the stack."""

FRAMES = 200_000


def run_with_deep_stack(compute: Callable[[], T]) -> T:
    """Run a function on a thread with a stack large enough for deeply nested expressions."""
    if sys.platform == "emscripten":  # which has no threads
        return compute()
    results: list[T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(compute())
        except BaseException as problem:
            problems.append(problem)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
    sys.setrecursionlimit(max(limit, FRAMES))
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if problems:
        raise problems[0]
    return results[0]
