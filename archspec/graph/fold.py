"""Repetition in a body: stretches of applications that say the same thing again with another number."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from archspec.addresses import ANY_INDEX, is_index, join, segments
from archspec.ir import Call

LONGEST_PERIOD = 24
MOST_NUMBERS = 6


class Run(NamedTuple):
    """`rounds` times `period` calls from `start` on; `addresses` are those of one round, `*` where the number
    changes.
    """

    start: int
    period: int
    rounds: int
    addresses: tuple[str, ...]


def runs(calls: list[Call]) -> list[Run]:
    """The runs of a body, none overlapping, each with a block or layer in it.

    Where two parts of a body would go by the same address with a `*`, they go by their numbers instead.
    """
    found: list[Run] = []
    start = 0
    while start < len(calls):
        run = _run_at(calls, start)
        if run is not None:
            found.append(run)
        start += 1 if run is None else run.period * run.rounds
    shown = Counter(address for run in found for address in run.addresses if "*" in address)
    return [
        run._replace(
            addresses=tuple([a if shown[a] < 2 else _numbered(calls, run, i) for i, a in enumerate(run.addresses)])
        )
        for run in found
    ]


def _run_at(calls: list[Call], start: int) -> Run | None:
    """The run from `start` on that takes in most, with the shortest period of those."""
    best: Run | None = None
    for period in range(1, min(LONGEST_PERIOD, (len(calls) - start) // 2) + 1):
        addresses = _round(calls, start, start + period, period)
        if addresses is None or not any(addresses):
            continue
        rounds = 2
        while (
            start + (rounds + 1) * period <= len(calls)
            and _round(calls, start, start + rounds * period, period) == addresses
        ):
            rounds += 1
        if best is None or period * rounds > best.period * best.rounds:
            best = Run(start, period, rounds, addresses)
    return best


def _numbered(calls: list[Call], run: Run, position: int) -> str:
    """The address at a position of a run, with the numbers that it has: `layer.0,3,6`."""
    before, _, after = run.addresses[position].partition("*")
    numbers: list[str] = []
    for turn in range(run.rounds):
        address = calls[run.start + turn * run.period + position].address
        numbers.append(address[len(before) : len(address) - len(after)])
    if len(numbers) > MOST_NUMBERS:
        numbers[2:-1] = ["…"]
    return f"{before}{','.join(numbers)}{after}"


def _round(calls: list[Call], first: int, second: int, period: int) -> tuple[str, ...] | None:
    """The addresses that two rounds have in common, or None if they do not do the same."""
    addresses: list[str] = []
    for i in range(period):
        a, b = calls[first + i], calls[second + i]
        if a.kind != b.kind or a.type != b.type or a.body is not b.body or a.attributes != b.attributes:
            return None
        address = _common(a.address, b.address)
        if address is None:
            return None
        addresses.append(address)
    return tuple(addresses)


def _common(a: str, b: str) -> str | None:
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
