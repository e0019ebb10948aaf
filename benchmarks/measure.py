"""What the benchmarks share: interleaved timing, medians, and a table of ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence


def medians(tasks: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median time of each task in seconds.

    The tasks take turns, so that what slows the machine slows them all, and every other round the other way about,
    since a task finds the memory as the one before it left it.
    """
    times: list[list[float]] = [[] for _ in tasks]
    turns = list(zip(tasks, times, strict=True))
    for _ in range(rounds):
        turns.reverse()
        for task, taken in turns:
            gc.collect()
            start = time.perf_counter()
            result = task()
            taken.append(time.perf_counter() - start)
            del result  # not within the time of the next task
    return [statistics.median(taken) for taken in times]


def report(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; all columns but the first stand at the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    print(title)
    for row in (head, *rows):
        first, *rest = zip(row, widths, strict=True)
        print("  " + "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]).rstrip())


def verdict(ratio: float, target: float) -> str:
    """The target, and whether it was kept."""
    return f"< {target:g} {'kept' if ratio < target else 'MISSED'}"
