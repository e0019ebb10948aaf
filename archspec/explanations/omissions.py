"""Small omissions beside a convention: a tensor group forgotten or counted twice, a layer too few, one slip.

Each takes a rank, as a deviation does; what went wrong in a single layer only, or a slip of arithmetic, takes two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from archspec.explanations.arithmetic_errors import arithmetic_error
from archspec.explanations.conventions import Convention, stack_of
from archspec.explanations.tensor_groups import TensorGroup, TensorGroups

MOST_LOOKED_AT = 1_000_000

Counts = Sequence[tuple[Convention, int]]


Counted = tuple[int, frozenset[tuple[int, int]]]
"""What is counted: a set of groups, and what is added to it (or taken from it) for which group."""


class Omission(NamedTuple):
    """What is forgotten or counted twice, and what that adds to the count.

    It is about a tensor group (its bit, else 0), or about a stack (its address, else ""). `part` says that nothing
    need be wrong: one layer alone is meant.
    """

    text: str
    params: int
    group: int
    stack: str = ""
    part: bool = False


class Omissions:
    """The omissions beside the conventions that `level` gives for a rank; `reached` has the ranks of sets of groups."""

    def __init__(self, universe: TensorGroups, level: Callable[[int], Counts], reached: Mapping[int, int]) -> None:
        self.universe = universe
        self.level = level
        self.reached = reached
        members = universe.members((1 << len(universe.groups)) - 1)
        self._everywhere = _by_params([_whole(bit, group, sign) for bit, group in members for sign in (-1, 1)])
        self._once = _by_params(
            [_single(bit, group, sign) for bit, group in members for sign in (-1, 1) if group.times > 1]
        )

    def of_rank(self, rank: int, number: int, seen: set[Counted]) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Conventions with one omission, or two of whole groups, that give the number with `rank` deviations in all.

        Beside an omission there are at most three deviations, beside two at most one. What counts the same tensors as
        something `seen` before, or as a convention of no higher rank, is left out.
        """
        for convention, omitted in self._of_rank(rank, number):
            groups, wrong = convention.groups, list[tuple[int, int]]()
            for omission in omitted:
                if omission.group and omission.params == -self._params(omission.group):
                    groups &= ~omission.group
                else:
                    wrong.append((omission.group, omission.params))
            counted = (groups, frozenset(wrong))
            if counted not in seen and (wrong or self.reached.get(groups, rank + 1) > rank):
                seen.add(counted)
                yield convention, omitted

    def slips(self, rank: int, number: int) -> Iterator[tuple[Convention, Omission]]:
        """Conventions that give the number if one line of their calculation has a slip."""
        for convention, total in self._few(rank - 2) if 2 <= rank <= 3 else ():
            for omission in _slips(self.universe, convention.groups, number - total):
                yield convention, omission

    def _of_rank(self, rank: int, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        for cost, known in ((1, self._everywhere), (2, self._once)):
            for convention, total in self.level(rank - cost) if cost <= rank <= 4 else ():
                for omission in known.get(number - total, ()):
                    if omission.group & convention.groups:
                        yield convention, (omission,)
        for convention, total in self._few(rank - 1) if 1 <= rank <= 4 else ():
            for omission in _layers(self.universe, convention.groups, number - total):
                yield convention, (omission,)
        if 2 <= rank <= 3:
            yield from self._pairs(self._few(rank - 2), number)

    def _few(self, rank: int) -> Counts:
        """The conventions of a rank, unless looking at each of their groups would take too long."""
        level = self.level(rank)
        return level if len(level) * len(self.universe.groups) <= MOST_LOOKED_AT else ()

    def _pairs(self, conventions: Counts, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Two tensor groups that are wrong in every layer."""
        for convention, total in conventions:
            members = self.universe.members(convention.groups)
            seen: dict[int, list[Omission]] = {}
            for omission in [_whole(bit, group, sign) for bit, group in members for sign in (-1, 1)]:
                for other in seen.get(number - total - omission.params, ()):
                    if other.group != omission.group:
                        yield convention, (other, omission)
                seen.setdefault(omission.params, []).append(omission)

    def _params(self, group: int) -> int:
        return self.universe.total(group)


def _by_params(known: list[Omission]) -> dict[int, list[Omission]]:
    found: dict[int, list[Omission]] = {}
    for omission in known:
        found.setdefault(omission.params, []).append(omission)
    return found


def _whole(bit: int, group: TensorGroup, sign: int) -> Omission:
    everywhere = f", {group.times} x {group.each:,}" if group.times > 1 else ""
    how = "left out" if sign < 0 else "counted twice"
    return Omission(f"`{group.name}` {how}{everywhere}", sign * group.times * group.each, bit)


def _single(bit: int, group: TensorGroup, sign: int) -> Omission:
    how = "left out of" if sign < 0 else "counted twice in"
    return Omission(f"`{group.name}` {how} one of {group.times} layers", sign * group.each, bit)


def _layers(universe: TensorGroups, groups: int, difference: int) -> Iterator[Omission]:
    """A stack with one layer too few or too many, or of which one layer alone is counted."""
    for address, (times, each) in stacks(universe, groups).items():
        if times > 1:
            for how, wrong in (("left out", -1), ("too many", 1), ("alone", 1 - times)):
                if difference == wrong * each and not (wrong == 1 - times == -1 and how == "alone"):
                    yield Omission(f"one of {times} `{address}` {how}", difference, 0, address, how == "alone")


def one_layer(universe: TensorGroups, groups: int) -> Iterator[Omission]:
    """One layer alone, of groups that are all of one stack."""
    if all(stack_of(group) for _, group in universe.members(groups)):
        found = stacks(universe, groups)
        for address, (times, each) in found.items() if len(found) == 1 else ():
            if times > 1:
                yield Omission(f"one of {times} `{address}` alone", (1 - times) * each, 0, address, True)


def stacks(universe: TensorGroups, groups: int) -> dict[str, tuple[int, int]]:
    """The stacks in a set of groups: how many equal layers, and what each has; layers that differ count as one."""
    totals: dict[str, dict[int, int]] = {}
    for _, group in universe.members(groups):
        address = stack_of(group)
        if address:
            found = totals.setdefault(address, {})
            found[group.spread] = found.get(group.spread, 0) + group.times * group.each
    return {address: universe.layers(found) for address, found in totals.items()}


def _slips(universe: TensorGroups, groups: int, difference: int) -> Iterator[Omission]:
    """Single lines of a calculation that with one slip make the count larger by `difference`."""
    lines: dict[tuple[int, int], list[str]] = {(1, universe.total(groups)): ["the total"]}
    for address, (times, each) in stacks(universe, groups).items():
        if times > 1:
            lines.setdefault((times, each), []).append(f"a layer of `{address}`")
    for _, group in universe.members(groups):
        lines.setdefault((group.times, group.each), []).append(f"`{group.name}`")
    for (times, meant), names in lines.items():
        written = meant + difference // times
        found = arithmetic_error(meant, written) if difference % times == 0 else None
        if found:
            where = names[0] if len(names) == 1 else f"one of {len(names)} lines of that size, as {names[0]}"
            yield Omission(f"a slip of arithmetic, {written:,} for {meant:,} ({found}), in {where}", difference, 0)
