"""Detection of repetition in a body: runs of calls that differ only in the number of an address."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from archspec.addresses import ANY_INDEX, is_index, join, segments
from archspec.ir import Call

LONGEST_PERIOD = 24
MOST_NUMBERS = 6


class Run(NamedTuple):
    """`iterations` times `period` calls from `start`.

    `addresses` are those of one iteration, with `*` for the number that varies.
    """

    start: int
    period: int
    iterations: int
    addresses: tuple[str, ...]


def runs(calls: list[Call]) -> list[Run]:
    """Return the non-overlapping runs of a body that contain a layer or block.

    Runs that would have the same address with a `*` show their numbers instead.
    """
    found: list[Run] = []
    start = 0
    while start < len(calls):
        run = _run_at(calls, start)
        if run is not None:
            found.append(run)
        start += 1 if run is None else run.period * run.iterations
    shown = Counter(address for run in found for address in run.addresses if "*" in address)
    return [
        run._replace(
            addresses=tuple([a if shown[a] < 2 else _numbered(calls, run, i) for i, a in enumerate(run.addresses)])
        )
        for run in found
    ]


def _run_at(calls: list[Call], start: int) -> Run | None:
    """Return the run from `start` that covers the most calls, with the shortest period among equals."""
    best: Run | None = None
    for period in range(1, min(LONGEST_PERIOD, (len(calls) - start) // 2) + 1):
        addresses = _common_addresses(calls, start, start + period, period)
        if addresses is None or not any(addresses):
            continue
        iterations = 2
        while (
            start + (iterations + 1) * period <= len(calls)
            and _common_addresses(calls, start, start + iterations * period, period) == addresses
        ):
            iterations += 1
        if best is None or period * iterations > best.period * best.iterations:
            best = Run(start, period, iterations, addresses)
    return best


def _numbered(calls: list[Call], run: Run, position: int) -> str:
    """Return the address at a position of a run, with its numbers: `layer.0,3,6`."""
    before, _, after = run.addresses[position].partition("*")
    numbers: list[str] = []
    for iteration in range(run.iterations):
        address = calls[run.start + iteration * run.period + position].address
        numbers.append(address[len(before) : len(address) - len(after)])
    if len(numbers) > MOST_NUMBERS:
        numbers[2:-1] = ["…"]
    return f"{before}{','.join(numbers)}{after}"


def _common_addresses(calls: list[Call], first: int, second: int, period: int) -> tuple[str, ...] | None:
    """Return the common addresses of two iterations, or None if their calls differ."""
    addresses: list[str] = []
    for i in range(period):
        a, b = calls[first + i], calls[second + i]
        if a.kind != b.kind or a.type != b.type or a.body is not b.body or a.attributes != b.attributes:
            return None
        address = _common_address(a.address, b.address)
        if address is None:
            return None
        addresses.append(address)
    return tuple(addresses)


def _common_address(a: str, b: str) -> str | None:
    if a == b:
        return a
    ours, theirs = segments(a), segments(b)
    if len(ours) != len(theirs):
        return None
    differ = [i for i, (x, y) in enumerate(zip(ours, theirs, strict=True)) if x != y]
    if len(differ) != 1 or not (is_index(ours[differ[0]]) and is_index(theirs[differ[0]])):
        return None
    ours[differ[0]] = ANY_INDEX
    return join(*ours)
