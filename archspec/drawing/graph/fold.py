"""Detection of repetition in a body: runs of calls that differ only in the number of an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from archspec.core.addresses import ANY_INDEX, format_ranges, is_index, join, segments
from archspec.ir.module import Call

MAX_PERIOD = 24
MAX_RANGES = 6


class CallRun(NamedTuple):
    """`iterations` times `period` calls from `start`.

    `addresses` are those of one iteration, with `*` for the number that varies.
    """

    start: int
    period: int
    iterations: int
    addresses: tuple[str, ...]


class EarlierUse(NamedTuple):
    """The first use of a tensor, at an earlier call of the same body: its position and the name within it."""

    call: int
    name: str


CountingNode: TypeAlias = EarlierUse | str
"""Where a parameter is counted: at an earlier call of the body, or on a node outside it, by its name."""


class ParameterUse(NamedTuple):
    """A parameter that a call reads: whether it is frozen, and where it is counted, None for this call."""

    frozen: bool
    at: CountingNode | None


ParameterUses = Sequence[Sequence[ParameterUse]]
"""The parameters that each call of a body reads, in program order."""


def find_runs(calls: Sequence[Call], holders: ParameterUses, amounts: Sequence[object]) -> list[CallRun]:
    """Return the non-overlapping runs of a body that contain a layer or block.

    The calls of a run are equal in all iterations, and so are their `amounts`, and which of their parameters are shared
    or frozen. A `*` in
    an address stands for all numbers that the body applies there; a run of some of them shows its numbers instead.
    """
    found: list[CallRun] = []
    nodes = [*range(len(calls))]  # the first call that has the same node
    start = 0
    while start < len(calls):
        run = _run_at(calls, holders, amounts, nodes, start)
        if run is not None:
            found.append(run)
            for i in range(run.period * run.iterations):
                nodes[start + i] = start + i % run.period
        start += 1 if run is None else run.period * run.iterations
    return [run._replace(addresses=_run_addresses(calls, run)) for run in found]


def _run_at(
    calls: Sequence[Call], holders: ParameterUses, amounts: Sequence[object], nodes: Sequence[int], start: int
) -> CallRun | None:
    """Return the run from `start` that covers the most calls, with the shortest period among equals."""
    best: CallRun | None = None
    longest = min(MAX_PERIOD, (len(calls) - start) // 2)
    operations = 0  # before the first layer or block, which a period includes
    while operations < longest and not calls[start + operations].address:
        operations += 1
    for period in range(operations + 1, longest + 1):
        addresses = _common_addresses(calls, holders, amounts, nodes, start, start + period, period)
        if addresses is None:
            continue
        iterations = 2
        while (end := start + iterations * period) + period <= len(calls):
            if _common_addresses(calls, holders, amounts, nodes, start, end, period) != addresses:
                break
            iterations += 1
        if best is None or period * iterations > best.period * best.iterations:
            best = CallRun(start, period, iterations, addresses)
    return best


def _run_addresses(calls: Sequence[Call], run: CallRun) -> tuple[str, ...]:
    """Return the addresses of a run, with numbers for each `*` that would stand for others too: `layer.0-2,6`."""
    shown: list[str] = []
    for position, address in enumerate(run.addresses):
        before, star, after = address.partition(ANY_INDEX)
        if star:
            end = run.start + run.period * run.iterations
            own = {calls[i].address for i in range(run.start + position, end, run.period)}
            pattern = re.compile(re.escape(before) + r"\d+" + re.escape(after) + r"(\.|$)")
            if any(pattern.match(call.address) and call.address not in own for call in calls):
                numbers = sorted(int(a[len(before) : len(a) - len(after)]) for a in own)
                address = f"{before}{format_ranges(numbers, MAX_RANGES)}{after}"
        shown.append(address)
    return tuple(shown)


def _common_addresses(
    calls: Sequence[Call],
    holders: ParameterUses,
    amounts: Sequence[object],
    nodes: Sequence[int],
    first: int,
    second: int,
    period: int,
) -> tuple[str, ...] | None:
    """Return the common addresses of two iterations, or None if they differ."""
    addresses: list[str] = []
    for i in range(period):
        a, b = calls[first + i], calls[second + i]
        if a.type != b.type or a.body is not b.body or a.attributes != b.attributes:
            return None
        if amounts[first + i] != amounts[second + i]:
            return None
        address = _common_address(a.address, b.address)
        if address is None:
            return None
        addresses.append(address)
        if a.address != b.address and not all(
            x.frozen == y.frozen and (x.at == y.at or _is_counted_alike(x.at, y.at, nodes, first, second))
            for x, y in zip(holders[first + i], holders[second + i], strict=True)
        ):
            return None
    return tuple(addresses)


def _is_counted_alike(
    one: CountingNode | None, other: CountingNode | None, nodes: Sequence[int], first: int, second: int
) -> bool:
    """Whether two iterations count a tensor on the same node, or each at the same position within itself."""
    if not isinstance(one, EarlierUse) or not isinstance(other, EarlierUse) or one.name != other.name:
        return False
    if one.call < first:
        return nodes[one.call] == nodes[other.call]
    return one.call - first == other.call - second


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
