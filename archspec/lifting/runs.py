"""Runs: layers that are applied one after the other, which become one step with a loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from archspec.lifting.conditions import is_regular
from archspec.lifting.values import Value

MOST_KINDS = 4
"""Layers of more kinds do not become one loop."""


class Run(NamedTuple):
    """Values each of which is made from the one before by the same layer, or by layers that only differ in numbers.

    If layers of several kinds alternate, `kinds` are the numbers of these.
    """

    values: list[Value]
    address: str
    start: int
    kinds: tuple[int, ...] = ()

    def of_kind(self, kind: int) -> list[Value]:
        """Return the values that are made by layers of one kind."""
        return [value for turn, value in enumerate(self.values) if not self.kinds or self.kinds[turn] == kind]

    @property
    def is_shared(self) -> bool:
        """Whether all applications are of one layer."""
        return self.values[0].address == self.values[-1].address


def runs_of(
    values: Sequence[Value], outputs: Sequence[Value], key: Callable[[Value], Hashable], path: str
) -> dict[Value, Run]:
    """Return the runs among the values of a body, at the address `path`, by their last value. Layers with equal keys
    only differ in numbers.
    """
    uses = Counter([operand for value in values for operand in value.operands] + list(outputs))
    found: dict[Value, Run] = {}
    for chain in _chains(values, uses, lambda first, second: _follows(first, second, key)):
        found |= _divided(chain)
    for chain in _chains(values, uses, _succeeds):
        run = _alternating(_of_two_kinds(chain, key), key)
        if run is not None:
            inside = set(run.values)
            found = {last: other for last, other in found.items() if last not in inside} | {run.values[-1]: run}
    unnamed = f"{path}[i]" if path else "[i]"  # no address begins with the index of a loop
    return {last: run for last, run in found.items() if not run.address.startswith(unnamed)}


def _chains(
    values: Sequence[Value], uses: Mapping[Value, int], follows: Callable[[Value, Value], bool]
) -> Iterator[list[Value]]:
    """Yield values each of which only the next one uses, and follows it."""
    before: dict[Value, Value] = {}
    inside = set(values)
    for value in values:
        operands = [arg for arg in value.operands if arg in inside and uses[arg] == 1]
        previous = next((arg for arg in operands if follows(arg, value)), None)
        if previous is not None:
            before[value] = previous
    for value in set(before) - set(before.values()):
        chain = [value]
        while chain[0] in before:
            chain.insert(0, before[chain[0]])
        yield chain


def _succeeds(previous: Value, value: Value) -> bool:
    return value.kind == previous.kind == "block" and value.args[0] is previous


def _of_two_kinds(chain: list[Value], key: Callable[[Value], Hashable]) -> list[Value]:
    """Return the last values of a chain, which are made by layers of at most two kinds: as many as a step can have."""
    keys = [key(value) for value in chain]
    return next(chain[first:] for first in range(len(chain)) if len({*keys[first:]}) <= 2)


def _alternating(chain: list[Value], key: Callable[[Value], Hashable]) -> Run | None:
    """Return a run in which layers of several kinds alternate, or the same ones with other arguments."""
    address, start, length = address_pattern([value.address for value in chain])
    sorts = [(key(value), *map(id, value.args[1:])) for value in chain[:length]]
    order = list(dict.fromkeys(sorts))
    kinds = tuple([order.index(sort) for sort in sorts])
    changes = sum([first != second for first, second in pairwise(kinds)])
    if "[i]" not in address or not 1 < len(order) <= min(MOST_KINDS, changes) or not is_regular(kinds, start):
        return None
    return Run(chain[:length], address, start, kinds)


def _divided(run: list[Value]) -> dict[Value, Run]:
    """Return a run as one or more in which all addresses follow one pattern."""
    found: dict[Value, Run] = {}
    while len(run) > 1:
        address, start, length = address_pattern([value.address for value in run])
        if length > 1:
            found[run[length - 1]] = Run(run[:length], address, start)
        run = run[length:]
    return found


def _follows(previous: Value, value: Value, key: Callable[[Value], Hashable]) -> bool:
    if value.kind not in ("layer", "block") or previous.kind != value.kind or key(previous) != key(value):
        return False
    if len(previous.args) != len(value.args):
        return False
    changed = [(a, b) for a, b in zip(previous.args, value.args, strict=True) if a is not b]
    return len(changed) == 1 and changed[0][1] is previous and value.args[0] is previous


def address_pattern(addresses: Sequence[str]) -> tuple[str, int, int]:
    """Return the pattern of the first addresses, with `[i]` for the number that counts up, the first number, and how
    many addresses follow it. The pattern of equal addresses is the address itself.
    """
    first = addresses[0].split(".")
    same = next((turn for turn, address in enumerate(addresses) if address != addresses[0]), len(addresses))
    if same > 1:
        return addresses[0], 0, same
    second = addresses[1].split(".")
    places = [turn for turn, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
    if len(first) != len(second) or len(places) != 1 or not re.fullmatch("[0-9]+", first[places[0]]):
        return addresses[0], 0, 1
    place, start = places[0], int(first[places[0]])
    length = 0
    for turn, address in enumerate(addresses):
        if address.split(".") != [*first[:place], str(start + turn), *first[place + 1 :]]:
            break
        length = turn + 1
    pattern = ".".join(first[:place]) + "[i]" + "".join([f".{word}" for word in first[place + 1 :]])
    return pattern, start, length
