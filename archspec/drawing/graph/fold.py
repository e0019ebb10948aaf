"""Detection of repetition in a body: runs of calls that differ only in the number of an address."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from archspec.core.addresses import ANY_INDEX, format_ranges, is_index, join, segments
from archspec.ir.module import Call

MAX_PERIOD = 24
MAX_RANGES = 6


class CallRun(NamedTuple):
    """`iterations` times `period` calls from `start`.

    `addresses` are those of one iteration, with `*` for the number that varies. `inner` are the runs within one
    iteration of several calls; their starts count from that of the iteration.
    """

    start: int
    period: int
    iterations: int
    addresses: tuple[str, ...]
    inner: tuple[CallRun, ...] = ()

    def inner_at(self, position: int) -> CallRun | None:
        """Return the run within the period that begins with a position, or has it in its first iteration."""
        return next((run for run in self.inner if 0 <= position - run.start < run.period), None)

    def same_calls(self, position: int) -> list[int]:
        """Return all calls at a position of the period, and those that equal it in a run within the period."""
        inner, end = self.inner_at(position), self.start + self.period * self.iterations
        step, count = (inner.period, inner.iterations) if inner is not None else (1, 1)
        return [i + j * step for i in range(self.start + position, end, self.period) for j in range(count)]


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


class RunFinder:
    """Finder of runs in the calls of a body, with their `amounts` and the `holders` of their parameters."""

    def __init__(self, calls: Sequence[Call], holders: ParameterUses, amounts: Sequence[object]) -> None:
        self._calls = calls
        self._holders = holders
        self._amounts = amounts

    def find(self) -> list[CallRun]:
        """Return the non-overlapping runs of the body that contain a layer or block.

        The calls of a run are equal in all iterations, and so are their amounts, and which of their parameters are
        shared or frozen. A `*` in an address stands for all numbers that the body applies there; a run of some of them
        shows its numbers instead.
        """
        runs: list[CallRun] = []
        nodes = [*range(len(self._calls))]  # the first call that has the same node
        start = 0
        while start < len(self._calls):
            run = self._run_at(nodes, start, len(self._calls))
            if run is not None:
                runs.append(run)
                for i in range(run.period * run.iterations):
                    nodes[start + i] = start + i % run.period
            start += 1 if run is None else run.period * run.iterations
        return [run._replace(addresses=self._run_addresses(run)) for run in runs]

    def find_inner(self, run: CallRun, is_single: Callable[[CallRun], bool]) -> CallRun:
        """Return a run with those runs within its period that are `is_single`, and the addresses of equal calls."""
        patterns = tuple([self._pattern_of(run, position) for position in range(run.period)])
        nodes, inner = [*range(len(self._calls))], list[CallRun]()
        position = 0
        while position < run.period:
            repeat = self._run_at(nodes, run.start + position, run.start + run.period)
            end = position + (1 if repeat is None else repeat.period * repeat.iterations)
            # The same number varies within the period as between periods.
            is_equal = repeat is not None and patterns[position:end] == repeat.addresses * repeat.iterations
            if repeat is not None and is_equal and is_single(repeat):
                inner.append(repeat._replace(start=position))
            position = end
        run = run._replace(inner=tuple(inner), addresses=patterns)
        return run._replace(addresses=self._run_addresses(run))

    def _pattern_of(self, run: CallRun, position: int) -> str:
        first, second = run.start + position, run.start + run.period + position
        address = _common_address(self._calls[first].address, self._calls[second].address)
        assert address is not None, "the calls of a run differ in one number"
        return address

    def _run_at(self, nodes: Sequence[int], start: int, stop: int) -> CallRun | None:
        """Return the run from `start` that covers the most calls before `stop`, with the shortest of equal periods."""
        best: CallRun | None = None
        longest = min(MAX_PERIOD, (stop - start) // 2)
        operations = 0  # before the first layer or block, which a period includes
        while operations < longest and not self._calls[start + operations].address:
            operations += 1
        for period in range(operations + 1, longest + 1):
            addresses = self._common_addresses(nodes, start, start + period, period)
            if addresses is None:
                continue
            iterations = 2
            while (end := start + iterations * period) + period <= stop:
                if self._common_addresses(nodes, start, end, period) != addresses:
                    break
                iterations += 1
            if best is None or period * iterations > best.period * best.iterations:
                best = CallRun(start, period, iterations, addresses)
        return best

    def _run_addresses(self, run: CallRun) -> tuple[str, ...]:
        """Return the addresses of a run, with numbers for each `*` that would stand for others too: `layer.0-2,6`."""
        shown: list[str] = []
        for position, address in enumerate(run.addresses):
            before, star, after = address.partition(ANY_INDEX)
            if star:
                own = {self._calls[i].address for i in run.same_calls(position)}
                pattern = re.compile(re.escape(before) + r"\d+" + re.escape(after) + r"(\.|$)")
                if any(pattern.match(call.address) and call.address not in own for call in self._calls):
                    numbers = sorted(int(a[len(before) : len(a) - len(after)]) for a in own)
                    address = f"{before}{format_ranges(numbers, MAX_RANGES)}{after}"
            shown.append(address)
        return tuple(shown)

    def _common_addresses(self, nodes: Sequence[int], first: int, second: int, period: int) -> tuple[str, ...] | None:
        """Return the common addresses of two iterations, or None if they differ."""
        addresses: list[str] = []
        for i, j in zip(range(first, first + period), range(second, second + period), strict=True):
            a, b = self._calls[i], self._calls[j]
            if a.type != b.type or a.body is not b.body or a.attributes != b.attributes:
                return None
            address = _common_address(a.address, b.address)
            if self._amounts[i] != self._amounts[j] or address is None:
                return None
            addresses.append(address)
            if a.address != b.address and not all(
                x.frozen == y.frozen and (x.at == y.at or _is_counted_alike(x.at, y.at, nodes, first, second))
                for x, y in zip(self._holders[i], self._holders[j], strict=True)
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
